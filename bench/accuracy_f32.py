"""Largest error of the f32 elementary functions over every f32 value, against numpy's double precision.

    python bench/accuracy_f32.py tanh exp          all 2**32 values of the argument (minutes each)
    python bench/accuracy_f32.py --step 97         every 97th value, all functions of one argument
    --fma    polynomials with fused multiply-add

Prints one line a function: number of ops, largest distance in ulp from the correctly rounded result, largest real
error in ulp, and where it is.  Exits with 1 when a function exceeds its documented bound.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from numpy.typing import NDArray

from warpsmith.dtypes import by_name
from warpsmith.numerics.functions import EXPANSIONS, expand
from warpsmith.numerics.numpy_backend import NumpyBackend
from warpsmith.numerics.ulp import ulp_distance, ulp_size

F64 = NDArray[np.float64]
CHUNK = 1 << 20


def _logistic(x: F64) -> F64:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


EXACT = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh, "erf": np.frompyfunc(math.erf, 1, 1),
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "logistic": _logistic, "rsqrt": lambda x: 1.0 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip


def measure(name: str, step: int, fma: bool) -> tuple[int, int, float, float]:
    """(ops, largest distance, largest real error, argument of that)."""
    f32 = by_name("f32")
    ops, distance, error, where = 0, 0, 0.0, 0.0
    for start in range(0, 1 << 32, CHUNK * step):
        bits = np.arange(start, min(1 << 32, start + CHUNK * step), step, dtype=np.uint64)
        x = bits.astype(np.uint32).view(np.float32)
        backend = NumpyBackend(fuse=fma)
        got = np.asarray(expand(name, backend, x))
        exact = np.asarray(EXACT[name](x.astype(np.float64)), np.float64)
        rounded = exact.astype(np.float32)
        ops = max(ops, backend.total)
        distance = max(distance, int(ulp_distance(got, rounded).max()))
        finite = np.isfinite(got) & np.isfinite(rounded)
        size = ulp_size(np.abs(np.where(finite, exact, 1.0)), f32)
        real = np.where(finite, np.abs(got.astype(np.float64) - exact) / size, 0.0)
        worst = int(real.argmax())
        if real[worst] > error:
            error, where = float(real[worst]), float(x[worst])
    return ops, distance, error, where


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help=f"of {', '.join(EXACT)}")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--fma", action="store_true")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.functions if name not in EXACT]
    if unknown:
        parser.error(f"no such function: {', '.join(unknown)}")
    failed = False
    with np.errstate(all="ignore"):
        for name in arguments.functions or EXACT:
            ops, distance, error, where = measure(name, arguments.step, arguments.fma)
            bound = EXPANSIONS[name].max_ulp
            failed |= distance > bound
            print(f"{name:9} {ops:4} ops  {distance} ulp (bound {bound})  real {error:.2f} at {where:.9g}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
