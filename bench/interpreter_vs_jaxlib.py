"""The reference interpreter against XLA:CPU (jaxlib, in a process of its own), by op and element type.

    python bench/interpreter_vs_jaxlib.py [--ops add,tanh] [--dtypes f32,s4]

Each op gets edges and random values of the type (of narrow types every value).  A line per op: for each type the
elements compared, and how many differ.  Elements that differ are put down to the first row of `REASONS` that covers
them, and counted by row; what no row covers is printed and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from hlo import oracle
from hlo.evaluator_values import pairs_of, values_of

from warpsmith.dtypes import DType, by_name
from warpsmith.errors import WarpsmithError
from warpsmith.hlo import parse_hlo
from warpsmith.hlo.evaluator import evaluate
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.ulp import UNCOMPARABLE, ulp_distance

Array = np.ndarray[Any, np.dtype[Any]]

FLOAT = "f8e4m3fn f8e5m2 f16 bf16 f32 f64".split()
INTEGER = "s4 u4 s8 u8 s16 u16 s32 u32 s64 u64".split()
TRANSCENDENTAL = (
    "cbrt cosine erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine tan tanh".split()
)
UNARY = {
    **{key: [*FLOAT, "s4", "s8", "s16", "s32", "s64"] for key in "abs negate sign".split()},
    **dict.fromkeys("ceil floor round-nearest-afz round-nearest-even sqrt".split(), FLOAT),
    **dict.fromkeys(TRANSCENDENTAL, FLOAT),
    **dict.fromkeys("popcnt count-leading-zeros".split(), INTEGER),
    "not": [*INTEGER, "pred"],
}
BINARY = {
    **{key: [*FLOAT, *INTEGER, "pred"] for key in "add multiply maximum minimum".split()},
    **{key: [*FLOAT, *INTEGER] for key in "subtract divide remainder power".split()},
    "atan2": FLOAT,
    **{key: [*INTEGER, "pred"] for key in "and or xor".split()},
    **dict.fromkeys("shift-left shift-right-logical shift-right-arithmetic".split(), INTEGER),
}
CONVERT = ["pred", *INTEGER, *FLOAT]


@dataclass(frozen=True)
class Job:
    """One op on one type: `label` is the op's name in the table."""

    label: str
    opcode: str
    source: DType
    target: DType
    inputs: tuple[Array, ...]

    @property
    def text(self) -> str:
        count = len(self.inputs[0])
        lines = [f"  p{i} = {self.source.name}[{count}] parameter({i})" for i in range(len(self.inputs))]
        names = ", ".join(f"p{i}" for i in range(len(self.inputs)))
        root = f"  ROOT r = {self.target.name}[{count}] {self.opcode}({names})"
        return "\n".join(["HloModule m", "ENTRY e {", *lines, root, "}", ""])


@dataclass(frozen=True)
class Reason:
    """`covers(job, ours, theirs)` says at which elements this is why the two differ."""

    name: str
    why: str
    covers: Callable[[Job, Array, Array], Array]


def _wide(array: Array) -> Array:
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def _subnormal(array: Array) -> Array:
    least = {"float32": 2.0**-126, "bfloat16": 2.0**-126, "float64": 2.0**-1022}.get(array.dtype.name, 0.0)
    size = np.abs(_wide(array))
    return (size < least) & (size > 0)


def _flushed(job: Job, ours: Array, theirs: Array) -> Array:
    found = _subnormal(ours) | _subnormal(theirs)
    for each in job.inputs:
        found = found | _subnormal(each)
    return found


def _within(limit: Callable[[Job], float]) -> Callable[[Job, Array, Array], Array]:
    def covers(job: Job, ours: Array, theirs: Array) -> Array:
        if not job.target.is_float:
            return np.zeros(ours.shape, np.bool_)
        with np.errstate(all="ignore"):
            distance = ulp_distance(ours, theirs)
        return (distance <= limit(job)) & (distance != UNCOMPARABLE)

    return covers


def _of(opcode: str, *dtypes: str) -> Callable[[Job], bool]:
    return lambda job: job.opcode == opcode and job.source.name in dtypes


def _every(applies: Callable[[Job], bool]) -> Callable[[Job, Array, Array], Array]:
    return lambda job, ours, theirs: np.full(ours.shape, applies(job))


def _long_exponent(job: Job, ours: Array, theirs: Array) -> Array:
    if job.opcode != "power" or not job.source.is_integer:
        return np.zeros(ours.shape, np.bool_)
    return _wide(job.inputs[1]) >= 64


XLA_ULP = {
    ("erf", "f32"): 4,
    ("exponential-minus-one", "f32"): 4,
    ("log-plus-one", "f32"): 2,
    ("logistic", "f32"): 2,
    ("tanh", "f32"): 4,
    ("cbrt", "f64"): 3,
    ("exponential-minus-one", "f64"): 4,
    ("logistic", "f64"): 3,
    ("rsqrt", "f64"): 2,
    ("tanh", "f64"): 8,
    ("exponential-minus-one", "f16"): 2,
}
"""How far XLA:CPU's own functions were found to be off."""

