"""The hero emitters on the CPU: every type and odd shape gives the interpreter's results, in the simulator as well.

Machine code runs every case; the simulator, after emission and after each pass, those that take a way of their own.
"""

from __future__ import annotations

import numpy as np
import pytest
from differential import assert_close, check_passes
from fusion_corpus import Case, inputs_of
from hero_kernels import body, case, emitted

import warpsmith as ws
from warpsmith.devices import device
from warpsmith.emitters.cpu import scatter as cpu_scatter
from warpsmith.hlo.evaluator import evaluate_with_bounds
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile

TYPES = ("f32", "bf16", "s8", "f64", "pred", "c64")
ZERO = {"pred": "false", "c64": "(0,0)"}
REDUCER = {"pred": "and_pred"}


def dims(sizes: tuple[int, ...]) -> str:
    return ",".join(map(str, sizes))


def transpose(dtype: str, sizes: tuple[int, ...], order: tuple[int, ...]) -> str:
    made = tuple(sizes[d] for d in order)
    return f"""
        p = {dtype}[{dims(sizes)}] parameter(0)
        ROOT t = {dtype}[{dims(made)}] transpose(p), dimensions={{{dims(order)}}}"""


def fold(dtype: str, sizes: tuple[int, ...], reduced: tuple[int, ...], layout: str = "") -> str:
    kept = tuple(n for d, n in enumerate(sizes) if d not in reduced)
    start = "true" if dtype == "pred" else ZERO.get(dtype, "0")
    reducer = REDUCER.get(dtype, f"add_{dtype}")
    return f"""
        p = {dtype}[{dims(sizes)}]{layout} parameter(0)
        z = {dtype}[] constant({start})
        ROOT r = {dtype}[{dims(kept)}] reduce(p, z), dimensions={{{dims(reduced)}}}, to_apply={reducer}"""


def joined(dtype: str, others: tuple[int, ...], sizes: tuple[int, ...], along: int, layout: str = "") -> str:
    def shape(size: int) -> str:
        return dims((*others[:along], size, *others[along:]))

    lines = [f"p{i} = {dtype}[{shape(n)}]{layout} parameter({i})" for i, n in enumerate(sizes)]
    names = ", ".join(f"p{i}" for i in range(len(sizes)))
    result = f"{dtype}[{shape(sum(sizes))}]{layout}"
    return "\n".join([*lines, f"ROOT r = {result} concatenate({names}), dimensions={{{along}}}"])


def slices(dtype: str, layout: str = "") -> str:
    return f"""
        p = {dtype}[20,70]{layout} parameter(0)
        a = {dtype}[20,33]{layout} slice(p), slice={{[0:20], [0:33]}}
        b = {dtype}[7,70]{layout} slice(p), slice={{[5:12], [0:70]}}
        c = {dtype}[1,1]{layout} slice(p), slice={{[19:20], [69:70]}}
        ROOT t = ({dtype}[20,33]{layout}, {dtype}[7,70]{layout}, {dtype}[1,1]{layout}) tuple(a, b, c)"""


def update(dtype: str, layout: str = "") -> str:
    return f"""
        p = {dtype}[20,70]{layout} parameter(0)
        u = {dtype}[7,33]{layout} parameter(1)
        i = s32[] parameter(2)
        j = s32[] parameter(3)
        ROOT r = {dtype}[20,70]{layout} dynamic-update-slice(p, u, i, j)"""


def scatter(dtype: str, rows: int, count: int, width: int, reducer: str = "", flags: str = "") -> str:
    reducer = reducer or REDUCER.get(dtype, f"add_{dtype}")
    return f"""
        x = {dtype}[{rows},{width}] parameter(0)
        i = s32[{count},1] parameter(1)
        u = {dtype}[{count},{width}] parameter(2)
        ROOT r = {dtype}[{rows},{width}] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={reducer}{flags}"""


