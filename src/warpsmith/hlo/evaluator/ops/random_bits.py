"""rng-bit-generator: ThreeFry 2x32 and Philox 4x32-10, bit for bit what XLA expands them to.

In: a state of u64[2] (ThreeFry: key, counter) or u64[3] (Philox: key, 128-bit counter, low half first; in a Philox
state of u64[2] the key is the counter's high half as well).  Out: the new state and an array of random bits.  Counters
run over the elements in an order of each algorithm's own: ThreeFry deals its two words a counter into two halves of the
first even dimension, Philox its four words to neighbouring elements.  `rng_default` is Philox, as in XLA's CPU and GPU
compilers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.errors import UnsupportedHlo
from warpsmith.hlo.evaluator.ops.elementwise import unsupported
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import TupleShape

__all__ = ["RANDOM"]

_MASK = (1 << 64) - 1
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA
_PHILOX_ROUNDS = 10
_PHILOX_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)

Words = list[Array]
"""uint32 arrays of one shape, low word first."""


def _words(numbers: Array) -> Words:
    """The low and the high halves of uint64 numbers."""
    return [(numbers & np.uint64(0xFFFFFFFF)).astype(np.uint32), (numbers >> np.uint64(32)).astype(np.uint32)]


def _joined(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


def _threefry(counter: Words, key: Words) -> Words:
    """Twenty rounds of ThreeFry 2x32."""
    keys = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(_THREEFRY_PARITY)]
    a, b = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            a = a + b
            b = (b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))
            b = b ^ a
        a = a + keys[(group + 1) % 3]
        b = b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return [a, b]


def _philox(counter: Words, key: Sequence[int]) -> Words:
    """Ten rounds of Philox 4x32."""
    a, b, c, d = counter
    first, second = key
    for _ in range(_PHILOX_ROUNDS):
        left, right = (m * x.astype(np.uint64) for m, x in zip(_PHILOX_MULTIPLIERS, (a, c), strict=True))
        (left_low, left_high), (right_low, right_high) = _words(left), _words(right)
        a, b, c, d = right_high ^ b ^ np.uint32(first), right_low, left_high ^ d ^ np.uint32(second), left_low
        first, second = (first + _PHILOX_STEPS[0]) & 0xFFFFFFFF, (second + _PHILOX_STEPS[1]) & 0xFFFFFFFF
    return [a, b, c, d]


def _threefry_bits(state: Array, dims: Sequence[int], width: int) -> tuple[Array, Array]:
    """The new state and uint32 (uint64 where `width` is 64) numbers of `dims`."""
    key = _words(state[:1])
    if width == 64:
        count = math.prod(dims)
        low, high = _threefry(_words(state[1] + np.arange(count, dtype=np.uint64)), key)
        return _advanced(state, count), _joined(low, high).reshape(dims)
    split = _split_dimension(dims)
    halves = [-(-dim // 2) if axis == split else dim for axis, dim in enumerate(dims)] or [1]
    count = math.prod(halves)
    pair = [each.reshape(halves) for each in _threefry(_words(state[1] + np.arange(count, dtype=np.uint64)), key)]
    state = _advanced(state, count)
    if not dims:
        return state, pair[0].reshape(())
    dealt = np.stack(pair, axis=split + 1)
    dealt = dealt.reshape([2 * dim if axis == split else dim for axis, dim in enumerate(halves)])
    return state, dealt[tuple(slice(dim) for dim in dims)]


def _split_dimension(dims: Sequence[int]) -> int:
    """The first even dimension, or else the first of the largest."""
    for axis, dim in enumerate(dims):
        if dim % 2 == 0:
            return axis
    return max(range(len(dims)), key=lambda axis: (dims[axis], -axis), default=0)


def _advanced(state: Array, count: int) -> Array:
    counter = (int(state[1]) + count) & _MASK
    return np.array([state[0], counter], np.uint64)


def _philox_bits(state: Array, dims: Sequence[int], width: int) -> tuple[Array, Array]:
    """As `_threefry_bits`."""
    count = math.prod(dims) * (2 if width == 64 else 1)
    blocks = -(-count // 4)
    start = int(state[1]) | int(state[2 if len(state) == 3 else 0]) << 64
    low = np.uint64(start & _MASK) + np.arange(blocks, dtype=np.uint64)
    high = np.where(low < np.uint64(start & _MASK), np.uint64(((start >> 64) + 1) & _MASK), np.uint64(start >> 64))
    key = int(state[0])
    words = _philox([*_words(low), *_words(high)], (key & 0xFFFFFFFF, key >> 32))
    end = start + blocks
    new = np.array([key, end & _MASK, (end >> 64) & _MASK][: len(state)], np.uint64)
    if width == 64:
        numbers = np.stack([_joined(*words[:2]), _joined(*words[2:])], axis=1).reshape(-1)
    else:
        numbers = np.stack(words, axis=1).reshape(-1)
    return new, numbers[: math.prod(dims)].reshape(dims)


Generator = Callable[[Array, Sequence[int], int], "tuple[Array, Array]"]
_GENERATORS: dict[str, tuple[Generator, tuple[int, ...]]] = {
    "rng_three_fry": (_threefry_bits, (2,)),
    "rng_philox": (_philox_bits, (2, 3)),
    "rng_default": (_philox_bits, (2, 3)),
}
"""By algorithm: the generator, and the sizes of u64 state that it takes."""


def _rng_bit_generator(_: Caller, instruction: HloInstruction) -> Kernel:
    algorithm = str(instruction.attributes.get("algorithm", "rng_default")).lower()
    generator, sizes = _GENERATORS[algorithm]
    state_shape = instruction.operands[0].array_shape
    is_tuple = isinstance(instruction.shape, TupleShape)
    result = instruction.shape.leaves()[-1]
    words = state_shape.byte_size // 8
    if state_shape.dtype.name not in ("u32", "u64") or words not in sizes or state_shape.byte_size % 8:
        raise unsupported(instruction, f"a state of {state_shape.text(layout=False)}")
    target = result.dtype

    def kernel(values: Sequence[Value]) -> Value:
        (given,) = arrays_of(values)
        state = np.ascontiguousarray(given).view(np.uint64)
        new, bits = generator(state, result.dims, 64 if target.bits == 64 else 32)
        numbers = _as_type(bits, target)
        return (new.view(given.dtype), numbers) if is_tuple else numbers

    return kernel


def _as_type(bits: Array, target: DType) -> Array:
    """The low bits of each number, as the bits of an element of `target`."""
    narrow = bits.astype(f"u{max(target.bits, 8) // 8}")
    if target.bits < 8:
        narrow = narrow & np.uint8((1 << target.bits) - 1)
    return narrow.copy().view(target.numpy)  # a copy is contiguous, of rank 0 as well


def _refuse(_: Caller, instruction: HloInstruction) -> Kernel:
    raise UnsupportedHlo(
        f"{instruction.opcode} '{instruction.name}' draws from a state that outlives the call, so its results can't "
        "be checked",
        span=instruction.span,
        help="draw with rng-bit-generator, which takes its state as an operand",
    )


RANDOM: dict[str, Rule] = {
    "rng-bit-generator": _rng_bit_generator,
    "rng": _refuse,
    "rng-get-and-update-state": _refuse,
}
