"""Reading and writing what the commands are given: files, standard streams, shipped examples."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib import resources
from pathlib import Path

from warpsmith.errors import FileError, UsageError, did_you_mean

__all__ = [
    "example_names",
    "example_text",
    "read_bytes",
    "read_text",
    "standard_input",
    "terminal_colors",
    "terminal_width",
    "writable",
    "write_bytes",
    "write_text",
]

_standard_input: list[bytes] = []


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of standard input for `-`.  Raises FileError."""
    if path == "-":
        stream = getattr(sys.stdin, "buffer", None)
        _standard_input.append(stream.read() if stream is not None else sys.stdin.read().encode())
        return _standard_input[-1]
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"can't read {path}: {error.strerror}", help=_nearby(path)) from error


def read_text(path: str) -> str:
    """The text of a file, or of standard input for `-`.  Raises FileError."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} isn't text (byte {error.start} isn't UTF-8)") from error


def standard_input() -> bytes:
    """What this command has read from standard input, which can't be read again; then it is forgotten."""
    data = b"".join(_standard_input)
    _standard_input.clear()
    return data


def _nearby(path: str) -> str | None:
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    return did_you_mean(Path(path).name, [p.name for p in folder.iterdir() if p.is_file()][:1000])


def write_text(path: str | None, text: str) -> None:
    """To standard output when `path` is None or `-`; else to a file that is never left half-written."""
    if not text.endswith("\n"):
        text += "\n"
    if path is None or path == "-":
        sys.stdout.write(text)
        return
    write_bytes(path, text.encode())


def write_bytes(path: str, data: bytes) -> None:
    """To a file, through a temporary one beside it and a rename; a link's target, and straight into what is no file."""
    target = Path(path).resolve()
    temporary: str | None = None
    try:
        if target.exists() and not target.is_file():  # a device or a pipe, which a rename would replace
            with open(target, "wb") as stream:
                stream.write(data)
            return
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        # mkstemp makes the file private; an output file gets what the user's umask gives.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise FileError(f"can't write {path}: {error.strerror}") from error


def terminal_width() -> int:
    """How long a line of a report is: the terminal's, or `WIDTH` where output goes elsewhere."""
    from warpsmith.report.words import WIDTH

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH


def terminal_colors() -> bool:
    """Whether output may have colours: it goes to a terminal that has them, and NO_COLOR (no-color.org) isn't set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def writable(path: str | None) -> str | None:
    """The path of an output, refused before the work is done.  FileError where no file can be made."""
    if path is not None and path != "-":
        folder = Path(path).resolve().parent
        if not folder.is_dir():
            raise FileError(f"can't write {path}: there is no folder {folder}")
        if Path(path).is_dir():
            raise FileError(f"can't write {path}: it is a folder")
        if not Path(path).exists() and not os.access(folder, os.W_OK):
            raise FileError(f"can't write {path}: no file can be made in {folder}")
    return path


def _examples():
    return resources.files("warpsmith") / "examples"


def example_names() -> list[str]:
    """The HLO files that are shipped with the package."""
    return sorted(p.name.removesuffix(".hlo") for p in _examples().iterdir() if p.name.endswith(".hlo"))


def example_text(name: str) -> str:
    """The text of a shipped example.  Raises UsageError for another name."""
    names = example_names()
    if name not in names:
        raise UsageError(
            f"no example is called '{name}'", help=did_you_mean(name, names) or f"examples: {', '.join(names)}"
        )
    return (_examples() / f"{name}.hlo").read_text(encoding="utf-8")
