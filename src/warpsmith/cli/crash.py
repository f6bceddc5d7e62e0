"""When the command line meets a bug of ours: a short message, and a zip that replays it.

In: the exception and the command's words.  Out: status 70.  The zip holds the words, the versions, the traceback and
the input files, so that a report needs nothing else.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["STATUS", "report_crash", "save_repro"]

STATUS = 70
_PACKAGES = ("warpsmith", "numpy", "ml_dtypes", "llvmlite", "rich")
_LARGEST_INPUT = 64 << 20


def report_crash(error: BaseException, words: Sequence[str]) -> int:
    """Print what happened and where the repro is; the exit status."""
    text = "".join(traceback.format_exception(error))
    print(f"warpsmith: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    try:
        with tempfile.NamedTemporaryFile(prefix="warpsmith-repro-", suffix=".zip", delete=False) as file:
            path = file.name
        save_repro(path, words, text)
    except OSError as failed:
        print(f"  (no repro could be written: {failed.strerror})\n{text}", file=sys.stderr)
    else:
        print(f"  this is a bug in Warpsmith; all that is needed to replay it is in {path}", file=sys.stderr)
    return STATUS


def save_repro(path: str, words: Sequence[str], log: str = "") -> None:
    """Write a zip with the command, its input files, the versions and a log.  Raises OSError."""
    files = {Path(w).name: Path(w) for w in words if _is_input(Path(w))}
    replayed = [Path(w).name if _is_input(Path(w)) else w for w in words]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("command.json", json.dumps(["warpsmith", *replayed]))
        archive.writestr("versions.json", json.dumps(_versions(), indent=1))
        archive.writestr("replay.py", _REPLAY)
        if log:
            archive.writestr("log.txt", log)
        for name, file in files.items():
            archive.write(file, name)


def _is_input(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= _LARGEST_INPUT
    except OSError:
        return False


def _versions() -> dict[str, str]:
    found = {"python": sys.version, "platform": platform.platform(), "machine": platform.machine()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


_REPLAY = '''"""Run from this folder, with Warpsmith installed: python replay.py"""

import json
import sys

from warpsmith.cli import main

sys.exit(main(json.load(open("command.json"))[1:]))
'''