# name -> (emitter.variant, fusion body, (parameter, extent) of indices)
CASES: dict[str, tuple[str, str, tuple[tuple[int, int], ...]]] = {}
for _type in TYPES:
    for _sizes in ((64, 64), (33, 70), (16, 300)):
        CASES[f"transpose {_type} {_sizes}"] = ("transpose.registers", transpose(_type, _sizes, (1, 0)), ())
    CASES[f"transpose {_type}, three dims"] = ("transpose.registers", transpose(_type, (17, 5, 41), (2, 1, 0)), ())
    for _sizes, _reduced in (((9, 600), (1,)), ((3, 5, 64), (0, 2)), ((7, 17), (1,)), ((1, 1, 40), (0, 1, 2))):
        CASES[f"row {_type} {_sizes}"] = ("reduction.row", fold(_type, _sizes, _reduced), ())
    for _sizes, _reduced in (((40, 300), (0,)), ((3, 17, 33), (1,))):
        CASES[f"column {_type} {_sizes}"] = ("reduction.column", fold(_type, _sizes, _reduced), ())
    CASES[f"few columns {_type}"] = ("reduction.few_columns", fold(_type, (2, 100, 3), (1,)), ())
    CASES[f"row {_type}, other layout"] = ("reduction.row", fold(_type, (70, 20), (0,), "{0,1}"), ())
    CASES[f"column {_type}, other layout"] = ("reduction.column", fold(_type, (70, 20), (1,), "{0,1}"), ())
    CASES[f"concatenate {_type}"] = ("concatenate", joined(_type, (5,), (33, 16, 100), 1), ())
    CASES[f"concatenate {_type}, rows"] = ("concatenate", joined(_type, (7,), (3, 1, 0, 4), 0), ())
    CASES[f"concatenate {_type}, other layout"] = ("concatenate", joined(_type, (40,), (3, 5), 1, "{0,1}"), ())
    CASES[f"slices {_type}"] = ("input_slices", slices(_type), ())
    CASES[f"slices {_type}, other layout"] = ("input_slices", slices(_type, "{0,1}"), ())
    CASES[f"update {_type}"] = ("dynamic_update_slice", update(_type), ((2, 14), (3, 38)))
    CASES[f"update {_type}, other layout"] = ("dynamic_update_slice", update(_type, "{0,1}"), ((2, 14), (3, 38)))
    CASES[f"scatter {_type}"] = ("scatter.in_place", scatter(_type, 20, 33, 7), ((1, 20),))
