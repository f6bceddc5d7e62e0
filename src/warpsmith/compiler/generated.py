"""Generated inputs of a module, narrow enough that its outputs say something.

In: a module, a seed, and a way to evaluate it.  Out: a `Draw`: arrays, what the reference makes of them, and how many
elements of each output a comparison proves something of.  Of an element it proves nothing if that is infinite, NaN or
no larger than its bound; of zeros, which underflow makes as well, if there is nearly nothing else.  Where that is more
than three quarters of an output (log of mixed signs is half NaN, rightly), the inputs are drawn anew from the next
profile of `_LADDER`.  Elements that are the same for all profiles are constants, and count as compared; infinite ones
only if the module names an infinity or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpsmith.arrays import Array
from warpsmith.compiler.scatter_inputs import make_scatters_meet
from warpsmith.dtypes import DType, Kind
from warpsmith.errors import WarpsmithError
from warpsmith.hlo.evaluator import evaluate_with_limits
from warpsmith.hlo.evaluator.bounds.values import number
from warpsmith.hlo.evaluator.interpreter import array_leaves
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.verifier import verify_instruction
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile, random_array

__all__ = [
    "Draw",
    "Evaluated",
    "draw",
    "informative",
    "is_vacuous",
    "output_types",
    "parameter_shapes",
    "random_inputs",
    "unjudged",
]

Evaluated = tuple[Sequence[Array], Sequence[Array], Sequence[Array]]
"""Outputs, how far a result may be from them, and where that is an estimate: as `evaluate_with_limits` gives them."""

_ORDERED = frozenset(
    ("reduce", "reduce-window", "dot", "convolution", "scatter", "select-and-scatter", "sort", "while", "cholesky")
)
"""Ops whose result on infinities and NaN depends on an order that HLO leaves open, or on rounding."""

_LADDER = (Profile.MIXTURE, Profile.FINITE, Profile.TAME, Profile.NARROW, Profile.NEAR_ONE, Profile.SMALL)
_CHUNK = 1 << 20
_FEW = 0.01


@dataclass(frozen=True, slots=True)
class Draw:
    """Inputs, the profile that they come from, the reference's results, and how many elements of each are compared."""

    arrays: list[Array]
    profile: Profile
    evaluated: Evaluated
    compared: list[int]

    @property
    def vacuous(self) -> list[int]:
        """The outputs of which most elements prove nothing."""
        sizes = [each.size for each in self.evaluated[0]]
        return [i for i, (n, size) in enumerate(zip(self.compared, sizes, strict=True)) if is_vacuous(n, size)]


def random_inputs(module: HloModule, seed: int = 0, numerics: str = "strict") -> list[Array]:
    """Seeded input for every parameter leaf: what `draw` chooses, or its first try where the module can't be evaluated.

    Raises InvalidHlo for a parameter that no memory could hold.
    """
    try:
        return draw(
            module, seed, lambda arrays: evaluate_with_limits(module, *arrays, op_ulp_bound=bound), numerics
        ).arrays
    except WarpsmithError:
        return unjudged(module, seed, numerics)


def unjudged(module: HloModule, seed: int = 0, numerics: str = "strict", profile: Profile | None = None) -> list[Array]:
    """Seeded input of a profile, by default the widest that means something: nothing is evaluated.

    Indices of scatters keep what the module promises; in strict numerics some of their sums are subnormal.
    """
    for parameter in module.entry.parameters:
        verify_instruction(parameter)
    shapes, chosen = enumerate(parameter_shapes(module)), profile or _widest(module)
    arrays = [random_array(s.dtype, s.dims, seed=seed, parameter=i, profile=chosen) for i, s in shapes]
    make_scatters_meet(module, arrays, seed=seed, subnormal=numerics == "strict")
    return arrays


def parameter_shapes(module: HloModule) -> list[Shape]:
    """The array leaves of the entry's parameters, in order."""
    return [leaf for parameter in module.entry.parameters for leaf in array_leaves(parameter.shape)]


