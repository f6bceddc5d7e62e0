"""The reduction emitters: launch as XLA's, results as the interpreter's, after emission and every pass."""

from __future__ import annotations

from typing import Any

import pytest
from differential import check_passes
from hero_kernels import analysis_of, assembled, body, case, emitted, ids_of, launched, rows_of
from indexing.bijection import is_bijection_onto
from kernel_runner import check
from needs import needs_ptxas

from warpsmith.emitters.gpu import reduction
from warpsmith.emitters.gpu.reduction_groups import reduction_groups
from warpsmith.numerics.inputs import Profile


@pytest.mark.parametrize("row", rows_of("reduction"), ids=ids_of)
def test_launch_and_tile_are_xlas(row: dict[str, Any]) -> None:
    """Wrong: threads, rows of a block, the vector factor, groups, or the choice of variant.

    Sums of 16-bit floats cross warps as f32: their tiles are twice as large as XLA's, which rounds partial sums.
    """
    found, kernel = launched(row)
    expected = {key: row[key] for key in found}
    if {each.dtype.name for each in kernel.outputs} & {"bf16", "f16"} and "f32" not in row["hlo"]:
        expected["shared_bytes"] *= 2
    assert found == expected


def fold(dtype: str, dims: tuple[int, ...], reduced: tuple[int, ...], op: str = "add", init: str = "0") -> str:
    """A reduce of one parameter by one of the reducers."""
    kept = ",".join(str(n) for d, n in enumerate(dims) if d not in reduced)
    gone = ",".join(map(str, reduced))
    return f"""
        p = {dtype}[{",".join(map(str, dims))}] parameter(0)
        z = {dtype}[] constant({init})
        ROOT r = {dtype}[{kept}] reduce(p, z), dimensions={{{gone}}}, to_apply={op}_{dtype}"""


