"""`T.cuda`: synchronisation and exchange among threads."""

from __future__ import annotations

from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError, did_you_mean
from warpsmith.ir.dialects import nvgpu, scf, tile
from warpsmith.tile.frontend import subscripts
from warpsmith.tile.frontend.numbers import number
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.state import KernelState, current
from warpsmith.tile.frontend.values import Buffer, Region, Scalar
from warpsmith.tile.model.buffers import buffer_of
from warpsmith.tile.model.dtypes import BOOL, INDEX, INT32
from warpsmith.tile.model.scopes import WARPGROUP
from warpsmith.tile.model.shuffles import shuffle

__all__ = ["CudaFunctions", "warp_shuffle", "warp_shuffle_down", "warp_shuffle_up", "warp_shuffle_xor"]

_NEEDS_HARDWARE = {
    "cluster_sync": "thread block clusters (compute capability 9)",
    "grid_sync": "a cooperative launch",
    "mbarrier_init": "asynchronous barriers (compute capability 9)",
    "mbarrier_wait": "asynchronous barriers (compute capability 9)",
    "thread_fence": "an order of one thread's writes that others may rely on without a barrier",
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

    def warp_reduce(self, value: Any, op: str, width: int = 32) -> Scalar:
        """The sum ("sum"), "max" or "min" of the values of `width` neighbouring lanes, in each of them."""
        state = _device("T.cuda.warp_reduce")
        combine = _COMBINED.get(op)
        if combine is None:
            raise InvalidTileProgram(f"lanes aren't reduced by '{op}'", help=f"by {', '.join(_COMBINED)}")
        if width not in (2, 4, 8, 16, 32):
            raise InvalidTileProgram(f"a reduction over {width} lanes", help="over 2, 4, 8, 16 or 32 neighbours")
        found = state.scalars.scalar(number(state, value))
        for distance in (16, 8, 4, 2, 1):
            if distance < width:
                other = warp_shuffle_xor(_ALL_LANES, found, distance)
                found = state.scalars.scalar(state.scalars.binary(combine, found, other), found.type)
        return found

    def warp_sum(self, value: Any, width: int = 32) -> Scalar:
        """The sum of the values of `width` neighbouring lanes."""
        return self.warp_reduce(value, "sum", width)

    def warp_max(self, value: Any, width: int = 32) -> Scalar:
        """The largest of the values of `width` neighbouring lanes."""
        return self.warp_reduce(value, "max", width)

    def warp_min(self, value: Any, width: int = 32) -> Scalar:
        """The least of the values of `width` neighbouring lanes."""
        return self.warp_reduce(value, "min", width)

    def cta_reduce(self, value: Any, op: str, num_warps: int, scratch: Any) -> Scalar:
        """The sum, "max" or "min" of the values of all threads of a block of `num_warps` warps, in each of them.

        `scratch` is shared memory for a number a warp, which is free again afterwards: a buffer of one dim, or
        `buffer.ptr_to([first])`.
        """
        state = _device("T.cuda.cta_reduce")
        place = subscripts.region(state, scratch, 0) if isinstance(scratch, Buffer) else scratch
        if not isinstance(place, Region) or len(place.mins) != 1 or not buffer_of(place.buffer.value).is_shared:
            raise InvalidTileProgram("a block is reduced through shared memory of one dim, an element a warp")
        if num_warps < 1:
            raise InvalidTileProgram(f"a block has a positive number of warps, not {num_warps!r}")
        own = self.warp_reduce(value, op)
        ids = [
            tile.scope_id(state.b, kind, sizes, 1)[0] for kind, sizes in (("warp_id", (num_warps,)), ("lane_id", None))
        ]
        warp, lane = (Scalar(id, INDEX) for id in ids)
        first = state.scalars.condition(state.scalars.scalar(state.scalars.binary("eq", lane, 0)))
        branch = scf.if_(state.b, first.value)
        with state.inside(branch.regions[0].blocks[0]):
            subscripts.store(state, _element(state, place, warp), own)
            scf.yield_(state.b)
        self.cta_sync()
        found: Operand = subscripts.load(state, _element(state, place, 0))
        for turn in range(1, num_warps):
            other = subscripts.load(state, _element(state, place, turn))
            found = state.scalars.binary(_COMBINED[op], found, other)
        self.cta_sync()
        return state.scalars.scalar(found, own.type)

    def cta_sum(self, value: Any, num_warps: int, scratch: Any) -> Scalar:
        """The sum of the values of all threads of a block."""
        return self.cta_reduce(value, "sum", num_warps, scratch)

    def cta_max(self, value: Any, num_warps: int, scratch: Any) -> Scalar:
        """The largest of the values of all threads of a block."""
        return self.cta_reduce(value, "max", num_warps, scratch)

    def cta_min(self, value: Any, num_warps: int, scratch: Any) -> Scalar:
        """The least of the values of all threads of a block."""
        return self.cta_reduce(value, "min", num_warps, scratch)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks, not an author
            raise AttributeError(name)
        needs = _NEEDS_HARDWARE.get(name)
        if needs is not None:
            raise InvalidTileProgram(f"T.cuda.{name} needs {needs}; no lowering here uses it yet")
        known = [each for each in vars(CudaFunctions) if not each.startswith("_")] + [*_NEEDS_HARDWARE]
        raise TileSyntaxError(f"T.cuda has no '{name}'", help=did_you_mean(name, known) or f"it has {', '.join(known)}")


def _element(state: KernelState, place: Region, count: Scalar | int) -> Region:
    """The element so many after one."""
    first = place.mins[0]
    return subscripts.region(state, place.buffer, count if first == 0 else state.scalars.binary("add", first, count))


_COMBINED = {"sum": "add", "max": "max", "min": "min"}
_ALL_LANES = 0xFFFFFFFF
_SHUFFLED = (8, 16, 32, 64)


def _shuffle(mode: str, mask: Operand, value: Any, offset: Operand, width: int, warp_size: int) -> Scalar:
    state = _device(f"T.tvm_warp_shuffle_{mode}")
    if width != 32 or warp_size != 32:
        raise InvalidTileProgram(
            f"a shuffle among {width} of {warp_size} lanes", help="shuffle among all 32 lanes of a warp"
        )
    if not isinstance(mask, Scalar) and (int(mask) & _ALL_LANES) != _ALL_LANES:
        raise InvalidTileProgram(f"a shuffle with mask {int(mask):#x}", help="all lanes take part: 0xFFFFFFFF")
    scalar = state.scalars.scalar(number(state, value))
    if scalar.type.kind in ("bool", "index"):
        scalar = state.scalars.cast(scalar, INT32)
    if scalar.type.bits not in _SHUFFLED:
        raise InvalidTileProgram(f"{scalar.type} can't be shuffled")
    distance = state.scalars.cast(number(state, offset), INT32)
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
