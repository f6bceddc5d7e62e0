"""How a reduction's values may be combined: in which type, by which computation, from which start.

In: a reduce.  Out: its `CombinerRule`, or why partial results don't give its value, in words.

Elements are taken in no particular order, so a reducer that is a program of its own is tried on small numbers first.
A sum or product of floats narrower than f32 is kept in f32 and rounded once (the numerics contract; upstream keeps it
in its own type).  Partial results start from a value that changes nothing: the initial value where that is a constant
that may be combined any number of times, else the operation's identity, and the initial value is combined once, in the
end (upstream takes the initial value for the identity always).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.hlo.builder import reducer
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.shapes import Shape

__all__ = ["CombinerRule", "combiner_opcode", "combiner_rule", "partial_combiner"]

Numbers = tuple[Array, ...]

F32 = by_name("f32")
SAMPLES = 12


@dataclass(frozen=True, slots=True)
class CombinerRule:
    """One reduce's arithmetic.  `dtypes` are its results' types, `kept` those that partial results have.

    `identity` holds one number an operand to start from; without it a partial result starts from the initial values.
    """

    hero: HloInstruction
    computation: HloComputation
    dtypes: tuple[DType, ...]
    kept: tuple[DType, ...]
    identity: tuple[float | int, ...] | None


def combiner_opcode(computation: HloComputation) -> str | None:
    """The opcode of a reducer that is one elementwise op on its two parameters; None for any other."""
    root = computation.root
    row = OPCODES.get(root.opcode)
    if len(computation.parameters) != 2 or row is None or not row.elementwise or len(root.operands) != 2:
        return None
    return root.opcode if set(root.operands) == set(computation.parameters) else None


def combiner_rule(hero: HloInstruction) -> CombinerRule | str:
    """The rule of a reduce; in words why its value can't be put together from partial results."""
    computation = hero.attr("to_apply", HloComputation)
    count = len(hero.operands) // 2
    dtypes = tuple(leaf.dtype for leaf in hero.shape.leaves())
    inits = hero.operands[count:]
    opcode, kept = None, dtypes
    if count == 1:
        opcode = combiner_opcode(computation)
        computation, wide = partial_combiner(computation, dtypes[0])
        kept = (wide,)
    if opcode is None and not _is_free_of_order(computation, dtypes):
        return f"the value of '{hero.name}' depends on the order in which '{computation.name}' is given the elements"
    if _may_repeat(opcode, inits, computation):
        return CombinerRule(hero, computation, dtypes, kept, None)
    identity = _identity(opcode, kept[0]) if opcode is not None else None
    if identity is None:
        return (
            f"'{hero.name}' starts from a value that its computation '{computation.name}' may not be given more than "
            "once, and no value is known that changes nothing"
        )
    return CombinerRule(hero, computation, dtypes, kept, (identity,))


def partial_combiner(computation: HloComputation, dtype: DType) -> tuple[HloComputation, DType]:
    """What combines partial results, and in which type: f32 for sums and products of narrower floats."""
    opcode = combiner_opcode(computation)
    if opcode in ("add", "multiply") and dtype.is_float and dtype.bits < F32.bits:
        return _wide(opcode, F32), F32
    return computation, dtype


@lru_cache(maxsize=8)
def _wide(opcode: str, dtype: DType) -> HloComputation:
    return reducer(f"{opcode}_{dtype.name}", opcode, Shape(dtype))


def _apply(computation: HloComputation, left: Numbers, right: Numbers) -> Numbers:
    """The computation's values by the interpreter."""
    # Only a fusion with a reducer of its own needs it.
    from warpsmith.hlo.evaluator import evaluate_computation

    return tuple(np.asarray(each) for each in evaluate_computation(computation, *left, *right))


def _may_repeat(opcode: str | None, inits: Sequence[HloInstruction], computation: HloComputation) -> bool:
    """Whether the initial values are constants that combined with themselves stay what they are."""
    literals = [each.literal for each in inits if each.opcode == "constant"]
    if len(literals) != len(inits):
        return False
    arrays = tuple(np.asarray(literal.array).reshape(()) for literal in literals if literal is not None)
    if opcode is None:
        again = _apply(computation, arrays, arrays)
        return all(a.tobytes() == b.tobytes() for a, b in zip(again, arrays, strict=True))
    is_pred = arrays[0].dtype == np.bool_
    wanted = {"add": 0, "xor": 0, "multiply": 1}.get(opcode)
    if wanted is not None and not is_pred:
        return bool(arrays[0] == wanted)
    return opcode in ("maximum", "minimum", "and", "or") or (is_pred and opcode in ("add", "multiply"))


@lru_cache(maxsize=64)
def _is_free_of_order(computation: HloComputation, dtypes: tuple[DType, ...]) -> bool:
    """Whether the order of elements makes no difference, as far as small numbers, with ties, can tell."""
    rng = np.random.default_rng(0)

    def sample() -> Numbers:
        low = [0 if dtype.kind in (Kind.UINT, Kind.PRED) else -2 for dtype in dtypes]
        return tuple(
            np.asarray(rng.integers(start, start + (2 if dtype.kind is Kind.PRED else 4))).astype(dtype.numpy)
            for start, dtype in zip(low, dtypes, strict=True)
        )

    def same(left: Numbers, right: Numbers) -> bool:
        return all(_close(a, b) for a, b in zip(left, right, strict=True))

    for _ in range(SAMPLES):
        a, b, c = sample(), sample(), sample()
        ab = _apply(computation, a, b)
        if not same(ab, _apply(computation, b, a)):
            return False
        if not same(_apply(computation, ab, c), _apply(computation, a, _apply(computation, b, c))):
            return False
    return True


def _close(a: Array, b: Array) -> bool:
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return bool(np.allclose(a.astype(wide), b.astype(wide), rtol=1e-2, atol=0, equal_nan=True))


def _identity(opcode: str, dtype: DType) -> float | int | None:
    """The number that changes nothing; None where there is none, or the op is another."""
    match dtype.kind, opcode:
        case Kind.PRED, ("or" | "add" | "maximum" | "xor"):
            return 0
        case Kind.PRED, ("and" | "multiply" | "minimum"):
            return 1
        case ((Kind.FLOAT | Kind.COMPLEX), "add"):
            return -0.0
        case ((Kind.SINT | Kind.UINT), ("add" | "or" | "xor")):
            return 0
        case ((Kind.SINT | Kind.UINT), "and"):
            return -1
        case ((Kind.SINT | Kind.UINT | Kind.FLOAT), "multiply"):
            return 1
        case ((Kind.SINT | Kind.UINT | Kind.FLOAT), ("maximum" | "minimum")):
            return _extreme(dtype, -1 if opcode == "maximum" else 1)
        case _:
            return None


def _extreme(dtype: DType, sign: int) -> float | int:
    """The largest (sign 1) or least (sign -1) value."""
    if dtype.is_signed:
        return (1 << dtype.bits - 1) - 1 if sign > 0 else -(1 << dtype.bits - 1)
    if dtype.is_integer:
        return -1 if sign > 0 else 0  # all bits, or none
    value = np.array(sign * np.inf).astype(dtype.numpy).astype(np.float64)
    if np.isinf(value) or dtype.bits > 8:
        return float(value)
    codes = np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy).astype(np.float64)
    return float(np.nanmax(sign * codes)) * sign
