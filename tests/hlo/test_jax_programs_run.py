"""What JAX computes, we compute: each program before and after XLA's optimisation, interpreted and compiled.

Integers, preds and random bits agree exactly.  Floats lie within `NEAR` of the largest number of their array, unless
the program's row in `EXCEPTIONS` says otherwise, and why.  What is compiled also lies within the bounds that the
reference interpreter gives each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hlo.jax_programs import dump
from hlo.jax_programs.dump import Dump

import warpsmith as ws
from warpsmith.arrays import Array
from warpsmith.hlo import HloModule, parse_hlo
from warpsmith.hlo.evaluator import evaluate_with_bounds, within_bounds
from warpsmith.numerics.bounds import bound

pytestmark = pytest.mark.skipif(not dump.available(), reason=dump.REASON)

Corpus = list[tuple[Dump, HloModule]]

NEAR = {"float32": 5e-6, "complex64": 5e-6, "bfloat16": 1e-2, "float16": 2e-3, "float64": 1e-13}
"""By type: what sums in another order and a float's rounding may do, in parts of the largest number of an array."""


def _up_to_sign(outputs: Sequence[Array]) -> list[Array]:
    """Eigenvectors without their signs."""
    return [np.abs(each) if each.ndim == 2 else each for each in outputs]


EXCEPTIONS: dict[str, tuple[str, Callable[[Sequence[Array]], list[Array]]]] = {
    "eigh": ("the sign of an eigenvector is nobody's promise", _up_to_sign),
}
"""By program: why its results don't agree as they are, and what of them does."""


@pytest.fixture(scope="module")
def corpus(pytestconfig: pytest.Config) -> Corpus:
    return [(each, parse_hlo(each.text, f"{each.id}.hlo")) for each in dump.load(pytestconfig.cache)]


def _difference(actual: Array, expected: Array) -> float:
    """In parts of what is allowed; infinite where types, integers or infinities differ."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return np.inf
    allowed = NEAR.get(expected.dtype.name)
    if allowed is None:
        return 0.0 if (actual == expected).all() else np.inf
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = actual.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        distance = np.where(same, 0.0, np.abs(a - b))
        largest = np.max(np.abs(b), where=np.isfinite(b), initial=0.0)
    worst = float(np.max(distance, initial=0.0))
    return np.inf if np.isnan(worst) else worst / (allowed * max(float(largest), 1e-30))


def _worst(name: str, actual: Sequence[Array], expected: Sequence[Array]) -> float:
    _, kept = EXCEPTIONS.get(name, ("", list))
    pairs = zip(kept(actual), kept(expected), strict=True)
    return max((_difference(np.asarray(a), np.asarray(b)) for a, b in pairs), default=0.0)


@pytest.mark.slow
def test_the_interpreter_agrees_with_jax(corpus: Corpus) -> None:
    """A wrong rule, of any op that the programs use, would show in a program's results."""
    wrong = {
        each.id: worst
        for each, module in corpus
        if (worst := _worst(each.name, ws.evaluate(module, *each.inputs), each.outputs)) > 1
    }
    assert not wrong


def test_random_bits_are_jaxs_own(corpus: Corpus) -> None:
    """Integers drawn from a key are equal, so all bits before them are."""
    for each, module in corpus:
        if each.name == "randoms":
            outputs = ws.evaluate(module, *each.inputs)
            drawn = [i for i, expected in enumerate(each.outputs) if expected.dtype.kind in "iu"]
            assert drawn
            assert all((outputs[i] == each.outputs[i]).all() for i in drawn)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["before", "after"])
def test_compiled_programs_agree_with_jax_and_the_interpreter(corpus: Corpus, stage: str) -> None:
    """Loops, branches, calls, kernels and host steps together; no program is refused."""
    wrong: dict[str, float] = {}
    outside: list[str] = []
    for each, module in corpus:
        if each.stage != stage or each.name in LONG:
            continue
        _check(each, module, wrong, outside)
    assert not wrong
    assert not outside


LONG = frozenset(("randoms", "transformer_adam_step"))
"""Programs of hundreds of kernels, which take as long as all the others."""


@pytest.mark.slow
def test_long_programs_agree_with_jax_and_the_interpreter(corpus: Corpus) -> None:
    """An Adam step of a transformer, and a handful of random distributions."""
    wrong: dict[str, float] = {}
    outside: list[str] = []
    for each, module in corpus:
        if each.name in LONG:
            _check(each, module, wrong, outside)
    assert not wrong
    assert not outside


def _check(each: Dump, module: HloModule, wrong: dict[str, float], outside: list[str]) -> None:
    exe = ws.compile(module)
    results = exe(*each.inputs)
    worst = _worst(each.name, results, each.outputs)
    if worst > 1:
        wrong[each.id] = worst
    expected, bounds = evaluate_with_bounds(module, *each.inputs, op_ulp_bound=bound)
    shapes = module.entry.root.shape.leaves()
    for actual, wanted, limit, shape in zip(results, expected, bounds, shapes, strict=True):
        if not within_bounds(actual, wanted, limit, shape.dtype).all():
            outside.append(each.id)


def test_each_exception_is_a_program(corpus: Corpus) -> None:
    """A row that names none would hide nothing, and would stay unseen."""
    assert {*EXCEPTIONS, *LONG} <= {each.name for each, _ in corpus}
