"""`T.ptx`: waiting for copies in flight."""

from __future__ import annotations

from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError, did_you_mean
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.dialects import nvgpu
from warpsmith.tile.frontend.state import current

__all__ = ["PtxFunctions"]

_PRIMITIVES = {
    "ldmatrix": "Tx.warp.copy(registers, shared) uses it where layouts fit",
    "stmatrix": "Tx.warp.copy(shared, registers) uses it where layouts fit",
    "mma": "Tx.warp.gemm(dst, a, b) uses it where layouts fit",
}
_NEEDS_HARDWARE = {
    "cp_async_bulk": "tensor maps (compute capability 9)",
    "mbarrier": "asynchronous barriers (compute capability 9)",
    "wgmma": "warpgroup matrix units (compute capability 9)",
    "tcgen05": "tensor memory (compute capability 10)",
    "setmaxnreg": "registers that move between warpgroups (compute capability 9)",
}


def _builder(name: str) -> Builder:
    state = current(name)
    state.need_device(name)
    return state.b


class _CpAsync:
    """`T.ptx.cp_async`: a thread's groups of asynchronous copies."""

    def commit_group(self) -> None:
        """The copies that this thread has started since the last commit are one group."""
        nvgpu.async_commit(_builder("T.ptx.cp_async.commit_group"))

    def wait_group(self, n: Any = 0) -> None:
        """Wait until at most the latest `n` of this thread's groups are in flight; other threads need a barrier."""
        b = _builder("T.ptx.cp_async.wait_group")
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            given = n if isinstance(n, (int, float, str)) else "a value of the kernel"
            raise InvalidTileProgram(
                f"wait_group takes an integer that is known while the kernel is read, 0 or more, not {given}",
                help="wait_group(1) leaves the latest group in flight, wait_group(0) none",
            )
        nvgpu.async_wait(b, n)

    def __call__(self, *_: Any, **__: Any) -> None:
        raise InvalidTileProgram(
            "T.ptx.cp_async copies nothing by itself", help="Tx.cta.copy_async(dst, src) uses it where layouts fit"
        )

    def __getattr__(self, name: str) -> Any:
        known = ["commit_group", "wait_group"]
        if name.startswith("__"):  # Python asks, not an author
            raise AttributeError(name)
        raise TileSyntaxError(
            f"T.ptx.cp_async has no '{name}'", help=did_you_mean(name, known) or f"it has {' and '.join(known)}"
        )


class PtxFunctions:
    """What stands behind `T.ptx`."""

    cp_async = _CpAsync()

    def __getitem__(self, text: object) -> Any:
        raise InvalidTileProgram(
            f"T.ptx[{text!r}] puts an instruction in by its text, which nothing here can check or simulate",
            help="the simulator, PTX and CUDA know what T, T.cuda and Tx have",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks, not an author
            raise AttributeError(name)
        if name in _PRIMITIVES:
            raise InvalidTileProgram(f"T.ptx.{name} isn't called by authors", help=_PRIMITIVES[name])
        if name in _NEEDS_HARDWARE:
            raise InvalidTileProgram(f"T.ptx.{name} needs {_NEEDS_HARDWARE[name]}; no lowering here uses it yet")
        known = ["cp_async", *_PRIMITIVES, *_NEEDS_HARDWARE]
        raise TileSyntaxError(f"T.ptx has no '{name}'", help=did_you_mean(name, known) or "it has cp_async")
