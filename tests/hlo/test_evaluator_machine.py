"""How the reference interpreter runs: chunks, splats, memory, long chains, errors."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from warpsmith.arrays import Array
from warpsmith.dtypes import by_name
from warpsmith.errors import ArgumentMismatch, UnsupportedHlo
from warpsmith.hlo.evaluator import evaluate, evaluate_computation
from warpsmith.hlo.evaluator.plan import CHUNK, chunks
from warpsmith.hlo.text.parser import parse_hlo


def _entry(lines: str) -> str:
    return f"HloModule m\nENTRY e {{\n{lines}\n}}\n"


def _gelu(dtype: str, dims: str) -> str:
    """A fusion of nine elementwise steps with four broadcast constants."""
    t = f"{dtype}[{dims}]"
    lines = [f"  x = {t} parameter(0)"]
    for name, value in (("a", 0.5), ("b", 0.7978), ("c", 0.044715), ("d", 1)):
        lines += [f"  {name}0 = {dtype}[] constant({value})", f"  {name} = {t} broadcast({name}0), dimensions={{}}"]
    lines += [
        *(
            f"  s = {t} multiply(x, x)",
            f"  k = {t} multiply(s, x)",
            f"  m = {t} multiply(k, c)",
            f"  n = {t} add(x, m)",
        ),
        *(f"  o = {t} multiply(n, b)", f"  h = {t} tanh(o)", f"  p = {t} add(h, d)", f"  q = {t} multiply(p, a)"),
        f"  ROOT r = {t} multiply(x, q)",
    ]
    body = "\n".join(lines)
    return f"HloModule m\nf {{\n{body}\n}}\n" + (
        f"ENTRY e {{\n  x = {t} parameter(0)\n  ROOT r = {t} fusion(x), kind=kLoop, calls=f\n}}\n"
    )


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f8e4m3fn"])
@pytest.mark.parametrize("dims", ["3,50021", "150063", "2,1,75031", "150063,1"])
def test_chunks_change_nothing(dtype: str, dims: str) -> None:
    """An array too large for one chunk gives what its pieces give one at a time."""
    shape = [int(dim) for dim in dims.split(",")]
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32).astype(by_name(dtype).numpy)
    (whole,) = evaluate(parse_hlo(_gelu(dtype, dims)), x)
    assert whole.size > 2 * CHUNK
    flat = x.reshape(-1)
    some = 1000
    small = parse_hlo(_gelu(dtype, str(some)))
    for start in (0, CHUNK - 500, flat.size - some):
        (piece,) = evaluate(small, flat[start : start + some])
        np.testing.assert_array_equal(whole.reshape(-1)[start : start + some].view(np.uint8), piece.view(np.uint8))


@pytest.mark.parametrize("dims", [(1,), (CHUNK,), (CHUNK + 1,), (7, 3 * CHUNK), (3, 5, 40000), (4 * CHUNK, 1), (0, 5)])
def test_chunks_cover_every_element_once(dims: tuple[int, ...]) -> None:
    seen = np.zeros(dims, np.int8)
    for index in chunks(dims):
        assert seen[index].size <= 3 * CHUNK
        seen[index] += 1
    assert (seen == 1).all()


def test_a_group_hands_out_every_value_that_something_else_needs() -> None:
    """Values of a chunked group that a reduction, a later group and the root read."""
    count = 3 * CHUNK
    text = f"""HloModule m
    add {{ a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT r = s32[] add(a, b) }}
    ENTRY e {{
      x = s32[{count}] parameter(0)
      y = s32[{count}] add(x, x)
      z = s32[] constant(0)
      n = s32[{count}] negate(y)
      t = s32[] reduce(y, z), dimensions={{0}}, to_apply=add
      b = s32[{count}] broadcast(t), dimensions={{}}
      m = s32[{count}] multiply(n, b)
      ROOT r = (s32[{count}], s32[], s32[{count}], s32[{count}]) tuple(m, t, y, x)
    }}"""
    x = (np.arange(count) % 7).astype(np.int32)
    m, t, y, same = evaluate(parse_hlo(text), x)
    total = int((2 * x.astype(np.int64)).sum())
    assert int(t) == total
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(m, (-2 * x.astype(np.int64) * total).astype(np.int32))
    np.testing.assert_array_equal(same, x)


def test_a_splat_takes_no_memory() -> None:
    """A billion equal elements through broadcast, convert, add and reshape stay one element."""
    text = _entry(
        """  c = bf16[] constant(1.5)
  b = bf16[1024,1024,1024] broadcast(c), dimensions={}
  f = f32[1024,1024,1024] convert(b)
  s = f32[1024,1024,1024] add(f, f)
  t = f32[1024,1024,1024] transpose(s), dimensions={2,0,1}
  ROOT r = f32[1048576,1024] reshape(t)"""
    )
    tracemalloc.start()
    (found,) = evaluate(parse_hlo(text))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.shape == (1048576, 1024)
    assert found[5, 7] == 3.0
    assert peak < 1 << 20


def test_values_are_dropped_after_their_last_use() -> None:
    """A chain of 40 steps on 4 MB holds a few arrays at a time, not 40 (pad copies, slice is a view)."""
    count = 1 << 20
    lines = [f"  v0 = f32[{count}] parameter(0)"]
    for i in range(40):
        lines += [f"  c{i} = f32[{count + 1}] pad(v{i}, z), padding=0_1" if i else "  z = f32[] constant(2)"]
        if i == 0:
            lines += [f"  c0 = f32[{count + 1}] pad(v0, z), padding=0_1"]
        lines += [f"  v{i + 1} = f32[{count}] slice(c{i}), slice={{[1:{count + 1}]}}"]
    lines[-1] = lines[-1].replace("  v40", "  ROOT v40")
    module = parse_hlo(_entry("\n".join(lines)))
    x = np.zeros(count, np.float32)
    tracemalloc.start()
    (found,) = evaluate(module, x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found[-40:].tolist() == [2.0] * 40
    assert peak < 6 * x.nbytes


def test_a_fusion_holds_chunks_not_whole_intermediates() -> None:
    """Nine steps on 16 MB: the result and some chunks."""
    count = 1 << 22
    x = np.zeros((2, count // 2), np.float32)
    module = parse_hlo(_gelu("f32", f"2,{count // 2}"))
    tracemalloc.start()
    evaluate(module, x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * x.nbytes


@pytest.mark.slow
def test_a_chain_of_ten_thousand_ops_runs() -> None:
    """Nothing recurses over operands."""
    steps = 10_000
    lines = ["  v0 = s32[4] parameter(0)", "  one = s32[] constant(1)", "  k = s32[4] broadcast(one), dimensions={}"]
    lines += [f"  v{i + 1} = s32[4] add(v{i}, k)" for i in range(steps)]
    lines[-1] = lines[-1].replace("  v", "  ROOT v", 1)
    (found,) = evaluate(parse_hlo(_entry("\n".join(lines))), np.arange(4, dtype=np.int32))
    assert found.tolist() == [steps, steps + 1, steps + 2, steps + 3]


def test_long_reductions_by_any_combiner_take_blocks_in_order() -> None:
    """Affine maps x -> a x + b compose associatively but not commutatively: blocks out of order would show."""
    count = 5000
    text = f"""HloModule m
    compose {{
      a0 = u32[] parameter(0)  b0 = u32[] parameter(1)  a1 = u32[] parameter(2)  b1 = u32[] parameter(3)
      a = u32[] multiply(a0, a1)  m = u32[] multiply(b0, a1)  b = u32[] add(m, b1)
      ROOT r = (u32[], u32[]) tuple(a, b)
    }}
    ENTRY e {{
      x = u32[2,{count}] parameter(0)
      y = u32[2,{count}] parameter(1)
      one = u32[] constant(1)
      zero = u32[] constant(0)
      ROOT r = (u32[2], u32[2]) reduce(x, y, one, zero), dimensions={{1}}, to_apply=compose
    }}"""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 1 << 32, (2, count), dtype=np.uint32) for _ in range(2))
    a, b = evaluate(parse_hlo(text), x, y)
    for row in range(2):
        slope, offset = 1, 0
        for one, two in zip(x[row].tolist(), y[row].tolist(), strict=True):
            slope, offset = slope * one % 2**32, (offset * one + two) % 2**32
        assert (int(a[row]), int(b[row])) == (slope, offset)


def test_float_sums_are_rounded_once() -> None:
    """Ten thousand times 0.1 in bf16: partial sums of the type itself would stick."""
    text = """HloModule m
    add { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT r = bf16[] add(a, b) }
    ENTRY e {
      x = bf16[3,10000] parameter(0)
      z = bf16[] constant(0)
      ROOT r = bf16[3] reduce(x, z), dimensions={1}, to_apply=add
    }"""
    x = np.full((3, 10000), 0.1).astype(by_name("bf16").numpy)
    (found,) = evaluate(parse_hlo(text), x)
    exact = float(x[0, 0]) * 10000
    assert found.tolist() == [np.array(exact).astype(np.float32).astype(x.dtype)] * 3


def test_bitcast_reads_memory_in_both_layouts() -> None:
    """Column-major to row-major without moving a byte."""
    text = _entry("  x = s32[2,3]{0,1} parameter(0)\n  ROOT r = s32[6] bitcast(x)")
    (found,) = evaluate(parse_hlo(text), np.array([[1, 2, 3], [4, 5, 6]], np.int32))
    assert found.tolist() == [1, 4, 2, 5, 3, 6]


def test_bitcast_convert_packs_small_integers_low_bits_first() -> None:
    text = _entry("  x = s4[3,2] parameter(0)\n  b = u8[3] bitcast-convert(x)\n  ROOT r = s4[3,2] bitcast-convert(b)")
    nibbles = np.array([[1, 2], [-1, 0], [7, -8]]).astype(by_name("s4").numpy)
    module = parse_hlo(text)
    (found,) = evaluate(module, nibbles)
    np.testing.assert_array_equal(found, nibbles)
    seen: dict[str, Any] = {}
    evaluate(module, nibbles, trace=lambda instruction, value: seen.setdefault(instruction.name, value))
    assert seen["b"].tolist() == [0x21, 0x0F, 0x87]


def test_trace_sees_every_value() -> None:
    module = parse_hlo(_gelu("f32", "4"))
    names: list[str] = []
    (found,) = evaluate(module, np.ones(4, np.float32), trace=lambda instruction, _: names.append(instruction.name))
    assert names[-1] == "r"
    assert {"s", "k", "m", "n", "o", "h", "p", "q"} <= set(names)
    assert found.shape == (4,)


def test_mapped_computations_may_branch() -> None:
    """A body that isn't elementwise runs index by index."""
    text = """HloModule m
    up { x = f32[] parameter(0)  ROOT r = f32[] add(x, x) }
    down { x = f32[] parameter(0)  ROOT r = f32[] negate(x) }
    body {
      x = f32[] parameter(0)  z = f32[] constant(0)
      c = pred[] compare(x, z), direction=GT
      ROOT r = f32[] conditional(c, x, x), true_computation=up, false_computation=down
    }
    ENTRY e { x = f32[2,3] parameter(0)  ROOT r = f32[2,3] map(x), dimensions={0,1}, to_apply=body }"""
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    (found,) = evaluate(parse_hlo(text), x)
    np.testing.assert_array_equal(found, np.where(x > 0, 2 * x, -x))


