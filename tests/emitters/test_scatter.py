"""The scatter emitter: launch as XLA's, results as the interpreter's, after emission and every pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import check_passes
from hero_kernels import assembled, body, case, emitted, ids_of, launched, rows_of
from kernel_runner import check, random_inputs
from needs import needs_ptxas

from warpsmith.errors import UnsupportedFusion
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.inputs import Profile


@pytest.mark.parametrize("row", rows_of("scatter"), ids=ids_of)
def test_launch_is_xlas(row: dict[str, Any]) -> None:
    """Wrong: the strategy, indices a warp, the vector factor, or whole warps."""
    found, _ = launched(row)
    assert found == {key: row[key] for key in found}


def simple(
    dtype: str, rows: int, count: int, width: int, flags: str = "", reducer: str = "add_f32", index: str = "s32"
) -> str:
    """Rows of `width` elements added to an operand of `rows` rows."""
    return f"""
        x = {dtype}[{rows},{width}] parameter(0)
        i = {index}[{count},1] parameter(1)
        u = {dtype}[{count},1,{width}] parameter(2)
        ROOT r = {dtype}[{rows},{width}] scatter(x, i, u), update_window_dims={{1,2}}, inserted_window_dims={{}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={reducer}{flags}"""


SORTED, UNIQUE = ", indices_are_sorted=true", ", unique_indices=true"
# name -> (fusion body, (parameter, extent) of indices)
FUSIONS: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {
    "add": (simple("f32", 20, 33, 7), ((1, 20),)),
    "one element each": (simple("f32", 30, 77, 1), ((1, 30),)),
    "unsigned indices": (simple("f32", 20, 33, 4, index="u8"), ((1, 20),)),
    "wide indices": (simple("f32", 20, 33, 4, index="s64"), ((1, 20),)),
    "f64": (simple("f64", 9, 40, 3, reducer="add_f64"), ((1, 9),)),
    "bf16": (simple("bf16", 9, 40, 3, reducer="add_bf16"), ((1, 9),)),
    "f16 minimum": (simple("f16", 9, 40, 4, reducer="min_f16"), ((1, 9),)),
    "s32": (simple("s32", 9, 40, 3, reducer="add_s32"), ((1, 9),)),
    "u8 product": (simple("u8", 9, 40, 3, reducer="mul_u8"), ((1, 9),)),
    "pred": (simple("pred", 9, 40, 3, reducer="and_pred"), ((1, 9),)),
    "c64": (simple("c64", 9, 40, 3, reducer="add_c64"), ((1, 9),)),
    "maximum": (simple("f32", 9, 40, 3, reducer="max_f32"), ((1, 9),)),
    "windows of two indices": (
        """
        x = f32[20,30] parameter(0)
        i = s32[25,2] parameter(1)
        u = f32[25,3,4] parameter(2)
        ROOT r = f32[20,30] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=add_f32""",
        ((1, 20),),
    ),
    "inserted window dimensions": (
        """
        x = s32[6,5] parameter(0)
        i = s32[40,2] parameter(1)
        u = s32[40] parameter(2)
        ROOT r = s32[6,5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1},
        scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=add_s32""",
        ((1, 7),),
    ),
    "scalars for indices, several scatter dimensions": (
        """
        x = f32[30,4] parameter(0)
        i = s32[5,6] parameter(1)
        u = f32[4,5,6] parameter(2)
        ROOT r = f32[30,4] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=add_f32""",
        ((1, 30),),
    ),
    "batching dimensions": (
        """
        x = f32[3,10] parameter(0)
        i = s32[8,3,1] parameter(1)
        u = f32[8,3,2] parameter(2)
        ROOT r = f32[3,10] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={},
        input_batching_dims={0}, scatter_indices_batching_dims={1},
        scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=add_f32""",
        ((1, 10),),
    ),
    "updates and indices computed": (
        """
        x = f32[20,6] parameter(0)
        i = s32[30,1] parameter(1)
        u = bf16[30,1,6] parameter(2)
        one = s32[] constant(1)
        ones = s32[30,1] broadcast(one), dimensions={}
        k = s32[30,1] add(i, ones)
        c = f32[30,1,6] convert(u)
        n = f32[30,1,6] negate(c)
        ROOT r = f32[20,6] scatter(x, k, n), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32""",
        ((1, 20),),
    ),
}
LOWERED = ("add", "bf16", "f16 minimum", "s32", "u8 product", "c64", "windows of two indices", "batching dimensions")


def inputs(text: str, indices: tuple[tuple[int, int], ...], change: str = "") -> list[Any]:
    """Tame values; indices a little out of range at both ends, sorted or without repetition on demand."""
    module = parse_hlo(body(text))
    arrays = random_inputs(module, profile=Profile.TAME)
    rng = np.random.default_rng(3)
    for number, extent in indices:
        shape = arrays[number].shape
        low = 0 if arrays[number].dtype.kind == "u" else -2
        drawn = rng.integers(low, extent + 2, shape)
        if change == "sorted":
            drawn = np.sort(drawn.reshape(-1)).reshape(shape)
        if change == "unique":
            drawn = rng.permutation(np.arange(low, low + drawn.size)).reshape(shape)
        arrays[number] = drawn.astype(arrays[number].dtype)
    return arrays


@pytest.mark.parametrize("name", FUSIONS)
def test_emitted_kernels_give_the_interpreters_results(name: str) -> None:
    """Wrong: a slice's place, a slice dropped in part, or an update lost."""
    text, indices = FUSIONS[name]
    kernel = emitted(text)
    assert (kernel.origin.emitter, kernel.origin.variant, kernel.aliases) == (
        "scatter",
        "distributed_updates",
        ((0, 0),),
    )
    check(body(text), inputs(text, indices))


@pytest.mark.parametrize("name", LOWERED)
def test_every_pass_keeps_the_results(name: str) -> None:
    """Wrong: an atomic step taken apart, or a loop that gives up."""
    text, indices = FUSIONS[name]
    check_passes(case(name, text, Profile.TAME, indices), "sm_90")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows", simple("f32", 30, 600, 6, SORTED)),
        ("one index a warp", simple("f32", 600, 600, 6, SORTED)),
        ("words of rows", simple("bf16", 10, 600, 24, SORTED, "add_bf16")),
        ("vectors of indices", simple("s32", 3, 3000, 5, SORTED, "add_s32")),
        ("long rows", simple("f32", 7, 600, 300, SORTED)),
    ],
)
def test_sorted_indices_meet_in_registers(name: str, text: str) -> None:
    """Wrong: what is held written to the next place, lost at the end, or kept across a slice that was dropped."""
    assert emitted(text).origin.variant == "distributed_indices"
    extent = int(text.partition("[")[2].partition(",")[0])
    arrays = inputs(text, ((1, extent),), "sorted")
    if name == "words of rows":  # sums in another order are the same only of small whole numbers
        arrays[0], arrays[2] = (np.rint(np.asarray(a, np.float32) % 2).astype(a.dtype) for a in (arrays[0], arrays[2]))
    check(body(text), arrays)