ROW = {
    "f32, one warp": fold("f32", (9, 45), (1,)),
    "f32, two warps": fold("f32", (7, 700), (1,)),
    "f32, several blocks": fold("f32", (21, 530), (1,)),
    "f32, whole block": fold("f32", (16384,), (0,), "max", "-inf"),
    "f32, to a scalar": fold("f32", (3, 5, 70), (0, 1, 2)),
    "f32, minor and major": fold("f32", (7, 10, 128), (0, 2)),
    "bf16": fold("bf16", (5, 1030), (1,)),
    "f16 minimum": fold("f16", (5, 260), (1,), "min", "inf"),
    "f64": fold("f64", (6, 600), (1,)),
    "s32": fold("s32", (5, 66), (1,)),
    "u8 product": fold("u8", (5, 140), (1,), "mul", "1"),
    "pred and": fold("pred", (3, 1200), (1,), "and", "true"),
    "c64": fold("c64", (4, 1100), (1,), "add", "(0,0)"),
}
MULTI_ROW = {
    "f32 x2": fold("f32", (45, 2), (1,)),
    "f32 x8": fold("f32", (70, 8), (1,)),
    "f32 x32": fold("f32", (20, 32), (1,)),
    "f32 x1": fold("f32", (1, 1), (1,)),
    "f32 with major": fold("f32", (3, 50, 16), (0, 2)),
    "bf16 x16": fold("bf16", (50, 16), (1,)),
    "pred x2": fold("pred", (300, 2), (1,), "and", "true"),
    "f64 x4": fold("f64", (33, 4), (1,)),
    "c64 x8": fold("c64", (9, 8), (1,), "add", "(0,0)"),
    "f16 minimum x8": fold("f16", (80, 8), (1,), "min", "inf"),
}
COLUMN = {
    "f32 odd": fold("f32", (70, 33), (0,)),
    "f32 pairs": fold("f32", (66, 130), (0,)),
    "f32 batched": fold("f32", (3, 65, 37), (1,)),
    "f32 narrow": fold("f32", (256, 3), (0,)),
    "bf16 fours": fold("bf16", (40, 136), (0,)),
    "s16 fours": fold("s32", (64, 128), (0,)),
    "f64": fold("f64", (130, 40), (0,)),
    "pred": fold("pred", (70, 64), (0,), "and", "true"),
    "c64": fold("c64", (65, 33), (0,), "add", "(0,0)"),
    "f32 maximum": fold("f32", (65, 65), (0,), "max", "-inf"),
}
SMALL_COLUMN = {
    "f32 x2": fold("f32", (270, 2), (0,)),
    "f32 x4": fold("f32", (3, 129, 4), (1,)),
    "f32 x32": fold("f32", (70, 32), (0,)),
    "f32 x8": fold("f32", (130, 8), (0,)),
    "bf16 x32": fold("bf16", (67, 32), (0,)),
    "u8 product x16": fold("u8", (70, 16), (0,), "mul", "1"),
    "f64 x16": fold("f64", (2, 70, 16), (1,)),
    "c64 x4": fold("c64", (140, 4), (0,), "add", "(0,0)"),
    "pred x32": fold("pred", (64, 32), (0,), "and", "true"),
}
ALL = {
    **{f"row: {k}": v for k, v in ROW.items()},
    **{f"multi-row: {k}": v for k, v in MULTI_ROW.items()},
    **{f"column: {k}": v for k, v in COLUMN.items()},
    **{f"small column: {k}": v for k, v in SMALL_COLUMN.items()},
}
FUSIONS = {
    "epilogue": """
        p = f32[9,600] parameter(0)
        q = f32[9] parameter(1)
        z = f32[] constant(0)
        n = f32[9,600] negate(p)
        r = f32[9] reduce(n, z), dimensions={1}, to_apply=add_f32
        e = f32[9] abs(r)
        ROOT t = bf16[9] convert(e)""",
    "epilogue of another rank": """
        p = f32[4,3,64] parameter(0)
        z = f32[] constant(0)
        r = f32[4,3] reduce(p, z), dimensions={2}, to_apply=add_f32
        b = f32[12] bitcast(r)
        ROOT n = f32[12] negate(b)""",
    "output in another layout": """
        p = f32[4,3,64]{2,1,0} parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[4,3]{0,1} reduce(p, z), dimensions={2}, to_apply=add_f32""",
    "input in another layout": """
        p = f32[40,64]{0,1} parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[64] reduce(p, z), dimensions={0}, to_apply=add_f32""",
    "input in another layout, column": """
        p = f32[40,64]{0,1} parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[40] reduce(p, z), dimensions={1}, to_apply=add_f32""",
    "side output": """
        p = f32[9,600] parameter(0)
        z = f32[] constant(0)
        e = f32[9,600] negate(p)
        r = f32[9] reduce(e, z), dimensions={1}, to_apply=add_f32
        ROOT t = (f32[9], f32[9,600]) tuple(r, e)""",
    "side output of another rank, column": """
        p = f32[66,64] parameter(0)
        z = f32[] constant(-inf)
        e = f32[66,64] negate(p)
        b = f32[4224] bitcast(e)
        c = bf16[4224] convert(b)
        r = f32[64] reduce(e, z), dimensions={0}, to_apply=max_f32
        ROOT t = (bf16[4224], f32[64]) tuple(c, r)""",
    "side output that reads the result": """
        p = f32[8,8] parameter(0)
        z = f32[] constant(0)
        r = f32[] reduce(p, z), dimensions={0,1}, to_apply=add_f32
        b = f32[8,8] broadcast(r), dimensions={}
        ROOT t = (f32[8,8], f32[]) tuple(b, r)""",
    "two results of one input": """
        p = f32[9,600] parameter(0)
        z = f32[] constant(0)
        i = f32[] constant(-inf)
        r = f32[9] reduce(p, z), dimensions={1}, to_apply=add_f32
        m = f32[9] reduce(p, i), dimensions={1}, to_apply=max_f32
        n = f32[9] negate(m)
        ROOT t = (f32[9], f32[9], f32[9]) tuple(r, n, m)""",
    "three groups": """
        p = f32[9,600] parameter(0)
        q = s32[9,600] parameter(1)
        s = f32[9,600] parameter(2)
        z = f32[] constant(0)
        k = s32[] constant(0)
        r = f32[9] reduce(p, z), dimensions={1}, to_apply=add_f32
        m = s32[9] reduce(q, k), dimensions={1}, to_apply=add_s32
        n = f32[9,600] negate(s)
        ROOT t = (f32[9], s32[9], f32[9,600]) tuple(r, m, n)""",
    "groups of columns": """
        p = f32[70,64] parameter(0)
        q = bf16[70,64] parameter(1)
        z = f32[] constant(0)
        k = bf16[] constant(0)
        r = f32[64] reduce(p, z), dimensions={0}, to_apply=add_f32
        m = bf16[64] reduce(q, k), dimensions={0}, to_apply=add_bf16
        ROOT t = (f32[64], bf16[64]) tuple(r, m)""",
    "largest and where": """
        p = f32[9,600] parameter(0)
        i = s32[9,600] iota(), iota_dimension=1
        z = f32[] constant(-inf)
        k = s32[] constant(0)
        ROOT r = (f32[9], s32[9]) reduce(p, i, z, k), dimensions={1}, to_apply=largest""",
    "largest and where, columns": """
        p = f32[70,40] parameter(0)
        i = s32[70,40] iota(), iota_dimension=0
        z = f32[] constant(-inf)
        k = s32[] constant(0)
        ROOT r = (f32[40], s32[40]) reduce(p, i, z, k), dimensions={0}, to_apply=largest""",
    "initial value from outside": """
        p = f32[13,105,33] parameter(0)
        z = f32[] parameter(1)
        ROOT r = f32[13,33] reduce(p, z), dimensions={1}, to_apply=add_f32""",
    "initial value that counts": """
        p = s32[13,105] parameter(0)
        z = s32[] constant(7)
        ROOT r = s32[13] reduce(p, z), dimensions={1}, to_apply=add_s32""",
    "initial value of a narrow sum": """
        p = bf16[13,105] parameter(0)
        z = bf16[] parameter(1)
        ROOT r = bf16[13] reduce(p, z), dimensions={1}, to_apply=add_bf16""",
    "no input": """
        i = s32[40,300] iota(), iota_dimension=1
        k = s32[] constant(0)
        ROOT r = s32[40] reduce(i, k), dimensions={1}, to_apply=add_s32""",
    "transposed input": """
        p = f32[64,40] parameter(0)
        z = f32[] constant(0)
        t = f32[40,64] transpose(p), dimensions={1,0}
        ROOT r = f32[40] reduce(t, z), dimensions={1}, to_apply=add_f32""",
}
TAME = Profile.TAME