REASONS = (
    Reason(
        "subnormal",
        "XLA:CPU runs with flush-to-zero: subnormal f32, bf16 and f64 numbers are zeros to it, operand or result",
        _flushed,
    ),
    Reason(
        "xla-function",
        "XLA:CPU's own approximation, as far off as a row of XLA_ULP says; the interpreter rounds libm's f64",
        _within(lambda job: XLA_ULP.get((job.opcode, job.source.name), 0)),
    ),
    Reason(
        "function-ulp",
        "an elementary function that neither side rounds correctly: within 1 ulp",
        _within(lambda job: 1 if bound(job.opcode, job.target) else 0),
    ),
    Reason(
        "log1p-f64",
        "XLA's polynomial for log-plus-one in f64 cancels near sqrt(1/2) - 1: up to 150 ulp",
        _within(lambda job: 150 if (job.opcode, job.source.name) == ("log-plus-one", "f64") else 0),
    ),
    Reason(
        "logistic-f16",
        "XLA computes logistic of f16 in f16: it underflows where the result is a subnormal",
        _within(lambda job: 255 if (job.opcode, job.source.name) == ("logistic", "f16") else 0),
    ),
    Reason(
        "power-exponent",
        "XLA squares six times: of an integer's exponent only the low six bits count; here all do",
        _long_exponent,
    ),
    Reason(
        "popcnt-s4",
        "XLA:CPU counts the bits of an s4's sign extension to 8 bits",
        _every(_of("popcnt", "s4")),
    ),
)


def _jobs(ops: set[str], dtypes: set[str]) -> list[Job]:
    jobs: list[Job] = []
    for table, arity in ((UNARY, 1), (BINARY, 2)):
        for opcode, names in table.items():
            for dtype in map(by_name, names):
                inputs = (values_of(dtype, 3000),) if arity == 1 else pairs_of(dtype, 3000)
                jobs.append(Job(opcode, opcode, dtype, dtype, inputs))
    for source in map(by_name, CONVERT):
        given = (values_of(source, 3000),)
        jobs += [
            Job(f"convert from {source}", "convert", source, by_name(t), given) for t in CONVERT if t != source.name
        ]
    return [
        job
        for job in jobs
        if (not ops or job.opcode in ops) and (not dtypes or {job.source.name, job.target.name} <= dtypes)
    ]


def _differs(ours: Array, theirs: Array) -> Array:
    if ours.dtype.kind in "biu" or ours.dtype.name in ("int4", "uint4"):
        return np.asarray(ours != theirs)
    code = f"u{ours.dtype.itemsize}"
    a, b = _wide(ours), _wide(theirs)
    return (ours.view(code) != theirs.view(code)) & ~(np.isnan(a) & np.isnan(b))


def _attribute(job: Job, ours: Array, theirs: Array, counted: Counter[str]) -> tuple[int, Array]:
    """How many differ, and which of them no row covers."""
    left = _differs(ours, theirs)
    count = int(left.sum())
    for reason in REASONS:
        if left.any():
            covered = left & reason.covers(job, ours, theirs)
            counted[reason.name] += int(covered.sum())
            left = left & ~covered
    return count, left


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ops", default="", help="opcodes, with commas")
    parser.add_argument("--dtypes", default="", help="element types, with commas")
    given = parser.parse_args(arguments)
    if not oracle.available():
        print(oracle.REASON)
        return 2
    jobs = _jobs({*given.ops.split(",")} - {""}, {*given.dtypes.split(",")} - {""})
    answers = oracle.run_all([(job.text, job.inputs) for job in jobs], timeout=600.0)
    rows: dict[str, list[str]] = {}
    counted: Counter[str] = Counter()
    elements = differing = 0
    unexplained: list[str] = []
    for job, answer in zip(jobs, answers, strict=True):
        cells = rows.setdefault(job.label, [])
        name = job.target.name if job.opcode == "convert" else job.source.name
        if isinstance(answer, str):
            cells.append(f"{name} refused by XLA")
            continue
        try:
            (ours,) = evaluate(parse_hlo(job.text), *job.inputs)
        except WarpsmithError as error:
            unexplained.append(f"{job.label} {name}: {str(error).splitlines()[0]}")
            continue
        (theirs,) = answer
        count, left = _attribute(job, ours, theirs, counted)
        elements, differing = elements + ours.size, differing + count
        cells.append(f"{name} {count}/{ours.size}" if count else f"{name} {ours.size}")
        for i in np.flatnonzero(left)[:3]:
            operands = ", ".join(str(each[i]) for each in job.inputs)
            unexplained.append(f"{job.label} {name}({operands}): here {ours[i]}, XLA {theirs[i]} ({left.sum()} in all)")
    for label, cells in rows.items():
        print(f"{label:24s} {'  '.join(cells)}")
    print(f"\n{len(jobs)} ops x types, {elements} elements; {differing} differ:")
    for reason in REASONS:
        if counted[reason.name]:
            print(f"{counted[reason.name]:8d}  {reason.name}: {reason.why}")
    print(f"{differing - counted.total():8d}  without an explanation", *unexplained, sep="\n          ")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
