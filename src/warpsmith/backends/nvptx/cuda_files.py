"""Where the optional files of CUDA are: a place inside a toolkit in, the file to use out.

All are looked for alike: the variable that names the file itself (`WARPSMITH_PTXAS`...), the toolkits named by
`CUDA_HOME` or `CUDA_PATH`, the `nvidia-cuda-*` wheels on Python's path (`nvidia/cu13`, `nvidia/cu12`,
`nvidia/cuda_nvcc`), `PATH` for programs, and `/usr/local/cuda`, in this order.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from warpsmith.errors import ToolMissing

__all__ = ["HELP", "find"]

HELP = "pip install 'warpsmith[cuda]', or set CUDA_HOME to a CUDA toolkit"
_SYSTEM = Path("/usr/local/cuda")
_WHEELS = ("cu13", "cu12", "cuda_nvcc")


def find(relative: str, variable: str) -> Path | None:
    """The file at `relative` ("bin/ptxas") of the first toolkit that has it, or the one that `variable` names.

    A program, which is a file in `bin`, must be executable, and may also be on `PATH`.  ToolMissing where `variable`
    names nothing that can be used: another file in its place would be a surprise.
    """
    is_program = relative.startswith("bin/")
    if chosen := os.environ.get(variable):
        path = Path(chosen)
        if not path.is_file() or (is_program and not os.access(path, os.X_OK)):
            what = "a program" if is_program else "a file"
            raise ToolMissing(f"{variable} is {chosen}, which isn't {what}", help=f"correct it, or unset {variable}")
        return path
    for path in _candidates(relative, is_program):
        if path.is_file() and (not is_program or os.access(path, os.X_OK)):
            return path
    return None


def _candidates(relative: str, is_program: bool) -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if root := os.environ.get(name):
            yield Path(root) / relative
    for entry in sys.path:
        for wheel in _WHEELS:
            yield Path(entry or ".") / "nvidia" / wheel / relative
    if is_program and (found := shutil.which(Path(relative).name)):
        yield Path(found)
    yield _SYSTEM / relative
