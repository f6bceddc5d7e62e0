"""Say what is installed, what works here, what is missing and how to get it.

warpsmith doctor [--json]
"""

from __future__ import annotations

import argparse


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.report.doctor import diagnose

    found = diagnose()
    print(found.to_json(indent=2) if arguments.json else found)
    return 0
