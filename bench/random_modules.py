"""Random fusions three ways: the reference interpreter, machine code, and XLA:CPU (jaxlib, in a process of its own).

    python bench/random_modules.py                2,000 modules
    python bench/random_modules.py 200 --seed 7   200 others
    python bench/random_modules.py --no-xla

Each module is drawn from its seed (ops, shapes, layouts, dtypes, sharing; tests/random_fusions.py).  Results are
compared within the bounds that the interpreter propagates; where it knows none, any value would match, and the element
is counted as unbounded.  A module on which two of the three differ is shrunk while they do, and printed, unless a row
of `KNOWN` says which op of XLA's is to blame and why.  Exit status 1 if a difference is left unexplained.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import ml_dtypes
import numpy as np

import warpsmith as ws
from warpsmith.errors import WarpsmithError
from warpsmith.hlo.evaluator import evaluate, evaluate_with_bounds, within_bounds
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shrink import shrink
from warpsmith.hlo.traversal import callees_first
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fusion_corpus import Case, inputs_of
from hlo import oracle
from random_fusions import random_fusion

Array = np.ndarray[Any, np.dtype[Any]]
Answer = Sequence[Array] | str


@dataclass
class Mismatch:
    """Where an answer differs: the module, and each wrong element's expected and found value, by output."""

    module: HloModule
    expected: list[Array]
    found: list[Array]
    inputs: Sequence[Array]
    answer: Sequence[Array]
    bounds: Sequence[Array]

    def ops(self) -> set[str]:
        return {each.opcode for each in self.module.instructions()} - {"parameter", "constant", "tuple", "fusion"}

    def dtypes(self) -> set[str]:
        return {leaf.dtype.name for each in self.module.instructions() for leaf in each.shape.leaves()}


KNOWN: dict[str, Callable[[Mismatch], bool]] = {}
"""What XLA:CPU does otherwise: the reason, and whether a mismatch (of a shrunk module) is an instance of it."""


def known(reason: str) -> Callable[[Callable[[Mismatch], bool]], Callable[[Mismatch], bool]]:
    def register(test: Callable[[Mismatch], bool]) -> Callable[[Mismatch], bool]:
        KNOWN[reason] = test
        return test

    return register


@known("popcnt of a type under 8 bits: XLA:CPU counts the bits of the sign extension")
def _popcnt(mismatch: Mismatch) -> bool:
    return "popcnt" in mismatch.ops() and bool({"s4", "s2"} & mismatch.dtypes())


@known("subnormals: XLA:CPU runs with denormals as zero, and rounds to bf16 with an instruction that flushes them")
def _flushed(mismatch: Mismatch) -> bool:
    """Whether the answer is the one with every value of every instruction flushed, or within the least normal of it."""
    module = opened(mismatch.module)
    values: dict[HloInstruction, Array] = {}
    for parameter, array in zip(module.entry.parameters, mismatch.inputs, strict=True):
        values[parameter] = flush(array)
    for each in module.entry:
        if each.opcode == "tuple":
            continue
        if each not in values:
            operands = [values[operand] for operand in dict.fromkeys(each.operands)]
            values[each] = flush(evaluate(module.extract(each), *operands)[0])
    root = module.entry.root
    expected = [values[each] for each in (root.operands if root.opcode == "tuple" else [root])]
    bounds = [
        error + (2 * float(np.finfo(e.dtype).tiny) if e.dtype.kind == "f" else 2.0**-125)
        for error, e in zip(mismatch.bounds, expected, strict=True)
    ]
    return compared(mismatch.answer, expected, bounds, mismatch.module, mismatch.inputs) is None


def flush(array: Array) -> Array:
    """The array with subnormals of f32, f64 and bf16 as zeros of their sign (f16 is computed in f32)."""
    if array.dtype not in (np.float32, np.float64, ml_dtypes.bfloat16):
        return array
    tiny = 2.0 ** (-1022 if array.dtype == np.float64 else -126)
    with np.errstate(all="ignore"):
        small = np.abs(array.astype(np.float64)) < tiny
    return np.where(small, np.copysign(np.zeros_like(array), array), array).astype(array.dtype)


@known("cbrt of f32 subnormals: XLA:CPU gives about 1e-15 of either sign, whatever the argument")
def _cbrt(mismatch: Mismatch) -> bool:
    return mismatch.ops() == {"cbrt"} and _below(mismatch, 1e-12)


