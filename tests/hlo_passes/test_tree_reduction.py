"""Reductions too large for one block become kernels that each block can finish, and keep their value."""

from __future__ import annotations

import numpy as np
import pytest
from hero_kernels import body
from kernel_runner import random_inputs, run_emitted

import warpsmith as ws
from warpsmith.devices import device
from warpsmith.emitters import emit
from warpsmith.hlo.evaluator import evaluate_with_bounds, within_bounds
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo.verifier import verify_module
from warpsmith.hlo_passes.tree_reduction import split_reductions
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile
from warpsmith.schedule.schedule import make_schedule


def fold(dtype: str, dims: tuple[int, ...], reduced: tuple[int, ...], op: str = "add", init: str = "0") -> str:
    kept = ",".join(str(n) for d, n in enumerate(dims) if d not in reduced)
    return f"""
        p = {dtype}[{",".join(map(str, dims))}] parameter(0)
        z = {dtype}[] constant({init})
        ROOT r = {dtype}[{kept}] reduce(p, z), dimensions={{{",".join(map(str, reduced))}}}, to_apply={op}_{dtype}"""


# name -> (fusion body, how many kernels)
CASES = {
    "one row": (fold("f32", (40000,), (0,)), 2),
    "one row of a prime length": (fold("s32", (40009,), (0,)), 2),
    "rows": (fold("f32", (3, 20000), (1,)), 2),
    "many major ones": (fold("f32", (40, 33, 64), (0, 2)), 2),
    "many major ones and long rows": (fold("f32", (9, 3, 17000), (0, 2)), 3),
    "a few major ones and long rows": (fold("f32", (4, 3, 17000), (0, 2)), 2),
    "several dimensions": (fold("f32", (300, 1, 200), (0, 1, 2)), 2),
    "long columns": (fold("f32", (5000, 6), (0,)), 2),
    "long columns, batched": (fold("f32", (2, 4100, 33), (1,)), 2),
    "columns of a prime length": (fold("f32", (4099, 40), (0,), "max", "-inf"), 2),
    "bf16": (fold("bf16", (20000,), (0,)), 2),
    "pred": (fold("pred", (17000,), (0,), "and", "true"), 2),
    "u8 product": (fold("u8", (17001,), (0,), "mul", "1"), 2),
    "c64": (fold("c64", (17001,), (0,), "add", "(0,0)"), 2),
    "initial value from outside": (fold("f32", (17001,), (0,)).replace("constant(0)", "parameter(1)"), 2),
    "initial value that counts": (fold("s32", (17001,), (0,), "add", "5"), 2),
    "prologue, epilogue and side output": (
        """
        p = f32[5000,6] parameter(0)
        q = f32[6] parameter(1)
        z = f32[] constant(0)
        n = f32[5000,6] negate(p)
        r = f32[6] reduce(n, z), dimensions={0}, to_apply=add_f32
        a = f32[6] abs(r)
        ROOT t = (f32[6], f32[5000,6], f32[6]) tuple(a, n, r)""",
        2,
    ),
    "side outputs of another size": (
        """
        p = f32[20000] parameter(0)
        q = f32[6] parameter(1)
        z = f32[] constant(0)
        n = f32[20000] negate(p)
        r = f32[] reduce(n, z), dimensions={0}, to_apply=add_f32
        s = f32[2] slice(n), slice={[0:2]}
        a = f32[6] abs(q)
        ROOT t = (f32[2], f32[], f32[6]) tuple(s, r, a)""",
        3,
    ),
    "side output of a padded row": (
        """
        p = f32[20011] parameter(0)
        z = f32[] constant(0)
        n = bf16[20011] convert(p)
        r = f32[] reduce(p, z), dimensions={0}, to_apply=add_f32
        ROOT t = (bf16[20011], f32[]) tuple(n, r)""",
        3,
    ),
    "largest and where": (
        """
        p = f32[20000] parameter(0)
        i = s32[20000] iota(), iota_dimension=0
        z = f32[] constant(-inf)
        k = s32[] constant(2147483647)
        ROOT r = (f32[], s32[]) reduce(p, i, z, k), dimensions={0}, to_apply=largest""",
        2,
    ),
}
LARGE = 1 << 25


def split(text: str) -> HloModule:
    found = split_reductions(wrap(parse_hlo(body(text))), device("sm_90"))
    verify_module(found)
    return found


