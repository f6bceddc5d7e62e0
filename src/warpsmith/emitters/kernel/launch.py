"""How many threads and blocks a kernel has, and how many elements a thread takes.

In: a fusion's analysis and the shape that the launch runs over.  Out: `Launch`.
XLA: `xla/service/gpu/launch_dimensions.cc`.
"""

from __future__ import annotations

import math

from warpsmith.devices import Device
from warpsmith.dtypes import DType
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.transposes import normalize_transpose
from warpsmith.hlo.attributes import Window
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape, TupleShape
from warpsmith.kernel import Launch

__all__ = ["calculate_launch", "shared_tile_bytes", "split_grid_x", "unroll_factor"]

WARPS_PER_BLOCK = 4
DEFAULT_UNROLL = 4
MAX_UNROLLED_WINDOW = 8
MAX_UNROLLED_CONCATENATE = 10
BLACKWELL_EMITTERS = ("loop", "transpose", "concatenate")
BLACKWELL_MOST = 32
BLACKWELL_LEAST = 8
BYTE = 8


def calculate_launch(elements: int, device: Device, unroll: int) -> Launch:
    """Enough blocks of up to four warps for `elements`; a grid too long in x is split evenly into y."""
    if elements <= 1:
        return Launch((1, 1, 1), (1, 1, 1), unroll)
    items = -(-elements // unroll)
    threads = min(WARPS_PER_BLOCK * device.warp_size, items)
    blocks = -(-items // threads)
    rows = -(-blocks // device.grid_limits[0])
    return Launch((-(-blocks // rows), rows, 1), (threads, 1, 1), unroll)


def split_grid_x(blocks: int, device: Device) -> tuple[int, int]:
    """`blocks` as (x, y) with x within the device's limit, y a power of two."""
    x, y = blocks, 1
    while x > device.grid_limits[0]:
        y *= 2
        x = -(-blocks // y)
    return x, y


def shared_tile_bytes(dtype: DType, elements: int, run: int = 1) -> int:
    """What a tile takes in shared memory, where `run` neighbouring elements are always stored together.

    Elements narrower than a byte are packed where runs fill whole bytes and become vectors, else take a byte each:
    no two threads write one byte (`passes/pack_sub_byte.py`).
    """
    is_vector = run & (run - 1) == 0
    if dtype.bits < BYTE and not (is_vector and run * dtype.bits % BYTE == 0):
        return elements
    return dtype.byte_size(elements)


def unroll_factor(analysis: FusionAnalysis, shape: Shape) -> int:
    """Elements a thread takes when the launch runs over `shape`: a power of two, at least a whole byte of output."""
    device, elements = analysis.device, shape.elements
    unroll = 1
    if elements >= device.resident_threads and not any(map(_suffers_from_unrolling, analysis.instructions)):
        unroll = math.gcd(elements, _most_unrolling(analysis))
    return max(unroll, -(-8 // analysis.smallest_output_bits))


def _suffers_from_unrolling(instruction: HloInstruction) -> bool:
    match instruction.opcode:
        case "sort" | "dot":
            return True
        case "reduce":
            return isinstance(instruction.shape, TupleShape)
        case "concatenate":
            return len(instruction.operands) > MAX_UNROLLED_CONCATENATE
        case "reduce-window":
            window = instruction.attributes.get("window")
            size = math.prod(dim.size for dim in window.dims) if isinstance(window, Window) else 1
            return size > MAX_UNROLLED_WINDOW
        case _:
            return False


def _most_unrolling(analysis: FusionAnalysis) -> int:
    device = analysis.device
    opcodes = {each.opcode for each in analysis.instructions}
    if (
        not device.is_blackwell
        or analysis.emitter not in BLACKWELL_EMITTERS
        or analysis.smallest_output_bits >= device.vector_bits // 4
        or len(analysis.roots) != 1
        or "reduce" in opcodes
    ):
        return DEFAULT_UNROLL
    leaves = [leaf for each in (*analysis.parameters, *analysis.roots) for leaf in each.shape.leaves()]
    widest = max([8, *(leaf.dtype.bits for leaf in leaves if leaf.is_array)])
    factor = min(BLACKWELL_MOST, device.vector_bits // widest)
    factor = 1 << (factor.bit_length() - 1)
    if "pad" in opcodes:
        factor = min(factor, BLACKWELL_LEAST)
    minors = [_transposed_minor(each) for each in analysis.instructions if each.opcode == "transpose"]
    while factor > DEFAULT_UNROLL and any(minor < factor for minor in minors):
        factor //= 2
    return max(factor, BLACKWELL_LEAST)


def _transposed_minor(transpose: HloInstruction) -> int:
    dims, _ = normalize_transpose(transpose.array_shape, transpose.ints("dimensions"))
    return dims[-1] if dims else 1