def test_each_variant_is_tested() -> None:
    """So that the cases below test what their names say."""
    for name, text in ALL.items():
        assert emitted(text).origin.variant == name.partition(":")[0].replace("-", "_").replace(" ", "_"), name


@pytest.mark.parametrize("name", [*ALL, *FUSIONS])
def test_emitted_kernels_give_the_interpreters_results(name: str) -> None:
    """Wrong: an element that no thread or two threads take, a lane left out of a shuffle, an unguarded write."""
    text = {**ALL, **FUSIONS}[name]
    assert emitted(text).origin.emitter == "reduction"
    check(body(text), profile=TAME)


LOWERED = (
    *("row: f32, two warps", "row: f32, minor and major", "row: bf16", "row: pred and", "row: c64", "row: f64"),
    *("multi-row: f32 x32", "multi-row: bf16 x16", "column: f32 pairs", "column: bf16 fours", "column: c64"),
    *("small column: f32 x4", "small column: bf16 x32", "side output", "three groups", "largest and where, columns"),
    *("initial value of a narrow sum", "epilogue"),
)


@pytest.mark.parametrize("name", LOWERED)
def test_every_pass_keeps_the_results(name: str) -> None:
    """Wrong: a pass that moves an access across a barrier, or a shuffle under a branch."""
    assert check_passes(case(name, {**ALL, **FUSIONS}[name], TAME), "sm_90").simulated > 8


@pytest.mark.parametrize("name", ALL)
def test_each_element_is_read_once_and_each_result_written_once(name: str) -> None:
    """Wrong: a thread's share that overlaps another's, or leaves a gap; side outputs rely on it."""
    chosen = reduction.geometry(analysis_of(ALL[name]))
    assert is_bijection_onto(chosen.input_map(), chosen.input_dims)
    assert is_bijection_onto(chosen.output_map(), chosen.output_dims)


def test_roots_with_inputs_in_common_share_a_block() -> None:
    """A scalar in common is no reason; side outputs stay together."""
    groups = reduction_groups(analysis_of(FUSIONS["three groups"]))
    assert [[root.name for root in (*g.reduced, *g.sides)] for g in groups] == [["r"], ["m"], ["n"]]
    (group,) = reduction_groups(analysis_of(FUSIONS["two results of one input"]))
    assert [root.name for root in group.reduced] == ["r", "n", "m"]
    assert [hero.name for hero in group.heroes] == ["r", "m"]


def test_what_partial_results_cannot_give_is_left_to_the_loop() -> None:
    """A reducer whose value depends on the order, or a start value that may not be combined twice."""
    for text, reason in (
        (fold("f32", (9, 64), (1,)).replace("add_f32", "halves"), "depends on the order"),
        (FUSIONS["largest and where"].replace("=largest", "=argmax"), "depends on the order"),
        (FUSIONS["largest and where"].replace("s32[] constant(0)", "s32[] parameter(1)"), "more than once"),
        (fold("f32", (9, 64), (1,)).replace("add_f32", "take_away"), "more than once"),
    ):
        kernel = emitted(text)
        assert kernel.origin.emitter == "loop"
        assert any(each.emitter == "reduction" and reason in each.reason for each in kernel.origin.refused), (
            kernel.origin.refused
        )
        check(body(text), profile=TAME)


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    "name", ["row: f32, two warps", "row: f64", "column: bf16 fours", "small column: c64 x4", "three groups"]
)
def test_ptxas_takes_the_ptx(name: str, target: str) -> None:
    """Wrong: a shuffle, a barrier in a branch, or shared memory that ptxas refuses."""
    text = {**ALL, **FUSIONS}[name]
    ptx, cubin = assembled(text, target)
    assert "shfl.sync.down" in ptx
    assert cubin.kernels[0].shared == emitted(text, target).launch.shared_bytes
