"""fft: complex128 transforms over the last dimensions, rounded once.

In: floats (RFFT) or complex numbers.  Out: complex numbers, or floats (IRFFT).  The inverse forms divide by the number
of points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = ["SPECTRAL", "transform_axes"]

Transform = Callable[[Array, Sequence[int], Sequence[int]], Array]

_TRANSFORMS: Mapping[str, Transform] = {
    "FFT": lambda x, sizes, axes: np.fft.fftn(x, axes=axes),
    "IFFT": lambda x, sizes, axes: np.fft.ifftn(x, axes=axes),
    "RFFT": lambda x, sizes, axes: np.fft.rfftn(x, axes=axes),
    "IRFFT": lambda x, sizes, axes: np.fft.irfftn(x, s=sizes, axes=axes),
}


def transform_axes(instruction: HloInstruction) -> tuple[int, ...]:
    """The dimensions that an fft runs over."""
    rank = instruction.operands[0].array_shape.rank
    return tuple(range(rank - len(instruction.ints("fft_length")), rank))


def _fft(_: Caller, instruction: HloInstruction) -> Kernel:
    transform = _TRANSFORMS[str(instruction.attributes.get("fft_type", "FFT")).upper()]
    sizes, axes = instruction.ints("fft_length"), transform_axes(instruction)
    shape = instruction.array_shape

    def kernel(values: Sequence[Value]) -> Value:
        (x,) = arrays_of(values)
        if not shape.elements:
            return np.zeros(shape.dims, shape.dtype.numpy)
        exact = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        return transform(exact, sizes, axes).astype(shape.dtype.numpy)

    return kernel


SPECTRAL: dict[str, Rule] = {"fft": _fft}