def draw(module: HloModule, seed: int, evaluated: Callable[[list[Array]], Evaluated], numerics: str = "strict") -> Draw:
    """The widest inputs that make most elements of each output informative, or those that come nearest to that."""
    types = output_types(module)
    best: Draw | None = None
    first: Sequence[Array] = ()
    same: list[NDArray[np.bool_]] = []
    for profile in _LADDER[_LADDER.index(_widest(module)) :]:
        arrays = unjudged(module, seed, numerics, profile)
        found = evaluated(arrays)
        masks = [informative(*each) for each in zip(*found, types, strict=True)]
        tried = Draw(arrays, profile, found, [int(mask.sum()) for mask in masks])
        if not tried.vacuous or not arrays:
            return tried if arrays else Draw(arrays, profile, found, [each.size for each in found[0]])
        if best is None:
            first, same = found[0], [~mask for mask in masks]
        else:
            same = [
                old & ~mask & _same_bits(a, b) for old, mask, a, b in zip(same, masks, first, found[0], strict=True)
            ]
        if best is None or _least_share(tried) > _least_share(best):
            best = tried
    assert best is not None
    outputs, limits, _ = best.evaluated
    counted: list[int] = []
    for fixed, output, limit, dtype, known in zip(same, outputs, limits, types, best.compared, strict=True):
        with np.errstate(all="ignore"):
            if not _names_infinity(module):
                fixed &= np.isfinite(np.abs(number(output, dtype))).reshape(-1)
            counted.append(known + int((fixed & np.isfinite(limit).reshape(-1)).sum()))
    return Draw(best.arrays, best.profile, best.evaluated, counted)


def output_types(module: HloModule) -> list[DType]:
    """The dtypes of the module's output arrays."""
    return [leaf.dtype for leaf in module.entry.root.shape.leaves() if leaf.dtype.kind is not Kind.TOKEN]


def informative(output: Array, limit: Array, estimated: Array, dtype: DType) -> NDArray[np.bool_]:
    """Which elements (flat) a comparison proves something of."""
    flat, limits, guessed = output.reshape(-1), limit.reshape(-1), estimated.reshape(-1)
    mask, exact = np.empty(flat.size, np.bool_), np.zeros(flat.size, np.bool_)
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        with np.errstate(all="ignore"):
            size = np.abs(number(flat[part], dtype))
            bounds = limits[part]
            if dtype.is_float or dtype.is_complex:
                mask[part] = np.isfinite(size) & (bounds < size)
                exact[part] = (size == 0) & (bounds == 0) & ~guessed[part]
            else:
                mask[part] = bounds < np.maximum(size.astype(np.float64), 1)
    # Underflow leaves no trace in bounds: zeros are believed where something beside them isn't zero.
    return mask | exact if mask.sum() > _FEW * mask.size else mask


def is_vacuous(compared: int, elements: int) -> bool:
    """Whether so few of an output's elements were compared that a match says nothing."""
    return 4 * compared < elements


def _widest(module: HloModule) -> Profile:
    orders = any(each.opcode in _ORDERED for each in module.instructions())
    return Profile.TAME if orders else Profile.MIXTURE


def _names_infinity(module: HloModule) -> bool:
    """Whether a constant holds an infinity or NaN, so that results may have them on purpose."""
    for each in module.instructions():
        literal = each.literal
        if each.opcode == "constant" and literal is not None and not literal.is_tuple:
            with np.errstate(all="ignore"):
                if literal.dtype.is_float and not np.isfinite(number(literal.array, literal.dtype)).all():
                    return True
    return False


def _least_share(tried: Draw) -> float:
    return min(n / each.size for n, each in zip(tried.compared, tried.evaluated[0], strict=True) if each.size)


def _same_bits(a: Array, b: Array) -> NDArray[np.bool_]:
    """Which elements are equal bit for bit, NaN of any kind alike."""
    with np.errstate(all="ignore"):
        equal = np.asarray((a == b) | ((a != a) & (b != b)))
    return equal.reshape(-1).astype(np.bool_)