CASES |= {
    "transpose, pairs stay": ("transpose.minor_kept", transpose("f32", (20, 33, 2), (1, 0, 2)), ()),
    "transpose, eight bytes stay": ("transpose.minor_kept", transpose("s8", (40, 33, 8), (1, 0, 2)), ()),
    "transpose, three stay": ("loop", transpose("bf16", (20, 33, 3), (1, 0, 2)), ()),
    "transpose c128": ("transpose.registers", transpose("c128", (20, 33), (1, 0)), ()),
    "transpose f8": ("transpose.registers", transpose("f8e4m3fn", (70, 90), (1, 0)), ()),
    "transpose s4": ("loop", transpose("s4", (20, 33), (1, 0)), ()),
    "transpose, both sides": (
        "transpose.registers",
        """
        p = bf16[40,70] parameter(0)
        q = f32[70,40] parameter(1)
        e = bf16[40,70] exponential(p)
        t = bf16[70,40] transpose(e), dimensions={1,0}
        c = f32[70,40] convert(t)
        a = f32[70,40] add(c, q)
        n = bf16[40,70] negate(e)
        ROOT r = (f32[70,40], bf16[40,70]) tuple(a, n)""",
        (),
    ),
    "row s4": ("reduction.row", fold("s4", (9, 70), (1,)), ()),
    "row that starts from a parameter": (
        "reduction.row",
        """
        p = bf16[13,105] parameter(0)
        z = bf16[] parameter(1)
        ROOT r = bf16[13] reduce(p, z), dimensions={1}, to_apply=add_bf16""",
        (),
    ),
    "row with a side output and an epilogue": (
        "reduction.row",
        """
        p = f32[9,77] parameter(0)
        z = f32[] constant(0)
        e = f32[9,77] negate(p)
        r = f32[9] reduce(e, z), dimensions={1}, to_apply=add_f32
        a = f32[9] abs(r)
        ROOT t = (f32[9], f32[9,77]) tuple(a, e)""",
        (),
    ),
    "column with a side output, two results": (
        "reduction.column",
        """
        p = f32[37,77] parameter(0)
        z = f32[] constant(0)
        i = f32[] constant(-inf)
        e = f32[37,77] negate(p)
        r = f32[77] reduce(e, z), dimensions={0}, to_apply=add_f32
        m = f32[77] reduce(e, i), dimensions={0}, to_apply=max_f32
        ROOT t = (f32[77], f32[37,77], f32[77]) tuple(r, e, m)""",
        (),
    ),
    **{
        f"largest and where, over {axis}": (
            f"reduction.{variant}",
            f"""
        p = f32[40,70] parameter(0)
        i = s32[40,70] iota(), iota_dimension={axis}
        z = f32[] constant(-inf)
        k = s32[] constant(0)
        ROOT r = (f32[{n}], s32[{n}]) reduce(p, i, z, k), dimensions={{{axis}}}, to_apply=largest""",
            (),
        )
        for axis, n, variant in ((0, 70, "column"), (1, 40, "row"))
    },
    "order counts": (
        "loop",
        """
        p = f32[9,77] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[9] reduce(p, z), dimensions={1}, to_apply=take_away""",
        (),
    ),
    "concatenate, short stretches": ("loop", joined("f32", (50,), (3, 1), 1), ()),
    "concatenate s4": ("concatenate", joined("s4", (5,), (33, 17), 1), ()),
    "slices s4": ("input_slices", slices("s4"), ()),
    "scatter of windows that reach over parts": (
        "scatter.in_place",
        """
        x = f32[40,600] parameter(0)
        i = s32[9,1] parameter(1)
        u = f32[9,7,600] parameter(2)
        ROOT r = f32[40,600] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32""",
        ((1, 36),),
    ),
    "scatter of long rows": ("scatter.in_place", scatter("f32", 20, 300, 70), ((1, 20),)),
    "scatter that overwrites": (
        "scatter.in_place",
        scatter("f32", 20, 20, 9, "overwrite", ", unique_indices=true"),
        ((1, 20),),
    ),
    "scatter into what was computed": (
        "scatter.copy",
        """
        z = f32[] constant(0)
        x = f32[20,9] broadcast(z), dimensions={}
        i = s32[30,1] parameter(0)
        u = f32[30,9] parameter(1)
        n = f32[30,9] negate(u)
        ROOT r = f32[20,9] scatter(x, i, n), update_window_dims={1}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32""",
        ((0, 20),),
    ),
    "scatter of slices without elements": (
        "scatter.in_place",
        """
        x = f32[20,9] parameter(0)
        i = s32[30,1] parameter(1)
        u = f32[30,5,0] parameter(2)
        ROOT r = f32[20,9] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32""",
        ((1, 20),),
    ),
    "scatter c64 product": ("scatter.in_place", scatter("c64", 9, 20, 3, "mul_c64"), ((1, 9),)),
}
_REDUCERS = "add_s8 { a = s8[] parameter(0)  b = s8[] parameter(1)  ROOT r = s8[] add(a, b) }"
SIMULATED = (
    "transpose f32 (33, 70)",
    "transpose, both sides",
    "transpose, pairs stay",
    "row f32 (9, 600)",
    "few columns f32",
    "column with a side output, two results",
    "largest and where, over 1",
    "concatenate bf16",
    "slices s8, other layout",
    "update c64",
    "scatter into what was computed",
)


def made(name: str) -> Case:
    """A case of the table; sums of numbers that can be added up in any order."""
    emitter, text, indices = CASES[name]
    whole = body(text).replace("\nfused {", f"\n{_REDUCERS}\nfused {{")
    return Case(name, whole, Profile.TAME if emitter.startswith("reduction") else Profile.MIXTURE, indices)


