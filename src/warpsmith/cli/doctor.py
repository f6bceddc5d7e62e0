"""Say what is installed, what works here, what is missing and how to get it.

warpsmith doctor [--json]
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.report.doctor import Diagnosis


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.report.doctor import diagnose

    found = diagnose()
    print(json.dumps(found.to_json(), indent=2) if arguments.json else _text(found))
    return 0


def _text(found: Diagnosis) -> str:
    cache = found.cache
    used = f"{cache.entries} entries, {cache.bytes / 2**20:.1f} of {cache.limit / 2**20:.0f} MiB"
    facts = {
        "warpsmith": found.warpsmith,
        "python": found.python,
        **found.packages,
        "LLVM": found.llvm,
        "system": found.system,
        "CPU": f"{found.cpu}, {found.vector_bits}-bit vectors, {found.threads} threads",
        "cache": "off" if cache.directory is None else f"{cache.directory} ({used})",
    }
    width = max(map(len, (*facts, *(check.name for check in found.checks))))
    lines = ["Installed", *(f"  {name:<{width}}  {value}" for name, value in facts.items()), "", "What works here"]
    for check in found.checks:
        lines.append(f"  {check.name:<{width}}  {check.state:<7}  {check.purpose}: {check.detail}")
        if check.help:
            lines.append(f"  {'':<{width}}           {check.help}")
    return "\n".join(lines)
