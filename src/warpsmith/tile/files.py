"""Kernels out of files: `FILE.py:NAME`.

In: a path, and the name of a kernel in it where it holds several.  Out: the `Kernel`.  The file is run as Python, for
its layouts, constants and decorators; the bodies of its kernels are only read.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpsmith.errors import FileError, Span, TileSyntaxError, UsageError, WarpsmithError, did_you_mean
from warpsmith.tile.program import JitKernel, Kernel

__all__ = ["kernels_of", "load_kernel"]


def load_kernel(place: str, constants: Mapping[str, Any] | None = None) -> Kernel:
    """The kernel at `FILE.py[:NAME]`; `constants` by name specialise a `@T.jit` one.

    Raises FileError, UsageError for a name that isn't there (or several kernels without a name), and what reading a
    kernel raises; an exception of the file's own becomes a TileSyntaxError with its line.
    """
    path, name = _split(place)
    found = kernels_of(path)
    if not found:
        raise UsageError(f"{path} holds no kernel", help="decorate one with @T.prim_func or @T.jit")
    if name is None and len(found) > 1:
        raise UsageError(f"{path} holds {len(found)} kernels", help=f"name one: {path}:{next(iter(found))}")
    if name is not None and name not in found:
        raise UsageError(
            f"{path} holds no kernel '{name}'", help=did_you_mean(name, found) or f"it holds {', '.join(found)}"
        )
    kernel = found[name] if name is not None else next(iter(found.values()))
    if isinstance(kernel, JitKernel):
        return kernel.specialize(**(constants or {}))
    if constants:
        raise UsageError(f"kernel '{kernel.name}' takes no constants", help="@T.jit kernels do")
    return kernel


def _split(place: str) -> tuple[str, str | None]:
    path, colon, name = place.rpartition(":")
    if colon and name.isidentifier() and not Path(place).exists():
        return path, name
    return place, None


def kernels_of(path: str) -> dict[str, Kernel | JitKernel]:
    """All kernels of a file by name, in order."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"can't read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} isn't text (byte {error.start} isn't UTF-8)") from error
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    try:
        code = compile(text, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        span = Span(path, error.lineno or 1, error.offset or 1, (error.text or "").rstrip("\n"))
        raise TileSyntaxError(f"this isn't Python: {error.msg}", span=span) from error
    names: dict[str, Any] = {"__name__": "__tile__", "__file__": path}
    try:
        exec(code, names)
    except WarpsmithError:
        raise
    except (Exception, SystemExit) as error:  # whatever the file's own code raises is the user's to see, at its line
        line = (
            next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == path), 1) or 1
        )
        span = Span(path, line, 1, linecache.getline(path, line).rstrip("\n"))
        raise TileSyntaxError(f"{type(error).__name__}: {error}", span=span) from error
    return {name: value for name, value in names.items() if isinstance(value, (Kernel, JitKernel))}