@known("-0 in a constant: XLA's text parser reads it as the integer 0")
def _negative_zero(mismatch: Mismatch) -> bool:
    return re.search(r"constant\(.*-0(?![.\d])", str(mismatch.module)) is not None


@known("exponential-minus-one of f32: XLA:CPU is within 4 ulp, more than the interpreter's bound")
def _expm1(mismatch: Mismatch) -> bool:
    return mismatch.ops() == {"exponential-minus-one"} and _near(mismatch, 5e-7)


@known("sums of bf16: XLA:CPU rounds each partial sum to bf16")
def _bf16_sums(mismatch: Mismatch) -> bool:
    return (
        "bf16" in mismatch.dtypes()
        and bool({"reduce", "reduce-window", "dot"} & mismatch.ops())
        and _near(mismatch, 0.1)
    )


@known("an initial value that isn't neutral: XLA:CPU adds it once a partial sum (HLO leaves that open)")
def _initial(mismatch: Mismatch) -> bool:
    sums = [each for each in mismatch.module.instructions() if each.opcode in ("reduce", "reduce-window")]
    return any(
        start.literal is None or np.asarray(start.literal.array).any() for each in sums for start in each.operands[1:]
    )


def _near(mismatch: Mismatch, relative: float) -> bool:
    pairs = zip(mismatch.expected, mismatch.found, strict=True)
    with np.errstate(all="ignore"):
        return all(
            (np.abs(e.astype(np.float64) - f.astype(np.float64)) <= relative * np.abs(e.astype(np.float64))).all()
            for e, f in pairs
        )


def _below(mismatch: Mismatch, most: float) -> bool:
    return all((np.abs(each.astype(np.float64)) < most).all() for each in (*mismatch.expected, *mismatch.found))


@dataclass
class Tally:
    """Counts over all modules."""

    modules: int = 0
    elements: int = 0
    unbounded: int = 0
    refused_by_xla: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)


def compared(
    found: Sequence[Array],
    expected: Sequence[Array],
    bounds: Sequence[Array],
    module: HloModule,
    inputs: Sequence[Array],
) -> Mismatch | None:
    """The elements outside their bounds; None when there is none."""
    leaves = module.entry.root.shape.leaves()
    good = [
        within_bounds(mine, theirs, error, leaf.dtype)
        for mine, theirs, error, leaf in zip(found, expected, bounds, leaves, strict=True)
    ]
    if all(each.all() for each in good):
        return None
    wrong = [(theirs[~right], mine[~right]) for mine, theirs, right in zip(found, expected, good, strict=True)]
    return Mismatch(module, [pair[0] for pair in wrong], [pair[1] for pair in wrong], inputs, found, bounds)


def compiled(module: HloModule, arrays: Sequence[Array]) -> Answer:
    try:
        return list(ws.compile(module, cache=False)(*arrays))
    except WarpsmithError as error:
        return str(error)


_LAYOUT = re.compile(r"(?<=\])\{[\d,]*(?::E\(\d+\))?\}")


def by_xla(modules: Sequence[tuple[HloModule, Sequence[Array]]]) -> list[Answer]:
    """XLA's answers, layouts left out (its CPU compiler aborts on layouts that it didn't choose; values are the same).

    A module that aborts the process gets the error as its answer, and those after it another process.
    """
    jobs = [(_LAYOUT.sub("", str(opened(module))), arrays) for module, arrays in modules]
    found: list[Answer] = []
    while len(found) < len(jobs):
        rest = list(oracle.run_all(jobs[len(found) :], timeout=600))
        stopped = next((i for i, each in enumerate(rest) if isinstance(each, str) and "oracle stopped" in each), None)
        found += rest if stopped is None else rest[: stopped + 1]
    return found


def opened(module: HloModule) -> HloModule:
    """A module that is one fusion, as the fusion's body: XLA's verifier refuses fusions with unused parameters."""
    root = module.entry.root
    if root.opcode != "fusion" or any(each.opcode != "parameter" for each in root.operands):
        return module
    body = root.attr("calls", HloComputation)
    if [each.parameter_number for each in root.operands] != list(range(len(body.parameters))):
        return module
    return HloModule(module.name, tuple(callees_first([body])), body)


@dataclass
class Drawn:
    """A module, its input, and the interpreter's answer."""

    seed: int
    case: Case
    module: HloModule
    arrays: Sequence[Array]
    expected: Sequence[Array]
    bounds: Sequence[Array]


