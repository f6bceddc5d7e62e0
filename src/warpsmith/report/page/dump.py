"""Dumps: one file a pass, numbered and named, as the published walk-through of the pipeline goes.

    gelu_example.main.00.emitted.mlir, .01.simplify-arith.mlir, ... , .llvm.ll, .ptx

`index.txt` has a line a file on what the pass changed; `gelu_example.html` shows all of it on one page.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from warpsmith.compiler import compile, kernel_steps
from warpsmith.devices import device
from warpsmith.errors import FileError, UsageError
from warpsmith.hlo.module import HloModule
from warpsmith.report.page.page import Code, page

__all__ = ["dump_module"]


def dump_module(
    module: HloModule,
    directory: str,
    *,
    target: str,
    numerics: str = "strict",
    pass_re: str | None = None,
    generic: bool = False,
    cache: bool = True,
    deterministic: bool = False,
    pipeline: str = "",
) -> list[str]:
    """Write all stages of all kernels of `module` under `directory`; the names of the files.

    A pass that changed nothing has its file too; the index says so.  The IR is written before LLVM sees it, so that it
    can be read when LLVM refuses it.  `pass_re` limits the files to passes whose name it matches; XLA's
    `fusion-emitter` means all of them.  `deterministic` and `pipeline` are as in `compile`.
    """
    keep = _filter(pass_re)
    files: dict[str, str] = {f"{_safe(module.name)}.hlo": str(module)}
    index: list[str] = []
    kernels = kernel_steps(
        module, target, numerics=numerics, generic=generic, deterministic=deterministic, pipeline=pipeline
    )
    for fusion, kernel in kernels:
        stem = f"{_safe(module.name)}.{_safe(fusion)}"
        previous = ""
        for number, (name, text) in enumerate([("emitted", kernel.emitted_text()), *kernel.steps]):
            file = f"{stem}.{number:02d}.{name}.mlir"
            if not keep(name):
                continue
            index.append(f"{file}: {_change(previous, text)}")
            files[file] = previous = text
        files[f"{stem}.ll"] = kernel.code
    files["index.txt"] = "\n".join(index) + "\n"
    _write(Path(directory), files)
    stage, ending = ("ptx", "ptx") if device(target).is_nvidia else ("asm", "s")
    text = compile(
        module, target, numerics=numerics, cache=cache, deterministic=deterministic, pipeline=pipeline
    ).artifact(stage)
    name = _safe(module.name)
    code = {
        f"{name}.{ending}": text,
        f"{name}.html": page(module, target, numerics, kernels, Code(_TITLES[stage], text)),
    }
    _write(Path(directory), code)
    return [*files, *code]


_TITLES = {"ptx": "PTX", "asm": "assembly"}


def _filter(pass_re: str | None) -> Callable[[str], bool]:
    if pass_re is None or pass_re in ("fusion-emitter", "mlir-fusion"):
        return lambda _name: True
    try:
        pattern = re.compile(pass_re)
    except re.error as error:
        raise UsageError(f"'{pass_re}' isn't a regular expression: {error}") from error
    return lambda name: pattern.search(name) is not None


def _change(before: str, after: str) -> str:
    """The growth in lines, in words."""
    if before == after:
        return "unchanged"
    lines = after.count("\n")
    if not before:
        return f"{lines} lines"
    difference = lines - before.count("\n")
    return f"{lines} lines ({difference:+d})" if difference else f"{lines} lines, changed"


def _safe(name: str) -> str:
    """A name that is a file name everywhere."""
    return re.sub(r"[^\w.-]", "_", name) or "module"


def _write(directory: Path, files: dict[str, str]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Beside the folder's files and renamed, so that no reader meets half a file, nor two writers each other's.
        with tempfile.TemporaryDirectory(dir=directory, prefix=".") as folder:
            for name, text in files.items():
                temporary = Path(folder) / name
                temporary.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
                os.replace(temporary, directory / name)
    except OSError as error:
        raise FileError(f"can't write to {directory}: {error.strerror}") from error
