"""Functions of CUDA's libdevice for a module that calls them.

libdevice is optional; `cuda_files` says where it is looked for (`WARPSMITH_LIBDEVICE` names the file).  The file
holds 350 functions; what we may call is cut out once a process (80 ms), each function with what it calls, and kept.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from warpsmith.backends.nvptx import cuda_files
from warpsmith.errors import LoweringError
from warpsmith.passes.library_calls import FUNCTIONS

__all__ = ["called", "find_libdevice", "link"]

_CALL = re.compile(r"^declare [^@\n]*@(__nv_\w+)\(", re.MULTILINE)
_NAMES = frozenset(f"__nv_{name}" for name in FUNCTIONS.values())


def called(llvm_text: str) -> list[str]:
    """The libdevice functions that a module declares."""
    return _CALL.findall(llvm_text) if "@__nv_" in llvm_text else []


def find_libdevice() -> Path | None:
    """The file to use, or None."""
    return cuda_files.find("nvvm/libdevice/libdevice.10.bc", "WARPSMITH_LIBDEVICE")


def link(llvm: Any, module: Any, names: list[str], passes: Any) -> None:
    """Add the bodies of `names` to an LLVM module; they are inlined where they are called.

    `llvm` is llvmlite's binding, `passes` a PassBuilder of the target.  LoweringError names what is missing when there
    is no libdevice, or a function isn't one that we call.
    """
    unknown = [name for name in names if name not in _NAMES]
    if unknown:
        raise LoweringError(f"{', '.join(unknown)} is no function of libdevice that is linked here")
    path = find_libdevice()
    if path is None:
        ops = ", ".join(name.removeprefix("__nv_") for name in names)
        raise LoweringError(
            f"{ops} of f64 needs CUDA's libdevice on a GPU, and there is none here",
            help="pip install 'warpsmith[cuda]', or set CUDA_HOME to a CUDA toolkit, or compute in f32",
        )
    for name in names:
        function = llvm.parse_bitcode(_function(llvm, passes, path, name))
        function.triple, function.data_layout = module.triple, module.data_layout
        module.link_in(function)
    for each in module.functions:
        if each.name in names:
            each.linkage = "internal"
    _run(llvm, module, passes, "always_inliner_pass", "global_dead_code_eliminate_pass", "strip_dead_prototype_pass")


_kept: dict[tuple[Path, str], bytes] = {}


def _function(llvm: Any, passes: Any, path: Path, name: str) -> bytes:
    """One function and all that it calls."""
    found = _kept.get((path, name))
    if found is None:
        module = llvm.parse_bitcode(_chosen(llvm, passes, path))
        found = _kept[path, name] = _cut(llvm, module, passes, frozenset({name}))
    return found


def _chosen(llvm: Any, passes: Any, path: Path) -> bytes:
    """The functions that we may call."""
    found = _kept.get((path, ""))
    if found is None:
        module = llvm.parse_bitcode(path.read_bytes())
        found = _kept[path, ""] = _cut(llvm, module, passes, _NAMES)
    return found


def _cut(llvm: Any, module: Any, passes: Any, names: frozenset[str]) -> bytes:
    for each in module.functions:
        if not each.is_declaration and each.name not in names:
            each.linkage = "internal"
    _run(llvm, module, passes, "global_dead_code_eliminate_pass", "strip_dead_prototype_pass")
    return bytes(module.as_bitcode())


def _run(llvm: Any, module: Any, passes: Any, *names: str) -> None:
    manager = llvm.create_new_module_pass_manager()
    for name in names:
        getattr(manager, f"add_{name}")()
    manager.run(module, passes)