@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_the_interpreters_results(name: str) -> None:
    """Wrong: an element that is lost, doubled or out of place; an initial value or an edge that counts twice."""
    emitter, found = CASES[name][0], made(name)
    module = found.module()
    exe = ws.compile(module, cache=False)
    assert [f"{k.emitter}.{k.variant}".rstrip(".") for k in exe.kernels] == [emitter]
    arrays = inputs_of(found, module, seed=3)
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    assert_close(exe(*arrays), expected, bounds, module, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_every_pass_keeps_the_results(name: str) -> None:
    """As emitted: within the interpreter's bounds.  After each pass: sound IR, and the same bits."""
    check_passes(made(name), "cpu")


@pytest.mark.slow
def test_parts_of_an_output_are_simulated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows that reach over from one part into the next: each takes its own elements, from a list."""
    monkeypatch.setattr(cpu_scatter, "ONE_PIECE", 1)
    monkeypatch.setattr(cpu_scatter, "LISTED", 16)
    text = """
        x = f32[9,40] parameter(0)
        i = s32[21,1] parameter(1)
        u = f32[21,3,40] parameter(2)
        ROOT r = f32[9,40] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32"""
    assert emitted(text, "cpu").launch.workgroups == min(9, device("cpu").core_count)
    check_passes(case("parts", text, indices=((1, 9),)), "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "s8"])
def test_large_outputs_pass_the_caches_in_whole_lines(dtype: str) -> None:
    """Rows that begin anywhere within a line: all elements arrive, and what lies beside the output stays."""
    check_passes(case("lines", joined(dtype, (3,), (701, 650), 1)), "cpu", nontemporal=True)
    check_passes(case("tile", transpose(dtype, (64, 64), (1, 0))), "cpu", nontemporal=True)


@pytest.mark.parametrize("text", [fold("f32", (64, 4096), (1,)), fold("f32", (4096, 64), (0,))], ids=["row", "column"])
def test_a_sum_repeats_bit_for_bit(text: str) -> None:
    """The order of a sum is the shape's, not that in which cores come free."""
    exe = ws.compile(parse_hlo(body(text)), cache=False)
    shape = parse_hlo(body(text)).entry.parameters[0].array_shape
    array = np.random.default_rng(0).standard_normal(shape.dims).astype(np.float32)
    first = exe(array)[0].tobytes()
    assert all(exe(array)[0].tobytes() == first for _ in range(20))


MOVED = (transpose("f32", (256, 256), (1, 0)), fold("f32", (256, 256), (1,)), joined("bf16", (9,), (100, 70), 1))


@pytest.mark.parametrize("text", MOVED, ids=["transpose", "row", "concatenate"])
def test_nothing_is_moved_element_by_element(text: str) -> None:
    """No load or store of a single element of a large array is left (a row's one result is)."""
    kernel = emitted(text, "cpu")
    llvm = ws.compile(parse_hlo(body(text)), cache=False).artifact("llvm")
    scalar = {"f32": "float", "bf16": "i16"}[kernel.arguments[0].dtype.name]
    loads = [line for line in llvm.splitlines() if f"= load {scalar}," in line]
    assert not loads, loads


def test_an_update_in_place_takes_the_donated_array() -> None:
    """The result is the argument's own memory; what isn't given away is copied and stays."""
    exe = ws.compile(parse_hlo(body(update("f32"))), cache=False)
    buffer, new = np.zeros((20, 70), np.float32), np.ones((7, 33), np.float32)
    at = (np.array(3, np.int32), np.array(4, np.int32))
    (kept,) = exe(buffer, new, *at)
    assert not np.shares_memory(kept, buffer)
    assert not buffer.any()
    assert kept[3:10, 4:37].all()
    (given,) = exe(buffer, new, *at, donate=(0,))
    assert np.shares_memory(given, buffer)
    np.testing.assert_array_equal(given, kept)


def test_a_large_buffer_that_may_not_be_written_to_is_copied_whole() -> None:
    """Copied by all cores, with a rest that fills no piece."""
    exe = ws.compile(parse_hlo(body(update("f32").replace("[20,70]", "[2047,2049]"))), cache=False)
    buffer = np.arange(2047 * 2049, dtype=np.float32).reshape(2047, 2049)
    (found,) = exe(buffer, np.zeros((7, 33), np.float32), np.array(9, np.int32), np.array(2040, np.int32))
    expected = buffer.copy()
    expected[9:16, 2016:] = 0
    np.testing.assert_array_equal(found, expected)


def test_no_update_is_lost_where_cores_share_the_output() -> None:
    """Many updates of few rows: each core takes those of its part, whole windows outside are dropped."""
    text = scatter("f32", 16, 4000, 64)
    exe = ws.compile(parse_hlo(body(text)), cache=False)
    rng = np.random.default_rng(1)
    index = rng.integers(-2, 18, (4000, 1), np.int32)
    updates = rng.integers(-8, 8, (4000, 64)).astype(np.float32)
    expected = np.zeros((16, 64), np.float32)
    for number, row in zip(index[:, 0], updates, strict=True):
        if 0 <= number < 16:
            expected[number] += row
    for _ in range(5):
        np.testing.assert_array_equal(exe(np.zeros((16, 64), np.float32), index, updates)[0], expected)
