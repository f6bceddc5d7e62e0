"""Largest error of the f32 elementary functions over every f32 value, against double precision.

    python bench/accuracy_f32.py                   all 2**32 arguments of each function (half a minute each)
    python bench/accuracy_f32.py tanh exp          these alone
    python bench/accuracy_f32.py --step 97         every 97th argument
    python bench/accuracy_f32.py --programs [--fma]  numpy runs the programs of `numerics/functions`, op by op, instead
                                                   of the CPU's kernels; polynomials with fused multiply-add

The kernels are compiled from one-op fusions as any fusion is; exp2, log2 and log10, which HLO lacks, run as programs.
The references are numpy's functions of f64 and, for erf, the C library's: both good to a few ulp of f64.

Prints one line a function: the largest distance in ulp from the correctly rounded result, the largest real error in
ulp, and the argument where that is.  Exits with 1 when a function exceeds its documented bound.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith import compile, parse_hlo
from warpsmith.numerics.functions import FUNCTIONS, expand
from warpsmith.numerics.ulp import ulp_distance

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracle.numpy_backend import NumpyBackend

F32, F64 = NDArray[np.float32], NDArray[np.float64]
Function = Callable[[NDArray[Any]], NDArray[Any]]
CHUNK = 1 << 13  # no array of a step is so large that the allocator maps it anew


def _logistic(x: F64) -> F64:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


EXACT: dict[str, Function] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logistic": _logistic,
    "rsqrt": lambda x: 1.0 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh,
}  # fmt: skip
NAMES = sorted([*EXACT, "erf"])
_OPCODES = {row.name: row.opcode for row in FUNCTIONS.values() if row.opcode and row.arity == 1}


def _kernel(opcode: str, dtype: str) -> Function:
    """The compiled function of `CHUNK` elements."""
    shape = f"{dtype}[{CHUNK}]"
    body = f"x = {shape} parameter(0) ROOT r = {shape} {opcode}(x)"
    if opcode == "atan":
        one = f"o = {dtype}[] constant(1) ones = {shape} broadcast(o), dimensions={{}}"
        body = f"x = {shape} parameter(0) {one} ROOT r = {shape} atan2(x, ones)"
    exe = compile(parse_hlo(f"HloModule accuracy\nENTRY main {{ {body} }}"), target="cpu")
    return lambda x: exe(x)[0]


def _program(name: str, fma: bool) -> Function:
    return lambda x: np.asarray(expand(name, NumpyBackend(fuse=fma), x))


@dataclass(slots=True)
class Measured:
    """Largest distance from the rounded result, largest real error, and its argument."""

    distance: int = 0
    error: float = 0.0
    argument: float = 0.0

    def see(self, x: F32, got: F32, exact: F64) -> None:
        rounded = exact.astype(np.float32)
        step = got.view(np.int32) - rounded.view(np.int32)
        distance = max(int(step.max()), -int(step.min()))
        if distance > 8:  # a NaN, or zeros of unlike sign, or an error
            far = ulp_distance(got, rounded)
            far[(got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))] = 1 << 32
            distance = int(far.max())
        self.distance = max(self.distance, distance)
        # An ulp of f32 at the exact result has the exponent of the result less 23, and at least the subnormals' one.
        exponent = np.maximum(exact.view(np.int64) & 0x7FF0000000000000, (1023 - 126) << 52)
        exponent -= 23 << 52
        error = np.abs(got - exact) * ((2046 << 52) - exponent).view(np.float64)
        worst = float(error.max())
        if not worst < np.inf:
            error[~np.isfinite(error)] = 0.0
            worst = float(error.max())
        if worst > self.error:
            self.error, self.argument = worst, float(x[error.argmax()])


def measure(function: Function, exact: Function, step: int) -> Measured:
    """Over every `step`th f32 value."""
    found = Measured()
    for start in range(0, 1 << 32, CHUNK * step):
        bits = np.minimum(np.arange(start, start + CHUNK * step, step, dtype=np.uint64), 0xFFFFFFFF)
        x = bits.astype(np.uint32).view(np.float32)
        found.see(x, function(x), exact(x.astype(np.float64)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--fma", action="store_true")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.functions if name not in NAMES]
    if unknown:
        parser.error(f"no such function: {', '.join(unknown)}")
    if arguments.fma and not arguments.programs:
        parser.error("--fma is for --programs")
    failed = False
    with np.errstate(all="ignore"):
        for name in arguments.functions or NAMES:
            opcode = "atan" if name == "atan" else _OPCODES.get(name)
            programs = arguments.programs or opcode is None
            function = _program(name, arguments.fma) if programs else _kernel(opcode, "f32")
            start = time.perf_counter()
            found = measure(function, EXACT.get(name) or _kernel("erf", "f64"), arguments.step)
            seconds = time.perf_counter() - start
            bound = FUNCTIONS[name].max_ulp
            failed |= found.distance > bound
            print(
                f"{name:9} {found.distance} ulp (bound {bound})  real {found.error:.3f} at {found.argument!r} = "
                f"{np.float32(found.argument).view(np.uint32):#010x}  {seconds:.0f} s",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
