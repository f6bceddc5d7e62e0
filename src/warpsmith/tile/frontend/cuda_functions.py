"""`T.cuda`: synchronisation and exchange among threads.  Reference: tile.md 2.6."""

from __future__ import annotations

from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError, did_you_mean
from warpsmith.ir.dialects import nvgpu
from warpsmith.tile.dtypes import BOOL, INT32
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.state import KernelState, current
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.scopes import WARPGROUP
from warpsmith.tile.shuffles import shuffle

__all__ = ["CudaFunctions", "warp_shuffle", "warp_shuffle_down", "warp_shuffle_up", "warp_shuffle_xor"]

_NEEDS_HARDWARE = {
    "cluster_sync": "thread block clusters (compute capability 9)",
    "grid_sync": "a cooperative launch",
    "mbarrier_init": "asynchronous barriers (compute capability 9)",
    "mbarrier_wait": "asynchronous barriers (compute capability 9)",
    "func_call": "code in another language, which nothing here can check or simulate",
}


def _device(name: str) -> KernelState:
    state = current(name)
    state.need_device(name)
    return state


class CudaFunctions:
    """What stands behind `T.cuda`."""

    def cta_sync(self) -> None:
        """Wait for all threads of the block."""
        _device("T.cuda.cta_sync").b.create("gpu.barrier")

    def warp_sync(self) -> None:
        """Wait for all lanes of the warp."""
        nvgpu.warp_sync(_device("T.cuda.warp_sync").b)

    def warpgroup_sync(self, barrier: Any = 8) -> None:
        """Wait for the 128 threads of a warpgroup at a named barrier, of number 1 to 15; each warpgroup takes one of
        its own, such as 1 + the warpgroup's number, at which primitives called by warpgroups wait too.
        """
        state = _device("T.cuda.warpgroup_sync")
        if isinstance(barrier, Scalar) and (barrier.type.is_integer or barrier.type.kind == "index"):
            nvgpu.named_barrier(state.b, state.scalars.cast(barrier, INT32).value, WARPGROUP)
            return
        if isinstance(barrier, bool) or not isinstance(barrier, int) or not 1 <= barrier <= 15:
            given = f"a {barrier.type}" if isinstance(barrier, Scalar) else repr(barrier)
            raise InvalidTileProgram(f"a named barrier has a number from 1 to 15, not {given}")
        nvgpu.named_barrier(state.b, barrier, WARPGROUP)

    def elect_sync(self) -> Scalar:
        """True in one lane of the warp; which one isn't said."""
        return Scalar(nvgpu.elect_sync(_device("T.cuda.elect_sync").b), BOOL)

    def __getattr__(self, name: str) -> Any:
        needs = _NEEDS_HARDWARE.get(name)
        if needs is not None:
            raise InvalidTileProgram(f"T.cuda.{name} needs {needs}; no lowering here uses it yet")
        known = ["cta_sync", "warp_sync", "warpgroup_sync", "elect_sync", *_NEEDS_HARDWARE]
        raise TileSyntaxError(
            f"T.cuda has no '{name}'", help=did_you_mean(name, known) or f"it has {', '.join(known[:4])}"
        )


_SHUFFLED = (8, 16, 32, 64)


def _shuffle(mode: str, mask: Operand, value: Any, offset: Operand, width: int, warp_size: int) -> Scalar:
    state = _device(f"T.tvm_warp_shuffle_{mode}")
    if width != 32 or warp_size != 32:
        raise InvalidTileProgram(
            f"a shuffle among {width} of {warp_size} lanes", help="shuffle among all 32 lanes of a warp"
        )
    if not isinstance(mask, Scalar) and (int(mask) & 0xFFFFFFFF) != 0xFFFFFFFF:
        raise InvalidTileProgram(f"a shuffle with mask {int(mask):#x}", help="all lanes take part: 0xFFFFFFFF")
    scalar = value if isinstance(value, Scalar) else state.scalars.scalar(value)
    if scalar.type.kind in ("bool", "index"):
        scalar = state.scalars.cast(scalar, INT32)
    if scalar.type.bits not in _SHUFFLED:
        raise InvalidTileProgram(f"{scalar.type} can't be shuffled")
    distance = state.scalars.cast(offset, INT32)
    return Scalar(shuffle(state.b, mode, scalar.value, distance.value, state.target or "shuffled"), scalar.type)


def warp_shuffle(mask: Operand, value: Any, lane: Operand, width: int = 32, warp_size: int = 32) -> Scalar:
    """The value that lane number `lane` has."""
    return _shuffle("idx", mask, value, lane, width, warp_size)


def warp_shuffle_up(mask: Operand, value: Any, offset: Operand, width: int = 32, warp_size: int = 32) -> Scalar:
    """The value of the lane `offset` before."""
    return _shuffle("up", mask, value, offset, width, warp_size)


def warp_shuffle_down(mask: Operand, value: Any, offset: Operand, width: int = 32, warp_size: int = 32) -> Scalar:
    """The value of the lane `offset` further on."""
    return _shuffle("down", mask, value, offset, width, warp_size)


def warp_shuffle_xor(mask: Operand, value: Any, offset: Operand, width: int = 32, warp_size: int = 32) -> Scalar:
    """The value of the lane whose number differs by xor with `offset`."""
    return _shuffle("xor", mask, value, offset, width, warp_size)