def draw(seed: int) -> Drawn:
    found = random_fusion(Random(seed), 16)
    profile = Profile.TAME if found.has_sums else Profile.MIXTURE
    case = Case("random", found.text, profile, tuple(found.indices.items()))
    module = case.module()
    arrays = inputs_of(case, module, seed)
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    return Drawn(seed, case, module, arrays, expected, bounds)


class Question:
    """Whether `other` differs from the interpreter on a module; candidates get fresh input, their parameters being
    others.  `last` is the last mismatch that was seen."""

    def __init__(self, other: Callable[[HloModule, Sequence[Array]], Answer]) -> None:
        self.other = other
        self.last: Mismatch | None = None

    def __call__(self, module: HloModule) -> bool:
        case = Case("shrunk", str(module), Profile.MIXTURE, ())
        for seed in range(3):
            arrays = inputs_of(case, module, seed)
            expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
            found = self.other(module, arrays)
            seen = None if isinstance(found, str) else compared(found, expected, bounds, module, arrays)
            if seen is not None:
                self.last = seen
                return True
        return False


def one_by_xla(module: HloModule, arrays: Sequence[Array]) -> Answer:
    return by_xla([(module, arrays)])[0]


def explain(
    who: str,
    seen: Mismatch,
    seed: int,
    other: Callable[[HloModule, Sequence[Array]], Answer],
    tally: Tally,
) -> None:
    """Look for the reason of a mismatch; where none is known, shrink the module and look again."""
    reason = explanation(who, seen)
    if reason is None:
        question = Question(other)
        if question(seen.module):
            small = shrink(seen.module, question, limit=60 if other is one_by_xla else 400)
            question(small)
            seen = question.last or seen
        reason = explanation(who, seen)
    if reason is not None:
        tally.explained[reason] += 1
    else:
        pairs = [(e[:3], f[:3]) for e, f in zip(seen.expected, seen.found, strict=True) if e.size]
        tally.unexplained.append(f"{who}, seed {seed}: expected, found {pairs}:\n{seen.module}")


def explanation(who: str, seen: Mismatch) -> str | None:
    return next((why for why, holds in KNOWN.items() if who == "XLA:CPU" and holds(seen)), None)


def judge(
    who: str, drawn: Drawn, answer: Answer, other: Callable[[HloModule, Sequence[Array]], Answer], tally: Tally
) -> None:
    if not isinstance(answer, str):
        seen = compared(answer, drawn.expected, drawn.bounds, drawn.module, drawn.arrays)
        if seen is not None:
            explain(who, seen, drawn.seed, other, tally)
    elif who == "XLA:CPU":
        tally.refused_by_xla[refusal(answer)] += 1
    else:
        tally.unexplained.append(f"{who}, seed {drawn.seed}: {answer}\n{drawn.module}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--no-xla", action="store_true")
    options = parser.parse_args()
    tally, began = Tally(), perf_counter()
    for first in range(options.seed, options.seed + options.count, options.batch):
        batch = [draw(seed) for seed in range(first, min(first + options.batch, options.seed + options.count))]
        answers = [] if options.no_xla else by_xla([(each.module, each.arrays) for each in batch])
        for drawn in batch:
            tally.modules += 1
            tally.elements += sum(each.size for each in drawn.expected)
            tally.unbounded += sum(int(np.isinf(each).sum()) for each in drawn.bounds)
            judge("machine code", drawn, compiled(drawn.module, drawn.arrays), compiled, tally)
        for drawn, answer in zip(batch, answers, strict=False):
            judge("XLA:CPU", drawn, answer, one_by_xla, tally)
        print(f"{tally.modules} modules, {perf_counter() - began:.0f} s", file=sys.stderr)
    report(tally)
    return 1 if tally.unexplained else 0


def refusal(answer: str) -> str:
    """XLA's error without what differs from module to module."""
    last = answer.strip().splitlines()[-1] if "oracle stopped" in answer else answer.splitlines()[0]
    return re.sub(r"%\S+|\d+", "_", last)[:160]


def report(tally: Tally) -> None:
    print(f"{tally.modules} modules, {tally.elements:,} elements, {tally.unbounded:,} of them without a bound")
    for title, counts in (("refused by XLA", tally.refused_by_xla), ("explained", tally.explained)):
        for why, count in counts.most_common():
            print(f"  {title}: {count} x {why}")
    print(f"  unexplained: {len(tally.unexplained)}")
    for text in tally.unexplained:
        print(f"\n{text}")


if __name__ == "__main__":
    sys.exit(main())
