"""`deterministic`: scatters on a GPU give the interpreter's bits, whatever the combiner and the order of threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from differential import check_passes
from hero_kernels import assembled, case
from hero_kernels import body as shared_body
from needs import needs_ptxas

import warpsmith as ws
from warpsmith.cli import main
from warpsmith.compiler import compile, program, simulate, stage_text
from warpsmith.devices import device
from warpsmith.fusion.scatters import Scatter, order_matters
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo_passes import scatter_order
from warpsmith.numerics.inputs import Profile
from warpsmith.report.explain.explanation import explain
from warpsmith.report.run.checked_run import run

_MORE = """
max_f64 { a = f64[] parameter(0)  b = f64[] parameter(1)  ROOT r = f64[] maximum(a, b) }
overwrite_s4 { a = s4[] parameter(0)  ROOT b = s4[] parameter(1) }
take_away_s4 { a = s4[] parameter(0)  b = s4[] parameter(1)  ROOT r = s4[] subtract(a, b) }
"""


def body(text: str) -> str:
    return shared_body(text).replace("\n", _MORE, 1)


ROWS = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"


def rows(dtype: str, count: int, reducer: str, flags: str = "", index: str = "s32", width: int = 3) -> str:
    """Rows of an operand of nine rows updated, some indices out of range."""
    return f"""
        x = {dtype}[9,{width}] parameter(0)
        i = {index}[{count},1] parameter(1)
        u = {dtype}[{count},1,{width}] parameter(2)
        ROOT r = {dtype}[9,{width}] scatter(x, i, u), {ROWS}, to_apply={reducer}{flags}"""


SORTED = ", indices_are_sorted=true"
OVERLAPPING = """
        x = f32[12,10] parameter(0)
        i = s32[25,2] parameter(1)
        u = f32[25,3,4] parameter(2)
        ROOT r = f32[12,10] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply="""
# name -> (fusion body, number of the indices' parameter)
FUSIONS: dict[str, tuple[str, int]] = {
    "sum": (rows("f32", 40, "add_f32"), 1),
    "sum of bf16": (rows("bf16", 40, "add_bf16"), 1),
    "sum of c64": (rows("c64", 40, "add_c64"), 1),
    "product of c64": (rows("c64", 40, "mul_c64"), 1),
    "maximum of f64": (rows("f64", 40, "max_f64"), 1),
    "overwritten": (rows("f32", 40, "overwrite"), 1),
    "overwritten bytes": (rows("f32", 40, "overwrite", index="u8"), 1),
    "no combiner of any order": (rows("f32", 40, "take_away"), 1),
    "halves": (rows("f32", 40, "halves"), 1),
    "wide indices": (rows("f32", 40, "add_f32", index="s64"), 1),
    "wide unsigned indices": (rows("f32", 40, "add_f32", index="u64"), 1),
    "unsigned indices": (rows("f32", 40, "add_f32", index="u32"), 1),
    "narrow indices": (rows("f32", 40, "take_away", index="s8"), 1),
    "windows that overlap": (OVERLAPPING + "take_away", 1),
    "windows that overlap, overwritten": (OVERLAPPING + "overwrite", 1),
    "full windows": (
        """
        x = f32[5,4] parameter(0)
        i = s32[30,2] parameter(1)
        u = f32[30,1,4] parameter(2)
        ROOT r = f32[5,4] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=take_away""",
        1,
    ),
    "single elements of two indices": (
        """
        x = f32[4,5] parameter(0)
        i = s32[2,40] parameter(1)
        u = f32[40] parameter(2)
        ROOT r = f32[4,5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1},
        scatter_dims_to_operand_dims={1,0}, index_vector_dim=0, to_apply=take_away""",
        1,
    ),
    "batching and several scatter dimensions": (
        """
        x = f32[3,10] parameter(0)
        i = s32[8,3,2,1] parameter(1)
        u = f32[8,3,2,2] parameter(2)
        ROOT r = f32[3,10] scatter(x, i, u), update_window_dims={3}, inserted_window_dims={},
        input_batching_dims={0}, scatter_indices_batching_dims={1},
        scatter_dims_to_operand_dims={1}, index_vector_dim=3, to_apply=take_away""",
        1,
    ),
    "no index at all": (
        """
        x = f32[4] parameter(0)
        i = s32[3,7,0] parameter(1)
        u = f32[3,7,4] parameter(2)
        ROOT r = f32[4] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={}, index_vector_dim=2, to_apply=take_away""",
        1,
    ),
    "several operands": (
        """
        x = f32[9] parameter(0)
        y = s32[9] parameter(1)
        i = s32[40,1] parameter(2)
        u = f32[40,1] parameter(3)
        v = s32[40,1] parameter(4)
        ROOT r = (f32[9], s32[9]) scatter(x, y, i, u, v), update_window_dims={1}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=largest""",
        2,
    ),
    "updates and indices computed, another layout": (
        """
        x = f32[9,4]{0,1} parameter(0)
        i = s32[40,1] parameter(1)
        u = bf16[40,1,4] parameter(2)
        one = s32[] constant(1)
        ones = s32[40,1] broadcast(one), dimensions={}
        k = s32[40,1] subtract(i, ones)
        c = f32[40,1,4] convert(u)
        n = f32[40,1,4] negate(c)
        ROOT r = f32[9,4]{0,1} scatter(x, k, n), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32""",
        1,
    ),
}


def inputs(module: HloModule, number: int) -> list[Any]:
    """Values of many magnitudes, so that every order of a sum has other bits; indices in and a little out of range."""
    rng = np.random.default_rng(5)
    found: list[Any] = []
    for each in module.entry.parameters:
        shape = each.array_shape
        values = rng.standard_normal(shape.dims) * np.exp2(rng.integers(-3, 9, shape.dims))
        if shape.dtype.is_complex:
            values = values + 1j * rng.standard_normal(shape.dims)
        found.append(values.astype(shape.dtype.numpy))
    indices = found[number]
    low = 0 if indices.dtype.kind == "u" else -2
    found[number] = rng.integers(low, 11, indices.shape).astype(indices.dtype)
    return found


def same_bits(module: HloModule, arrays: list[Any], stage: str) -> None:
    """The simulated results are the interpreter's, and no access was wrong or raced another."""
    wanted = ws.evaluate(module, *arrays)
    found = simulate(module, *arrays, stage=stage, deterministic=True)
    assert found.findings == []
    for mine, theirs in zip(found.outputs, wanted, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()


def variants(module: HloModule, target: str = "sm_90") -> list[str]:
    return [k.opcode if k.host else k.variant for k in compile(module, target, deterministic=True).kernels]


@pytest.mark.parametrize("name", FUSIONS)
def test_few_slices_are_searched(name: str) -> None:
    """Wrong: an update missed, taken twice, in another order, or of another slice's element; a shared element."""
    text, number = FUSIONS[name]
    module = parse_hlo(body(text))
    assert variants(module) == ["ordered_search"]
    for stage in ("buffers", "ptx"):
        same_bits(module, inputs(module, number), stage)


@pytest.mark.parametrize("name", FUSIONS)
def test_many_slices_are_sorted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: the place of a slice or element, a slice that doesn't fit, the order of equal ones, the end of a run."""
    monkeypatch.setattr(scatter_order, "MOST_SEARCHED", 0)
    text, number = FUSIONS[name]
    module = parse_hlo(body(text))
    way = ["ordered_runs"] if name == "no index at all" else ["", "sort", "ordered_runs"]
    assert variants(module) == way
    for stage in ("buffers", "ptx"):
        same_bits(module, inputs(module, number), stage)


@pytest.mark.parametrize("reducer", ["add_f32", "overwrite", "take_away"])
@pytest.mark.parametrize("count", [2, 33, 64])
def test_sorted_indices_need_no_sort(reducer: str, count: int) -> None:
    """Wrong: the ends of a run, of the last one above all."""
    module = parse_hlo(body(rows("f32", count, reducer, SORTED)))
    assert variants(module) == ["ordered_runs"]
    arrays = inputs(module, 1)
    arrays[1] = np.sort(arrays[1], axis=0)
    same_bits(module, arrays, "ptx")
    arrays[1][:] = 4
    same_bits(module, arrays, "buffers")


def test_more_slices_than_are_searched_are_sorted() -> None:
    """The limit itself, unpatched."""
    most = scatter_order.MOST_SEARCHED
    assert variants(parse_hlo(body(rows("f32", most, "add_f32")))) == ["ordered_search"]
    module = parse_hlo(body(rows("f32", most + 1, "add_f32", width=1)))
    assert variants(module) == ["", "sort", "ordered_runs"]
    same_bits(module, inputs(module, 1), "ptx")


@pytest.mark.parametrize("limit", [2048, 0], ids=["searched", "sorted"])
@pytest.mark.parametrize("reducer", ["overwrite_s4", "take_away_s4"])
def test_elements_narrower_than_a_byte(reducer: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two places in one byte belong to two threads: one reads it while the other writes."""
    monkeypatch.setattr(scatter_order, "MOST_SEARCHED", limit)
    text = rows("s4", 30, reducer, width=1)
    module = parse_hlo(body(text))
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-8, 8, each.array_shape.dims) for each in module.entry.parameters]
    arrays = [a.astype(p.array_shape.dtype.numpy) for a, p in zip(arrays, module.entry.parameters, strict=True)]
    same_bits(module, arrays, "ptx")


def scatter_of(text: str) -> HloInstruction:
    (fusion,) = [each for each in parse_hlo(body(text)).computations if each.root.opcode == "scatter"]
    return fusion.root


@pytest.mark.parametrize(
    ("text", "matters"),
    [
        (rows("f32", 40, "add_f32"), True),
        (rows("f32", 1, "add_f32"), False),
        (rows("f32", 40, "add_f32", ", unique_indices=true"), False),
        (rows("s32", 40, "add_s32"), False),
        (rows("u8", 40, "mul_u8"), False),
        (rows("pred", 40, "and_pred"), False),
        (rows("f32", 40, "max_f32"), False),
        (rows("f16", 40, "min_f16"), False),
        (rows("f64", 40, "max_f64"), True),
        (rows("c64", 40, "add_c64"), True),
        (rows("f32", 40, "overwrite"), True),
        (rows("f32", 40, "take_away"), True),
        (FUSIONS["several operands"][0], True),
    ],
)
def test_scatters_of_which_any_order_gives_the_same_keep_their_steps(text: str, matters: bool) -> None:
    assert order_matters(Scatter(scatter_of(text))) is matters
    module = parse_hlo(body(text))
    if matters:
        assert variants(module)[-1].startswith("ordered")
    else:
        plain, flagged = (program(module, "sm_90", deterministic=each).module for each in (False, True))
        assert str(plain) == str(flagged)


def test_maxima_are_one_value_in_any_order() -> None:
    """NaNs with other payloads, and zeros of both signs: the words that stand for the atomic steps being kept."""
    module = parse_hlo(body(rows("f32", 16, "max_f32", width=1)))
    arrays = inputs(module, 1)
    arrays[1][:] = 3
    arrays[2].reshape(-1)[:] = np.array([0x7FC00001, 0x7FC00002, 0xFFC00003, 0] * 4, np.uint32).view(np.float32)
    first = simulate(module, *arrays, deterministic=True).outputs
    arrays[2] = arrays[2][::-1].copy()
    again = simulate(module, *arrays, deterministic=True).outputs
    assert first[0].tobytes() == again[0].tobytes()


def test_ordered_kernels_have_no_atomic_step() -> None:
    """What makes them repeat: a place has one thread, and no step of a float is left to the order of threads."""
    for name, (text, _) in FUSIONS.items():
        exe = compile(parse_hlo(body(text)), "sm_90", deterministic=True)
        assert "atom." not in exe.artifact("ptx"), name
        assert "red." not in exe.artifact("ptx"), name


def test_without_the_flag_nothing_changes() -> None:
    module = parse_hlo(body(FUSIONS["sum"][0]))
    assert [k.variant for k in compile(module, "sm_90").kernels] == ["distributed_updates"]
    assert scatter_order.keep_order(module, device("cpu")) is module


def test_unfused_scatters_are_kept_in_order_too() -> None:
    """One of several operands, which runs on the host otherwise."""
    text = FUSIONS["several operands"][0]
    whole = body(text).replace("fused {", "ENTRY fused {")
    module = parse_hlo(whole)
    assert [k.host for k in compile(module, "sm_90").kernels] == [True]
    assert variants(module) == ["ordered_search"]
    same_bits(module, inputs(module, 2), "ptx")


ITSELF = """
    x = f32[600] parameter(0)
    i = s32[600] parameter(1)
    ROOT r = f32[600] scatter(x, i, x), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=take_away"""


@pytest.mark.parametrize("limit", [2048, 0], ids=["searched", "sorted"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_updates_that_are_the_operand_are_read_before_it_changes(
    deterministic: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: one buffer for what is read and what is written, which threads of other blocks see changed or not."""
    monkeypatch.setattr(scatter_order, "MOST_SEARCHED", limit)
    module = parse_hlo(body(ITSELF).replace("fused {", "ENTRY fused {"))
    arrays = [np.arange(600, dtype=np.float32), np.arange(600, dtype=np.int32)[::-1].copy()]
    found = simulate(module, *arrays, deterministic=deterministic)
    assert found.findings == []
    assert found.outputs[0].tobytes() == ws.evaluate(module, *arrays)[0].tobytes()


def test_no_updates_at_all() -> None:
    module = parse_hlo(body(rows("f32", 40, "add_f32").replace("[40,", "[0,")))
    arrays = inputs(module, 1)
    (found,) = simulate(module, *arrays, deterministic=True).outputs
    assert found.tobytes() == arrays[0].tobytes()


def test_the_rewritten_module_means_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text reads back, the interpreter gives the same bits, and a second rewrite adds nothing."""
    monkeypatch.setattr(scatter_order, "MOST_SEARCHED", 0)
    for name, (text, number) in FUSIONS.items():
        module = parse_hlo(body(text))
        arrays = inputs(module, number)
        new = program(module, "sm_90", deterministic=True).module
        assert parse_hlo(str(new)) == new
        for a, b in zip(ws.evaluate(module, *arrays), ws.evaluate(new, *arrays), strict=True):
            assert a.tobytes() == b.tobytes(), name


def test_the_way_and_its_cost_are_said() -> None:
    found = explain(parse_hlo(body(FUSIONS["sum"][0])), deterministic=True)
    (kernel,) = found.kernels
    assert kernel.variant == "ordered_search"
    assert any("looks through 40 index vectors" in note for note in kernel.notes)
    report = run(parse_hlo(body(FUSIONS["sum"][0])), target="sm_90", platform="sim", deterministic=True)
    assert report.match is True
    assert [k.variant for k in report.kernels] == ["ordered_search"]
    text = rows("f32", 40, "add_f32", SORTED)
    (kernel,) = explain(parse_hlo(body(text)), deterministic=True).kernels
    assert any("largest number of updates of one place, at most 40" in note for note in kernel.notes)


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
def test_the_commands_print_what_they_compile(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong: a way to a text that doesn't know the flag on a GPU; another text by it on a CPU, which has one order."""
    file = tmp_path / "m.hlo"
    file.write_text(str(parse_hlo(body(FUSIONS["sum"][0]))))
    steps: list[tuple[int, int]] = []
    for flag in ([], ["--deterministic"]):
        assert main(["compile", str(file), "--target", target, "--stage", "lowered", *flag]) == 0
        lowered = capsys.readouterr().out
        assert main(["compile", str(file), "--target", target, "--dump-to", str(tmp_path / target), *flag]) == 0
        (dumped,) = (tmp_path / target).glob(
            "m.*.lower-atomics.mlir" if target == "sm_90" else "m.*.flatten-tensors.mlir"
        )
        steps.append((lowered.count("llvm.cmpxchg"), dumped.read_text().count("xla_gpu.compare_exchange")))
    assert steps == ([(1, 1), (0, 0)] if target == "sm_90" else [(0, 0), (0, 0)])


def test_a_cpu_has_one_code_for_both() -> None:
    module = parse_hlo(body(FUSIONS["sum"][0]))
    assert stage_text(module, "lowered", "cpu", deterministic=True) == stage_text(module, "lowered", "cpu")


MARKED = ', frontend_attributes={update_order="kept"}'


@pytest.mark.parametrize("flags", [MARKED, MARKED + SORTED], ids=["search", "runs"])
def test_every_pass_keeps_the_order(flags: str) -> None:
    text = rows("f32", 20, "take_away", flags)
    check_passes(case("ordered", text, Profile.TAME, ((1, 1),)), "sm_90")


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    "text",
    [rows("bf16", 40, "add_bf16", MARKED), rows("f64", 40, "take_away", MARKED + SORTED)],
    ids=["search", "runs"],
)
def test_ordered_kernels_assemble(text: str, target: str) -> None:
    ptx, cubin = assembled(text, target)
    assert "atom." not in ptx
    assert cubin.kernels
