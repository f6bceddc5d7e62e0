"""Custom calls that are known by name: LAPACK as JAX calls it on the CPU, TopK, and markers that compute nothing.

In: values.  Out: values.  `CUSTOM_CALLS` is the table; any other target is refused by name.  Factorisations run in
float64 or complex128 and round once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.errors import InvalidHlo, UnsupportedHlo, did_you_mean
from warpsmith.hlo.evaluator.ops.factorisations import adjoint, cholesky, householder_product, lu, qr_reflectors
from warpsmith.hlo.evaluator.ops.linear_algebra import exact, rounded, solved
from warpsmith.hlo.evaluator.ops.ranking import top_k
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = ["CUSTOM_CALL", "CUSTOM_CALLS", "MARKERS", "known_targets"]

Call = Callable[[list[Array], HloInstruction, dict[str, str]], Value]
"""(operands, instruction, options) to the value; options are the letters and numbers of `backend_config`."""

_OPTION = re.compile(r"(\w+)\s*=\s*(\d+)\s*:\s*ui8")
_LETTERS = {"n": "NO_TRANSPOSE", "t": "TRANSPOSE", "c": "ADJOINT"}


def _options(instruction: HloInstruction) -> dict[str, str]:
    """`{uplo = 76 : ui8}` as {"uplo": "l"}."""
    config = str(instruction.attributes.get("backend_config", ""))
    return {name: chr(int(code)).lower() for name, code in _OPTION.findall(config)}


def _dtype(instruction: HloInstruction) -> DType:
    return instruction.operands[0].array_shape.dtype


def _potrf(operands: list[Array], instruction: HloInstruction, options: dict[str, str]) -> Value:
    """Cholesky: the factor in one triangle, the other as it was; info."""
    dtype = _dtype(instruction)
    a = exact(operands[0], dtype)
    lower = options.get("uplo", "l") == "l"
    factor, info = cholesky(a if lower else adjoint(a))
    factor = rounded(factor if lower else adjoint(factor), dtype)
    size = a.shape[-1]
    inside = np.tri(size, dtype=np.bool_) if lower else np.tri(size, dtype=np.bool_).T
    return np.where(inside, factor, operands[0]), info


def _trsm(operands: list[Array], instruction: HloInstruction, options: dict[str, str]) -> Value:
    """Triangular solve."""
    dtype = _dtype(instruction)
    a, b = (exact(array, dtype) for array in operands[:2])
    x = solved(
        *(a, b),
        left=options.get("side", "l") == "l",
        lower=options.get("uplo", "l") == "l",
        unit=options.get("diag", "n") == "u",
        transpose=_LETTERS[options.get("trans_x", "n")],
    )
    return rounded(x, dtype)


def _getrf(operands: list[Array], instruction: HloInstruction, options: dict[str, str]) -> Value:
    """LU with row exchanges: both factors, pivots from 1, info."""
    factors, pivots, info = lu(exact(operands[0], _dtype(instruction)))
    return rounded(factors, _dtype(instruction)), pivots, info


def _geqrf(operands: list[Array], instruction: HloInstruction, options: dict[str, str]) -> Value:
    """QR as reflectors: R and the vectors, tau."""
    factors, taus = qr_reflectors(exact(operands[0], _dtype(instruction)))
    return rounded(factors, _dtype(instruction)), rounded(taus, _dtype(instruction))


def _orgqr(operands: list[Array], instruction: HloInstruction, options: dict[str, str]) -> Value:
    """Q from reflectors."""
    dtype = _dtype(instruction)
    return rounded(householder_product(*(exact(array, dtype) for array in operands[:2])), dtype)


def _eigh(operands: list[Array], instruction: HloInstruction, options: dict[str, str]) -> Value:
    """Eigenvectors, eigenvalues from the smallest, info.  A vector's sign (phase) is nobody's promise."""
    dtype = _dtype(instruction)
    a = exact(operands[0], dtype)
    values, vectors = np.linalg.eigh(a, UPLO="L" if options.get("uplo", "l") == "l" else "U")
    real = instruction.shape.leaves()[1].dtype
    return rounded(vectors, dtype), rounded(values, real), np.zeros(a.shape[:-2], np.int32)


def _top_k(operands: list[Array], instruction: HloInstruction, options: dict[str, str]) -> Value:
    values = instruction.shape.leaves()[0]
    compares = instruction.called_computations[0] if instruction.called_computations else None
    largest = compares is None or "LT" not in str(compares.root.attributes.get("direction", "GT"))
    return top_k(operands[0], _dtype(instruction), values.dims[-1], largest=largest)


_LAPACK: dict[str, tuple[str, int, Call]] = {
    "potrf": ("sdcz", 1, _potrf),
    "trsm": ("sdcz", 2, _trsm),
    "getrf": ("sdcz", 1, _getrf),
    "geqrf": ("sdcz", 1, _geqrf),
    "orgqr": ("sd", 2, _orgqr),
    "ungqr": ("cz", 2, _orgqr),
    "syevd": ("sd", 1, _eigh),
    "heevd": ("cz", 1, _eigh),
}
"""By routine: LAPACK's letters of the types that it comes in, how many operands it reads, and what it computes."""

CUSTOM_CALLS: dict[str, tuple[int, Call]] = {
    f"lapack_{letter}{routine}_ffi": (reads, call)
    for routine, (letters, reads, call) in _LAPACK.items()
    for letter in letters
} | {"TopK": (1, _top_k)}

MARKERS = frozenset(
    (
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint"),
        *("annotate_device_placement", "MoveToHost", "MoveToDevice", "AssumeGatherIndicesInBound"),
        *("xla.sdy.FuncResultSharding", "xla.sdy.LocalToGlobalShape", "xla.sdy.GlobalToLocalShape"),
    )
)
"""Targets that say something about their operand, which is their result."""


def known_targets() -> list[str]:
    """Every custom call that has a meaning here."""
    return sorted((*CUSTOM_CALLS, *MARKERS))


def _custom_call(_: Caller, instruction: HloInstruction) -> Kernel:
    target = instruction.attr("custom_call_target", str)
    if target not in CUSTOM_CALLS and target not in MARKERS:
        known = known_targets()
        raise UnsupportedHlo(
            f"no meaning is known for the custom call '{target}' ('{instruction.name}')",
            span=instruction.span,
            help=did_you_mean(target, known) or f"known are {', '.join(known)}",
        )
    reads = 1 if target in MARKERS else CUSTOM_CALLS[target][0]
    if (given := len(instruction.operands)) < reads:
        raise InvalidHlo(
            f"the custom call '{target}' reads {reads} operand{'s' * (reads > 1)}, "
            f"and '{instruction.name}' has {given}",
            span=instruction.span,
        )
    if target in MARKERS:
        return lambda values: values[0]
    call = CUSTOM_CALLS[target][1]
    options = _options(instruction)

    def kernel(values: Sequence[Value]) -> Value:
        return call(arrays_of(values), instruction, options)

    return kernel


CUSTOM_CALL: dict[str, Rule] = {"custom-call": _custom_call}