@pytest.mark.parametrize("name", CASES)
def test_kernels_that_a_block_can_finish_give_the_value(name: str) -> None:
    """Wrong: an element reduced twice or left out, a padding that counts, a start value that counts twice."""
    text, kernels = CASES[name]
    module = parse_hlo(body(text))
    arrays = random_inputs(module, profile=Profile.TAME)
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    steps = make_schedule(split(text))
    assert len(steps.steps) == kernels
    values = dict(zip(steps.parameters, arrays, strict=True))
    for step in steps.steps:
        kernel = emit(step.instruction, device("sm_90"))
        assert (
            kernel.origin.emitter == "reduction" or "sides" in step.instruction.name or kernel.launch.grid == (1, 1, 1)
        )
        values.update(zip(step.outputs, run_emitted(kernel, [values[n] for n in step.inputs]), strict=True))
    for result, wanted, error, leaf in zip(
        steps.results, expected, bounds, module.entry.root.shape.leaves(), strict=True
    ):
        assert within_bounds(values[result], wanted, error, leaf.dtype).all(), (values[result], wanted)


@pytest.mark.parametrize(
    "text", [fold("f32", (LARGE,), (0,)), fold("bf16", (4, LARGE), (1,)), fold("f32", (LARGE, 8), (0,))]
)
def test_any_size_comes_down_to_blocks(text: str) -> None:
    """Wrong: a stage that is still too large; the loop emitter would give it to one thread."""
    for step in make_schedule(split(text)).steps:
        assert emit(step.instruction, device("sm_90")).origin.emitter == "reduction"


def test_sums_of_narrow_floats_stay_wide_between_kernels() -> None:
    """bf16 ones: 256 and 1 would be 256."""
    text = fold("bf16", (20000,), (0,))
    steps = make_schedule(split(text))
    buffers = zip(steps.names, steps.buffers, strict=True)
    assert {shape.dtype.name for name, shape in buffers if "partial" in name} == {"f32"}
    values = {steps.parameters[0]: np.ones(20000, steps.buffers[steps.parameters[0]].dtype.numpy)}
    for step in steps.steps:
        kernel = emit(step.instruction, device("sm_90"))
        values.update(zip(step.outputs, run_emitted(kernel, [values[n] for n in step.inputs]), strict=True))
    assert float(values[steps.results[0]]) == 19968  # the bf16 nearest to 20000


@pytest.mark.parametrize(
    "text",
    [
        fold("f32", (16384,), (0,)),
        fold("f32", (20000,), (0,)).replace("add_f32", "halves"),
        fold("f32", (20000, 4), (1,)),
        fold("f32", (20000, 40), (1,)).replace("f32[20000,40]", "f32[20000,40]{0,1}"),
    ],
    ids=["fits", "depends on the order", "small", "small columns"],
)
def test_others_stay_as_they_are(text: str) -> None:
    """What a block can finish, what partial results don't give, and what the reduction emitter wouldn't take."""
    wrapped = wrap(parse_hlo(body(text)))
    assert split_reductions(wrapped, device("sm_90")) is wrapped


# ------------------------------------------------------------------------------------------------------------ on a CPU
ON_A_CPU = {
    "whole sum": fold("f32", (400, 400), (0, 1)),
    "a prime number of elements": fold("s32", (131101,), (0,)),
    "few long rows": fold("f32", (3, 50001), (1,)),
    "some rows that a block of a GPU could finish": fold("f32", (40, 4096), (1,)),
    "slabs of some rows": fold("f32", (3, 40, 2048), (0, 2)),
    "few columns": fold("f32", (40000, 4), (0,)),
    "some columns": fold("f32", (5000, 33), (0,), "max", "-inf"),
    "bf16": fold("bf16", (200, 1000), (0, 1)),
    "64 bits, no sign, an initial value": fold("u64", (140000,), (0,), "and", "9").replace("and_u64", "and64"),
    "prologue, epilogue and side output": CASES["prologue, epilogue and side output"][0].replace("5000", "50000"),
}


AND64 = "\nand64 { a = u64[] parameter(0)  b = u64[] parameter(1)  ROOT r = u64[] and(a, b) }\n"


@pytest.mark.parametrize("name", ON_A_CPU)
def test_few_results_are_the_work_of_all_cores_of_a_cpu(name: str) -> None:
    """Wrong: one work group for all elements; or another value."""
    module = parse_hlo(body(ON_A_CPU[name]).replace("\n", AND64, 1))
    arrays = random_inputs(module, profile=Profile.TAME)
    steps = make_schedule(split_reductions(wrap(module), device("cpu")))
    first, last = (emit(each.instruction, device("cpu")) for each in steps.steps)
    assert first.launch.grid[0] >= 2
    assert first.launch.grid[0] >= last.launch.grid[0]
    report = ws.run(module, *arrays, iterations=1, cache=False)
    assert report.match is True, report
    assert len(report.kernels) == 2


@pytest.mark.parametrize(
    "text",
    [
        fold("f32", (64, 4096), (1,)),
        fold("f32", (300, 400), (0, 1)),
        fold("f32", (400, 400), (0, 1)).replace("add_f32", "halves"),
    ],
    ids=["many results", "few elements", "depends on the order"],
)
def test_a_cpu_does_others_at_once(text: str) -> None:
    wrapped = wrap(parse_hlo(body(text)))
    assert split_reductions(wrapped, device("cpu")) is wrapped
