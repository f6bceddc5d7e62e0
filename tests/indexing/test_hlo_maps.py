"""Each HLO op's maps against numpy: reading the operands where the maps say gives the op's result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from indexing.bijection import is_bijection_onto

from warpsmith.hlo.indexing.maps import (
    fusion_indexing,
    input_to_output_indexing,
    output_to_input_indexing,
    runtime_variables,
)
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.indexing import IndexingMap
from warpsmith.indexing.points import contains
from warpsmith.indexing.rewire import rescale_symbols

PAD = -7  # stands where a map says "nothing here"


def op(text: str, *parameters: str) -> HloInstruction:
    """The root `ROOT r = <text>` of an entry with parameters p0, p1, ... of the given shapes."""
    lines = "\n".join(f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters))
    adder = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
    adder2 = (
        "two { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)\n"
        " e = f32[] add(a, c) f = f32[] add(b, d) ROOT s = (f32[], f32[]) tuple(e, f) }\n"
    )
    text = f"HloModule m\n{adder if 'to_apply=add' in text else ''}{adder2 if 'to_apply=two' in text else ''}" + (
        f"ENTRY e {{\n{lines}\n  ROOT r = {text}\n}}\n"
    )
    return parse_hlo(text).entry.root


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.arange(1, int(np.prod(shape)) + 1)).reshape(shape)


def read(map: IndexingMap, array: np.ndarray, shape: tuple[int, ...], runtime: tuple[int, ...] = ()) -> np.ndarray:
    """The elements of `array` that the map reads, of shape output dims + symbol sizes; PAD outside of the domain."""
    sizes = (*shape, *(v.bounds.upper + 1 for v in map.range_vars))
    index = list(np.indices(sizes).astype(np.int64)) if sizes else []
    dims, symbols = index[: len(shape)], [*index[len(shape) :], *(np.int64(r) for r in runtime)]
    inside = np.broadcast_to(contains(map, dims, symbols), sizes)
    places = [np.broadcast_to(np.asarray(r), sizes) for r in map.evaluate(dims, symbols)]
    result = np.full(sizes, PAD, dtype=array.dtype)
    for place, size in zip(places, array.shape, strict=True):
        assert ((place[inside] >= 0) & (place[inside] < size)).all(), "the map leads out of the operand"
    result[inside] = array[tuple(p[inside] for p in places)]
    return result


A = data(4, 6)
B = data(3, 4, 5)

MOVED: list[tuple[str, tuple[str, ...], np.ndarray, Callable[[np.ndarray], np.ndarray]]] = [
    ("f32[4,6] negate(p0)", ("f32[4,6]",), A, lambda a: a),
    ("bf16[4,6] convert(p0)", ("f32[4,6]",), A, lambda a: a),
    ("f32[4,6] copy(p0)", ("f32[4,6]{0,1}",), A, lambda a: a),
    ("s32[4,6] bitcast-convert(p0)", ("f32[4,6]",), A, lambda a: a),
    ("f32[6,4] transpose(p0), dimensions={1,0}", ("f32[4,6]",), A, lambda a: a.T),
    ("f32[5,3,4] transpose(p0), dimensions={2,0,1}", ("f32[3,4,5]",), B, lambda a: a.transpose(2, 0, 1)),
    ("f32[4,6] reverse(p0), dimensions={0,1}", ("f32[4,6]",), A, lambda a: a[::-1, ::-1]),
    ("f32[3,4,5] reverse(p0), dimensions={1}", ("f32[3,4,5]",), B, lambda a: a[:, ::-1]),
    ("f32[2,2] slice(p0), slice={[1:4:2],[2:6:3]}", ("f32[4,6]",), A, lambda a: a[1:4:2, 2:6:3]),
    ("f32[12,5] reshape(p0)", ("f32[3,4,5]",), B, lambda a: a.reshape(12, 5)),
    ("f32[2,1,30] reshape(p0)", ("f32[3,4,5]",), B, lambda a: a.reshape(2, 1, 30)),
    ("f32[10,6] reshape(p0)", ("f32[3,4,5]",), B, lambda a: a.reshape(10, 6)),
    ("f32[] reshape(p0)", ("f32[1,1]",), data(1, 1), lambda a: a.reshape(())),
    ("f32[6,4]{1,0} bitcast(p0)", ("f32[4,6]{0,1}",), A, lambda a: a.T),
    ("f32[60] bitcast(p0)", ("f32[3,4,5]{0,2,1}",), B, lambda a: a.transpose(1, 2, 0).reshape(60)),
    (
        "f32[6,10]{0,1} bitcast(p0)",
        ("f32[3,4,5]{0,2,1}",),
        B,
        lambda a: a.transpose(1, 2, 0).reshape(10, 6).T,
    ),
    (
        "f32[3,4,5,2] broadcast(p0), dimensions={0,2}",
        ("f32[3,5]",),
        data(3, 5),
        lambda a: np.broadcast_to(a[:, None, :, None], (3, 4, 5, 2)),
    ),
    ("f32[2,3] broadcast(p0), dimensions={}", ("f32[]",), data(), lambda a: np.broadcast_to(a, (2, 3))),
]


@pytest.mark.parametrize(("text", "shapes", "array", "expected"), MOVED, ids=[row[0] for row in MOVED])
def test_moving_ops_read_the_right_element(text, shapes, array, expected) -> None:
    root = op(text, *shapes)
    (maps,) = output_to_input_indexing(root)
    (map,) = maps
    want = expected(array)
    np.testing.assert_array_equal(read(map, array, want.shape), want)


@pytest.mark.parametrize(("text", "shapes", "array", "expected"), MOVED, ids=[row[0] for row in MOVED])
def test_input_to_output_is_the_inverse(text, shapes, array, expected) -> None:
    root = op(text, *shapes)
    want = expected(array)
    (map,) = input_to_output_indexing(root, 0)
    reached = read(map, want, array.shape)
    sizes = reached.shape[array.ndim :]
    for index in np.ndindex(*array.shape):
        places = np.argwhere(want == array[index])  # elements are all different
        assert sorted(set(reached[index].reshape(-1).tolist()) - {PAD}) == ([array[index]] if len(places) else [])
    assert int(np.prod(sizes)) * array.size >= want.size


PADDED = [
    ("1_2x3_0", [(1, 2, 0), (3, 0, 0)]),
    ("1_2_1x3_-2_3", [(1, 2, 1), (3, -2, 3)]),
    ("-1_0_0x0_0_2", [(-1, 0, 0), (0, 0, 2)]),
    ("-2_-1_2x-3_1_1", [(-2, -1, 2), (-3, 1, 1)]),
]


def padded(a: np.ndarray, rows: list[tuple[int, int, int]], fill: int) -> np.ndarray:
    """Padding by placing elements one by one: before, gaps, after; then cropping."""
    spread = [(n - 1) * (gap + 1) + 1 for n, (_, _, gap) in zip(a.shape, rows, strict=True)]
    out = [s + low + high for s, (low, high, _) in zip(spread, rows, strict=True)]
    result = np.full(out, fill, dtype=a.dtype)
    for index in np.ndindex(*a.shape):
        place = tuple(low + i * (gap + 1) for i, (low, _, gap) in zip(index, rows, strict=True))
        if all(0 <= p < n for p, n in zip(place, out, strict=True)):
            result[place] = a[index]
    return result


@pytest.mark.parametrize(("config", "rows"), PADDED)
def test_pad_reads_the_operand_just_where_it_is_no_padding(config, rows) -> None:
    want = padded(A, rows, PAD)
    root = op(f"f32[{want.shape[0]},{want.shape[1]}] pad(p0, p1), padding={config}", "f32[4,6]", "f32[]")
    (operand,), (value,) = output_to_input_indexing(root)
    np.testing.assert_array_equal(read(operand, A, want.shape), want)
    np.testing.assert_array_equal(read(operand.simplify(), A, want.shape), want)
    assert value.num_results == 0
    assert all(v.bounds.lower >= 0 and v.bounds.upper < n for v, n in zip(operand.dim_vars, want.shape, strict=True))


def test_concatenate_covers_the_result_once() -> None:
    parts = [data(2, 3, seed=1), data(1, 3, seed=2) + 50, data(4, 3, seed=3) + 100]
    root = op("f32[7,3] concatenate(p0, p1, p2), dimensions={0}", "f32[2,3]", "f32[1,3]", "f32[4,3]")
    got = [read(maps[0], part, (7, 3)) for maps, part in zip(output_to_input_indexing(root), parts, strict=True)]
    np.testing.assert_array_equal(np.maximum.reduce(got), np.concatenate(parts))
    assert (sum((g != PAD).astype(int) for g in got) == 1).all()
    for i, part in enumerate(parts):
        back = input_to_output_indexing(root, i)[0]
        np.testing.assert_array_equal(read(back, np.concatenate(parts), part.shape), part)


def test_select_and_clamp_take_scalars_for_every_index() -> None:
    root = op("f32[4,6] select(p0, p1, p2)", "pred[]", "f32[4,6]", "f32[4,6]")
    scalar, first, second = (maps[0] for maps in output_to_input_indexing(root))
    assert scalar.num_results == 0
    assert first == second == IndexingMap.identity((4, 6))
    back = input_to_output_indexing(root, 0)[0]
    assert back.num_dims == 0
    assert is_bijection_onto(back, (4, 6))


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (2, 0), (0, 1, 2)])
def test_reduce_reads_what_numpy_sums(dims) -> None:
    want = B.sum(axis=dims)
    shape = ",".join(map(str, want.shape))
    text = f"f32[{shape}] reduce(p0, p1), dimensions={{{','.join(map(str, dims))}}}, to_apply=add"
    root = op(text, "f32[3,4,5]", "f32[]")
    (operand,), (init,) = output_to_input_indexing(root)
    got = read(operand, B, want.shape)
    assert (got != PAD).all()
    np.testing.assert_array_equal(got.sum(axis=tuple(range(want.ndim, got.ndim))), want)
    assert init.num_results == 0
    back = input_to_output_indexing(root, 0)[0]
    place = back.evaluate(list(np.indices(B.shape)))
    total = np.zeros((*want.shape, 1), dtype=want.dtype)  # the extra axis: numpy can't add.at a scalar
    np.add.at(total, (*(np.broadcast_to(p, B.shape) for p in place), np.zeros(B.shape, dtype=int)), B)
    np.testing.assert_array_equal(total[..., 0], want)
    assert is_bijection_onto(input_to_output_indexing(root, 1)[0], want.shape)


def test_variadic_reduce_reads_all_inputs_alike() -> None:
    text = "(f32[3], f32[3]) reduce(p0, p1, p2, p3), dimensions={1}, to_apply=two"
    maps = output_to_input_indexing(op(text, "f32[3,5]", "f32[3,5]", "f32[]", "f32[]"))
    assert maps[0] == maps[1] == [IndexingMap.from_sizes(maps[0][0].results, (3,), (5,))]
    assert [m[0].num_results for m in maps] == [2, 2, 0, 0]


WINDOWS = [
    "size=2x3",
    "size=2x3 stride=2x1",
    "size=2x3 pad=1_0x2_1",
    "size=2x2 stride=2x3 pad=-1_1x0_2",
    "size=2x3 pad=1_1x0_0 lhs_dilate=2x1",
    "size=3x2 stride=1x2 pad=2_2x1_1 lhs_dilate=2x3 rhs_dilate=2x3",
    "size=1x1 pad=0_-2x-1_0",
]


def windows(a: np.ndarray, rows, fill: int = PAD) -> np.ndarray:
    """Every window's elements, by slicing a padded copy: shape output dims + window dims."""
    big = padded(a, [(r.pad_low, r.pad_high, r.base_dilation - 1) for r in rows], fill)
    spans = [(r.size - 1) * r.window_dilation + 1 for r in rows]
    out = [(n - span) // r.stride + 1 for n, span, r in zip(big.shape, spans, rows, strict=True)]
    result = np.empty((*out, *(r.size for r in rows)), dtype=a.dtype)
    for index in np.ndindex(*out):
        cut = tuple(
            slice(i * r.stride, i * r.stride + span, r.window_dilation)
            for i, r, span in zip(index, rows, spans, strict=True)
        )
        result[index] = big[cut]
    return result


@pytest.mark.parametrize("window", WINDOWS)
def test_reduce_window_reads_each_window(window) -> None:
    probe = op(f"f32[1,1] reduce-window(p0, p1), window={{{window}}}, to_apply=add", "f32[4,6]", "f32[]")
    want = windows(A, probe.attributes["window"].dims)
    text = f"f32[{want.shape[0]},{want.shape[1]}] reduce-window(p0, p1), window={{{window}}}, to_apply=add"
    (operand,), (init,) = output_to_input_indexing(op(text, "f32[4,6]", "f32[]"))
    got = read(operand, A, want.shape[:2])
    sizes = [row.size for row in probe.attributes["window"].dims]
    # A window dimension of size 1 has no symbol.
    np.testing.assert_array_equal(got, want.reshape(*want.shape[:2], *[size for size in sizes if size > 1]))
    assert init.num_results == 0
    # Rescaled, no remainder is left to test for, and the same elements are read.
    rescaled = rescale_symbols(operand)
    assert not any(" mod " in str(e) and not e.dims for e in rescaled.constraints)


DOTS = [
    ("f32[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", (4, 6), (6, 5), "ik,kj->ij"),
    ("f32[4,5] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={1}", (6, 4), (5, 6), "ki,jk->ij"),
    (
        "f32[2,4,5] dot(p0, p1), lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={0,3},"
        " rhs_contracting_dims={3,1}",
        (3, 2, 4, 6),
        (2, 6, 5, 3),
        "kbil,bljk->bij",
    ),
    (
        "f32[3,2,4,5] dot(p0, p1), lhs_batch_dims={2,0}, rhs_batch_dims={0,1}, lhs_contracting_dims={3},"
        " rhs_contracting_dims={2}",
        (2, 4, 3, 6),
        (3, 2, 6, 5),
        "biak,abkj->abij",
    ),
    ("f32[4,5] dot(p0, p1), lhs_contracting_dims={}, rhs_contracting_dims={}", (4,), (5,), "i,j->ij"),
]


@pytest.mark.parametrize(("text", "left", "right", "einsum"), DOTS)
def test_dot_multiplies_what_einsum_multiplies(text, left, right, einsum) -> None:
    a, b = data(*left, seed=1), data(*right, seed=2)
    want = np.einsum(einsum, a, b)
    root = op(text, *(f"f32[{','.join(map(str, s))}]" for s in (left, right)))
    (lhs,), (rhs,) = output_to_input_indexing(root)
    products = read(lhs, a, want.shape) * read(rhs, b, want.shape)
    np.testing.assert_array_equal(products.sum(axis=tuple(range(want.ndim, products.ndim))), want)


CONVOLUTIONS = [
    # text attributes, lhs labels and sizes, rhs sizes, groups (feature, batch)
    ("window={size=3x2}, dim_labels=b01f_01io->b01f", (2, 6, 5, 3), (3, 2, 3, 4), 1, 1),
    ("window={size=3x2 stride=2x1 pad=1_2x0_1}, dim_labels=b01f_01io->b01f", (2, 6, 5, 3), (3, 2, 3, 4), 1, 1),
    (
        "window={size=3x2 pad=2_2x1_1 lhs_dilate=2x1 rhs_dilate=1x2 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f",
        *((2, 4, 5, 3), (3, 2, 3, 4), 1, 1),
    ),
    ("window={size=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=3", (2, 4, 4, 6), (2, 2, 2, 9), 3, 1),
    ("window={size=2x2}, dim_labels=b01f_01io->b01f, batch_group_count=2", (4, 4, 4, 3), (2, 2, 3, 6), 1, 2),
]


@pytest.mark.parametrize(("attributes", "left", "right", "groups", "batches"), CONVOLUTIONS)
def test_convolution_reads_what_a_naive_one_does(attributes, left, right, groups, batches) -> None:
    image, kernel = data(*left, seed=1), data(*right, seed=2)
    probe = op(f"f32[1,1,1,1] convolution(p0, p1), {attributes}", "f32[1,1,1,1]", "f32[1,1,1,1]")
    rows = probe.attributes["window"].dims
    depth, features = right[2], right[3]
    views = np.stack(
        [np.stack([windows(image[n, :, :, c], rows, 0) for c in range(left[3])], -1) for n in range(left[0])]
    )  # batch, out0, out1, window0, window1, channel
    weights = kernel
    for axis, row in enumerate(rows):
        weights = np.flip(weights, axis) if row.reversal else weights
    batch = left[0] // batches
    want = np.zeros((batch, *views.shape[1:3], features), dtype=np.int64)
    for f in range(features):
        channels = slice(f // (features // groups) * depth, f // (features // groups) * depth + depth)
        images = slice(f // (features // batches) * batch, f // (features // batches) * batch + batch)
        want[..., f] = np.einsum("bxyuvc,uvc->bxy", views[images][..., channels], weights[..., f])
    shape = ",".join(map(str, want.shape))
    root = op(
        f"f32[{shape}] convolution(p0, p1), {attributes}",
        *(f"f32[{','.join(map(str, s))}]" for s in (left, right)),
    )
    (lhs,), (rhs,) = output_to_input_indexing(root)
    pixels = read(lhs, image, want.shape)
    pixels[pixels == PAD] = 0
    products = pixels * read(rhs, kernel, want.shape)
    np.testing.assert_array_equal(products.sum(axis=(4, 5, 6)), want)


def test_dynamic_slice_adds_clamped_starts() -> None:
    root = op("f32[2,6] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,6}", "f32[4,6]", "s32[]", "s32[]")
    (operand,), *starts = output_to_input_indexing(root)
    # the second dimension is taken whole: its start isn't read
    assert [v.bounds.upper for v in operand.rt_vars] == [2]
    for start in range(3):
        np.testing.assert_array_equal(read(operand, A, (2, 6), (start,)), A[start : start + 2])
    assert [m[0].num_results for m in starts] == [0, 0]
    (source,) = runtime_variables(root)
    assert source.operand == 1
    assert source.map.num_results == 0


def test_a_constant_start_is_folded_and_clamped() -> None:
    text = """HloModule m
    ENTRY e {
      p0 = f32[4,6] parameter(0)
      i = s32[] parameter(1)
      c = u8[] constant(200)
      ROOT r = f32[2,3] dynamic-slice(p0, c, i), dynamic_slice_sizes={2,3}
    }"""
    root = parse_hlo(text).entry.root
    operand = output_to_input_indexing(root)[0][0]
    np.testing.assert_array_equal(read(operand, A, (2, 3), (1,)), A[2:4, 1:4])
    assert [v.operand for v in runtime_variables(root)] == [2]


def test_dynamic_update_slice_separates_update_and_operand() -> None:
    update = data(2, 3, seed=5) + 100
    root = op("f32[4,6] dynamic-update-slice(p0, p1, p2, p3)", "f32[4,6]", "f32[2,3]", "s32[]", "s32[]")
    (operand,), (covered,), *_ = output_to_input_indexing(root)
    for i, j in np.ndindex(3, 4):
        want = A.copy()
        want[i : i + 2, j : j + 3] = update
        new = read(covered, update, (4, 6), (i, j))
        np.testing.assert_array_equal(np.where(new == PAD, read(operand, A, (4, 6)), new), want)
    assert [v.operand for v in runtime_variables(root)] == [2, 3]


def test_gather_reads_slices_at_starts() -> None:
    text = (
        "f32[5,2,6,3] gather(p0, p1), offset_dims={1,2,3}, collapsed_slice_dims={}, start_index_map={2,0},"
        " index_vector_dim=1, slice_sizes={2,6,3}"
    )
    array, indices = data(4, 6, 7), np.random.default_rng(1).integers(0, 3, (5, 2))
    root = op(text, "f32[4,6,7]", "s32[5,2]")
    (operand,), (start,) = output_to_input_indexing(root)
    sources = runtime_variables(root)
    assert [v.operand for v in sources] == [1, 1]
    assert start.symbol_vars[0].size == 2
    for row in range(5):
        runtime = [int(indices[tuple(s.map.evaluate((row, 0, 0, 0)))]) for s in sources]
        got = read(operand, array, (5, 2, 6, 3), tuple(runtime))[row]
        k, i = indices[row]  # start_index_map={2,0}: the first index is of dimension 2
        np.testing.assert_array_equal(got, array[i : i + 2, :, k : k + 3])


def test_unknown_ops_have_no_maps() -> None:
    root = op('f32[4,6] custom-call(p0), custom_call_target="x"', "f32[4,6]")
    assert output_to_input_indexing(root) == [[]]
    assert input_to_output_indexing(root, 0) == []
    wide = op("s8[4,6,4] bitcast-convert(p0)", "f32[4,6]")
    assert output_to_input_indexing(wide) == [[]]


def test_every_elementwise_opcode_has_identity_maps() -> None:
    for name, row in OPCODES.items():
        if row.elementwise and row.most is not None:
            shape = op("f32[4,6] negate(p0)", "f32[4,6]").shape
            operand = HloInstruction("p", "parameter", shape, parameter_number=0)
            root = HloInstruction("r", name, shape, (operand,) * row.least)
            assert output_to_input_indexing(root) == [[IndexingMap.identity((4, 6))]] * row.least


def test_fusion_maps_follow_all_paths_to_each_parameter() -> None:
    text = """HloModule m
    fused {
      p0 = f32[4,4] parameter(0)
      p1 = f32[4] parameter(1)
      t = f32[4,4] transpose(p0), dimensions={1,0}
      s = f32[4,4] add(p0, t)
      b = f32[4,4] broadcast(p1), dimensions={1}
      m = f32[4,4] multiply(s, b)
      ROOT r = f32[16] reshape(m)
    }
    ENTRY e {
      a = f32[4,4] parameter(0)
      v = f32[4] parameter(1)
      ROOT f = f32[16] fusion(a, v), kind=kLoop, calls=fused
    }"""
    root = parse_hlo(text).entry.root
    maps = output_to_input_indexing(root)
    assert [[str(m) for m in each] for each in maps] == [
        [
            "(d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 15]",
            "(d0) -> (d0 mod 4, d0 floordiv 4), domain: d0 in [0, 15]",
        ],
        ["(d0) -> (d0 mod 4), domain: d0 in [0, 15]"],
    ]


def test_a_diamond_of_fusions_stays_small() -> None:
    # 2**40 paths, one map
    lines = "\n".join(f"  a{i + 1} = f32[8] add(a{i}, a{i})" for i in range(40))
    text = f"HloModule m\nfused {{\n  a0 = f32[8] parameter(0)\n{lines}\n  ROOT r = f32[8] negate(a40)\n}}\n"
    assert fusion_indexing(parse_hlo(text).computation("fused")) == [[IndexingMap.identity((8,))]]
