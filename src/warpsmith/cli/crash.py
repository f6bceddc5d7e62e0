"""When the command line meets a bug of ours: a short message, and a zip that replays it.

In: the exception and the command's words.  Out: status 70.  The zip holds the words, the versions, the traceback, the
input files and what came from standard input, so that a report needs nothing else.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import platform
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from warpsmith.cli.files import standard_input

__all__ = ["STATUS", "report_crash", "save_repro", "without"]

STATUS = 70
_PACKAGES = ("warpsmith", "numpy", "ml_dtypes", "llvmlite")
_LARGEST_INPUT = 64 << 20
_STDIN = "standard-input.txt"
_WRITTEN = ("-o", "--output")  # after these a dash is standard output


def report_crash(error: BaseException, words: Sequence[str]) -> int:
    """Print what happened and where the repro is; the exit status."""
    text = "".join(traceback.format_exception(error))
    print(f"warpsmith: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    try:
        with tempfile.NamedTemporaryFile(prefix="warpsmith-repro-", suffix=".zip", delete=False) as file:
            path = file.name
        save_repro(path, without(words, "--save-repro"), text)
    except OSError as failed:
        print(f"  (no repro could be written: {failed.strerror})\n{text}", file=sys.stderr)
    else:
        print(f"  this is a bug in Warpsmith; all that is needed to replay it is in {path}", file=sys.stderr)
    return STATUS


def save_repro(path: str, words: Sequence[str], log: str = "") -> None:
    """Write a zip with the command, its input files, the versions and a log.  Raises OSError."""
    typed = standard_input()
    names: dict[str, str] = {}  # in the zip, by the word that names the file
    replayed: list[str] = []
    for i, word in enumerate(words):
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if value == "-" and typed and (not i or words[i - 1] not in _WRITTEN):
            value = _STDIN
        elif _is_input(Path(value)):
            value = names.setdefault(value, _free_name(Path(value).name, names.values()))
        replayed.append(f"{option}{equals}{value}")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("command.json", json.dumps(["warpsmith", *replayed]))
        archive.writestr("versions.json", json.dumps(_versions(), indent=1))
        archive.writestr("replay.py", _REPLAY)
        if log:
            archive.writestr("log.txt", log)
        if typed:
            archive.writestr(_STDIN, typed)
        for file, name in names.items():
            archive.write(file, name)


def without(words: Sequence[str], *options: str, flags: Sequence[str] = ()) -> list[str]:
    """The words less `options`, which take a value, and `flags`, which take none; argparse takes them shortened too."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if len(name) > 2 and any(each.startswith(name) for each in options):
            if not equals:
                next(rest, None)
        elif len(name) <= 2 or not any(each.startswith(name) for each in flags):
            kept.append(word)
    return kept


def _free_name(name: str, taken: Iterable[str]) -> str:
    """A name that the zip has no other file of: a/x.hlo and b/x.hlo may both be given."""
    used = {*taken, "command.json", "versions.json", "replay.py", "log.txt", _STDIN}
    stem, suffix = Path(name).stem, Path(name).suffix
    return next(
        n for n in itertools.chain([name], (f"{stem}.{i}{suffix}" for i in itertools.count(2))) if n not in used
    )


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


_REPLAY = '''"""With Warpsmith installed: python replay.py"""

import json
import os
import sys

from warpsmith.cli import main

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.exit(main(json.load(open("command.json"))[1:]))
'''