def test_every_pass_keeps_what_is_held_in_registers() -> None:
    text = simple("f32", 8, 600, 3, SORTED)
    assert emitted(text).origin.variant == "distributed_indices"
    check_passes(case("sorted", text, Profile.TAME, ((1, 8),)), "sm_90")


@pytest.mark.parametrize("flags", ["", UNIQUE], ids=["any", "unique"])
def test_elements_narrower_than_a_byte(flags: str) -> None:
    """Neighbours in one byte are updated by other threads: the byte is exchanged as a whole."""
    text = simple("s4", 33, 30, 1, flags, "add_s4")
    check(body(text), inputs(text, ((1, 30),), "unique"))
    if not flags:
        check_passes(case("narrow", text, Profile.TAME, ((1, 33),)), "sm_90")


def test_unique_indices_need_no_atomic_step() -> None:
    """Even where the combiner is no instruction, or there are several operands."""
    text = simple("f32", 50, 40, 3, UNIQUE, "halves")
    assert "atomic" not in str(emitted(text).module)
    check(body(text), inputs(text, ((1, 45),), "unique"))
    several = """
        x = f32[50] parameter(0)
        y = s32[50] parameter(1)
        i = s32[40,1] parameter(2)
        u = f32[40,1] parameter(3)
        v = s32[40,1] parameter(4)
        ROOT r = (f32[50], s32[50]) scatter(x, y, i, u, v), update_window_dims={1}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=argmax"""
    assert emitted(several).aliases == ((0, 0), (1, 1))
    check(body(several), inputs(several, ((2, 45),), "unique"))