def test_outputs_are_the_callers_own() -> None:
    """Writing to an output never reaches an input."""
    lines = ["x = f32[4] parameter(0)", "r = f32[4] reverse(x), dimensions={0}"]
    module = parse_hlo(_entry("\n".join([*lines, "ROOT t = (f32[4], f32[4]) tuple(x, r)"])))
    x = np.arange(4, dtype=np.float32)
    for output in evaluate(module, x):
        output[...] = 9
    assert x.tolist() == [0, 1, 2, 3]


def test_a_computation_can_be_evaluated_by_itself() -> None:
    module = parse_hlo(_gelu("f32", "4"))
    (found,) = evaluate_computation(module.computation("f"), np.zeros(4, np.float32))
    assert found.tolist() == [0, 0, 0, 0]


def test_an_op_without_a_rule_is_named() -> None:
    text = _entry("  x = f32[4] parameter(0)\n  ROOT r = bf16[4] stochastic-convert(x, bits)").replace(
        "  ROOT", "  bits = u32[4] parameter(1)\n  ROOT"
    )
    with pytest.raises(UnsupportedHlo, match="can't evaluate stochastic-convert") as caught:
        evaluate(parse_hlo(text, "a.hlo"), np.zeros(4, np.float32), np.zeros(4, np.uint32))
    assert caught.value.span is not None
    assert caught.value.span.line == 5


def test_an_op_on_a_type_without_a_meaning_is_named() -> None:
    text = _entry("  x = pred[4] parameter(0)\n  ROOT r = pred[4] negate(x)")
    with pytest.raises(UnsupportedHlo, match="negate on pred"):
        evaluate_computation(parse_hlo(text).entry, np.zeros(4, np.bool_))  # evaluate refuses it as HLO already


@pytest.mark.parametrize(
    "arrays",
    [[], [np.zeros(4, np.float64)], [np.zeros(5, np.float32)], [np.zeros(4, np.float32)] * 2],
    ids=["none", "dtype", "dims", "too many"],
)
def test_arrays_that_do_not_fit_are_refused(arrays: list[Array]) -> None:
    module = parse_hlo(_entry("  x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)"))
    with pytest.raises(ArgumentMismatch):
        evaluate(module, *arrays)