@pytest.mark.parametrize("reducer", ["mul_c64", "argmax"])
def test_one_slice_needs_no_atomic_step(reducer: str) -> None:
    """No element of it meets another: a product of complex numbers, and several operands, are kernels here."""
    text = simple("c64", 9, 1, 3, reducer=reducer)
    if reducer == "argmax":
        text = """
        x = f32[9] parameter(0)
        k = s32[9] parameter(1)
        i = s32[1,1] parameter(2)
        u = f32[1,4] parameter(3)
        v = s32[1,4] parameter(4)
        ROOT r = (f32[9], s32[9]) scatter(x, k, i, u, v), update_window_dims={1}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=argmax"""
    assert not any(op.name == "xla_gpu.atomic_rmw" for op in emitted(text).module.walk())
    arrays = inputs(text, ())
    arrays[2 if reducer == "argmax" else 1][:] = 5
    check(body(text), arrays)


def test_an_update_that_overwrites_is_a_store() -> None:
    """Without repeated indices the result is known."""
    text = simple("f32", 50, 40, 3, "", "overwrite")
    assert "atomic" not in str(emitted(text).module)
    check(body(text), inputs(text, ((1, 45),), "unique"))


ITSELF = """
    x = f32[600] parameter(0)
    i = s32[600] parameter(1)
    u = f32[600] parameter(2)
    ROOT r = f32[600] scatter(x, i, x), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            simple("f32", 20, 33, 7)
            .replace("scatter(x,", "scatter(n,")
            .replace("i = ", "n = f32[20,7] negate(x)\n i = "),
            "computed inside the fusion",
        ),
        (
            simple("f32", 33, 33, 1).replace("u = f32[33,1,1] parameter(2)", "u = f32[33,1,1] reshape(x)"),
            "read elsewhere",
        ),
        (ITSELF, "read elsewhere"),
        (ITSELF.replace("(x, i, x)", "(i, i, u)").replace("f32", "s32"), "read elsewhere"),
        (simple("c64", 20, 33, 7, "", "mul_c64"), "complex"),
    ],
    ids=["operand computed", "operand read", "operand is the update", "operand is the indices", "complex product"],
)
def test_what_it_refuses_it_says(text: str, reason: str) -> None:
    """There is no other emitter: the error says why and what to do."""
    with pytest.raises(UnsupportedFusion, match=reason):
        emitted(text)


@needs_ptxas
@pytest.mark.parametrize(
    ("dtype", "reducer", "target", "wanted"),
    [
        ("f32", "add_f32", "sm_80", "cas.b32"),
        ("f64", "add_f64", "sm_90", "add.f64"),
        ("bf16", "add_bf16", "sm_80", "cas.b32"),
        ("bf16", "add_bf16", "sm_90", "add.noftz.bf16"),
        ("s32", "add_s32", "sm_100", "add"),
        ("u8", "mul_u8", "sm_90", "cas.b32"),
        ("f16", "min_f16", "sm_90", "cas.b32"),
    ],
)
def test_atomic_instructions_are_the_architectures(dtype: str, reducer: str, target: str, wanted: str) -> None:
    """An instruction where there is one, a compare-and-exchange of the word where not."""
    ptx, _ = assembled(simple(dtype, 20, 33, 7, "", reducer), target)
    lines = [line for line in ptx.splitlines() if "atom" in line or "red." in line]
    assert any(wanted in line for line in lines), lines
