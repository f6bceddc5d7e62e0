"""Named HLO rewrites: the text that they give, and that it means the same."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpsmith as ws
from warpsmith.cli import main
from warpsmith.compiler import simulate
from warpsmith.devices import device
from warpsmith.errors import UnknownPass
from warpsmith.hlo import parse_hlo
from warpsmith.hlo.verifier import verify_module
from warpsmith.hlo_passes import REWRITES, apply, scatter_order
from warpsmith.report.run.checked_run import random_inputs

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"

TEXTS = {
    "gather-simplifier": (
        """HloModule m
ENTRY e {
  x = f32[7,3] parameter(0)
  i = s32[4,5] parameter(1)
  ROOT g = f32[4,3,5] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, \
index_vector_dim=2, slice_sizes={1,3}
}""",
        """HloModule m

ENTRY e {
  x = f32[7,3] parameter(0)
  i = s32[4,5] parameter(1)
  g.reshape = s32[20,1] reshape(i)
  g.gather = f32[20,1,3] gather(x, g.reshape), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, \
index_vector_dim=1, slice_sizes={1,3}
  g.reshape.1 = f32[4,5,3] reshape(g.gather)
  ROOT g.transpose = f32[4,3,5] transpose(g.reshape.1), dimensions={0,2,1}
}""",
    ),
    "scatter-simplifier": (
        f"""HloModule m
{ADD}ENTRY e {{
  x = f32[7,3] parameter(0)
  i = s32[5] parameter(1)
  u = f32[3,5] parameter(2)
  ROOT s = f32[7,3] scatter(x, i, u), update_window_dims={{0}}, inserted_window_dims={{0}}, \
scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}""",
        """ENTRY e {
  x = f32[7,3] parameter(0)
  i = s32[5] parameter(1)
  u = f32[3,5] parameter(2)
  s.reshape = s32[5,1] reshape(i)
  s.transpose = f32[5,3] transpose(u), dimensions={1,0}
  s.reshape.1 = f32[5,1,3] reshape(s.transpose)
  ROOT s.scatter = f32[7,3] scatter(x, s.reshape, s.reshape.1), update_window_dims={1,2}, \
inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}""",
    ),
    "dynamic-index-splitter": (
        """HloModule m
ENTRY e {
  x = f32[8,9] parameter(0)
  i = s32[2] parameter(1)
  ROOT s = f32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}
}""",
        """HloModule m

ENTRY e {
  x = f32[8,9] parameter(0)
  i = s32[2] parameter(1)
  s.slice = s32[1] slice(i), slice={[0:1]}
  s.reshape = s32[] reshape(s.slice)
  s.slice.1 = s32[1] slice(i), slice={[1:2]}
  s.reshape.1 = s32[] reshape(s.slice.1)
  ROOT s.dynamic-slice = f32[2,3] dynamic-slice(x, s.reshape, s.reshape.1), dynamic_slice_sizes={2,3}
}""",
    ),
    "dot-operand-upcaster": (
        """HloModule m
ENTRY e {
  a = s8[4,8] parameter(0)
  b = s8[8,4] parameter(1)
  ROOT d = s32[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}""",
        """HloModule m

ENTRY e {
  a = s8[4,8] parameter(0)
  b = s8[8,4] parameter(1)
  d.convert = s32[4,8] convert(a)
  d.convert.1 = s32[8,4] convert(b)
  ROOT d.dot = s32[4,4] dot(d.convert, d.convert.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}""",
    ),
    "comparison-expander": (
        """HloModule m
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  ROOT c = pred[8] compare(a, b), direction=LT, type=TOTALORDER
}""",
        """  c.bitcast-convert = s32[8] bitcast-convert(a)
  c.constant = s32[] constant(31)
  c.broadcast = s32[8] broadcast(c.constant), dimensions={}
  c.constant.1 = s32[] constant(2147483647)
  c.broadcast.1 = s32[8] broadcast(c.constant.1), dimensions={}
  c.shift-right-arithmetic = s32[8] shift-right-arithmetic(c.bitcast-convert, c.broadcast)
  c.and = s32[8] and(c.shift-right-arithmetic, c.broadcast.1)
  c.xor = s32[8] xor(c.bitcast-convert, c.and)
""",
    ),
    "scatter-order": (
        """HloModule m
keep_last { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[3000,1] parameter(1)
  u = f32[3000,1] parameter(2)
  ROOT s = f32[8] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, \
index_vector_dim=1, to_apply=keep_last
}""",
        """ sort(s.keys.0, s.keys.1), dimensions={0}, is_stable=true, to_apply=s.before
""",
    ),
    "tree-reduction": (
        f"""HloModule m
{ADD}ENTRY e {{
  x = f32[1048576] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimensions={{0}}, to_apply=add
}}""",
        "f32[1024] reduce(",
    ),
    "inline-calls": (
        """HloModule m
double { p = f32[8] parameter(0) ROOT s = f32[8] add(p, p) }
ENTRY e {
  x = f32[8] parameter(0)
  ROOT c = f32[8] call(x), to_apply=double
}""",
        "ROOT c = f32[8] add(x, x)",
    ),
}


def test_every_rewrite_has_a_text_test() -> None:
    assert set(TEXTS) == set(REWRITES)


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_that_a_rewrite_gives(name: str) -> None:
    before, after = TEXTS[name]
    module = parse_hlo(before)
    found = apply(module, name, device("sm_90"))
    assert after in str(found)
    verify_module(found)
    assert parse_hlo(str(found)) == found
    assert str(apply(found, name, device("sm_90"))) == str(found), "a second time changes nothing"


@pytest.mark.parametrize("name", TEXTS)
def test_a_rewrite_keeps_the_meaning(name: str) -> None:
    module = parse_hlo(TEXTS[name][0])
    inputs = random_inputs(module, 3)
    same(ws.evaluate(module, *inputs), ws.evaluate(apply(module, name, device("sm_90")), *inputs), name)


def same(mine: list[Any], theirs: list[Any], name: str) -> None:
    for a, b in zip(mine, theirs, strict=True):
        if name == "tree-reduction":
            np.testing.assert_allclose(a, b, rtol=1e-4)
        else:
            np.testing.assert_array_equal(a, b)


def _indexed_dims(rng: Random, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Disjoint dims of an operand: batch dims, collapsed dims; and those that indices choose, in any order."""
    dims = list(range(rank))
    rng.shuffle(dims)
    batch = sorted(dims[: rng.randint(0, rank - 1)]) if rng.random() < 0.5 else []
    rest = [d for d in range(rank) if d not in batch]
    chosen = rng.sample(rest, rng.randint(1, len(rest)))
    collapsed = sorted(d for d in rest if rng.random() < 0.5)
    return batch, collapsed, chosen


def _index_dims(rng: Random, operand: list[int], batch: list[int], count: int) -> tuple[list[int], list[int], int]:
    """Dims of the indices, which of them are batch dims, and the dim of the vector (past the end: none)."""
    outer = [operand[d] for d in batch] + [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
    places = list(range(len(outer)))
    rng.shuffle(places)
    dims = [outer[p] for p in places]
    batches = [places.index(i) for i in range(len(batch))]
    vector = rng.randint(0, len(dims))
    if count == 1 and rng.random() < 0.4:
        return dims, batches, len(dims)
    dims.insert(vector, count)
    return dims, [b if b < vector else b + 1 for b in batches], vector


def braced(values: list[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def random_gather(rng: Random) -> str:
    operand = [rng.randint(1, 5) for _ in range(rng.randint(1, 4))]
    batch, collapsed, chosen = _indexed_dims(rng, len(operand))
    sizes = [1 if d in (*batch, *collapsed) else rng.randint(1, n) for d, n in enumerate(operand)]
    dims, batches, vector = _index_dims(rng, operand, batch, len(chosen))
    outer = [n for d, n in enumerate(dims) if d != vector]
    window = [n for d, n in enumerate(sizes) if d not in (*batch, *collapsed)]
    rank = len(outer) + len(window)
    offsets = sorted(rng.sample(range(rank), len(window)))
    inner, rest = iter(window), iter(outer)
    result = [next(inner) if d in offsets else next(rest) for d in range(rank)]
    dtype = rng.choice(["s32", "u8", "s64"])
    extra = ""
    if batch:
        extra = f", operand_batching_dims={braced(batch)}, start_indices_batching_dims={braced(batches)}"
    return f"""HloModule m
ENTRY e {{
  x = f32[{",".join(map(str, operand))}] parameter(0)
  i = {dtype}[{",".join(map(str, dims))}] parameter(1)
  ROOT g = f32[{",".join(map(str, result))}] gather(x, i), offset_dims={braced(offsets)}, \
collapsed_slice_dims={braced(collapsed)}, start_index_map={braced(chosen)}, index_vector_dim={vector}, \
slice_sizes={braced(sizes)}{extra}
}}"""


def random_scatter(rng: Random) -> str:
    operand = [rng.randint(1, 5) for _ in range(rng.randint(1, 4))]
    batch, inserted, chosen = _indexed_dims(rng, len(operand))
    dims, batches, vector = _index_dims(rng, operand, batch, len(chosen))
    outer = [n for d, n in enumerate(dims) if d != vector]
    window = [rng.randint(1, n) for d, n in enumerate(operand) if d not in (*batch, *inserted)]
    rank = len(outer) + len(window)
    windows = sorted(rng.sample(range(rank), len(window)))
    inner, rest = iter(window), iter(outer)
    update = [next(inner) if d in windows else next(rest) for d in range(rank)]
    extra = f", input_batching_dims={braced(batch)}, scatter_indices_batching_dims={braced(batches)}" if batch else ""
    shape = ",".join(map(str, operand))
    return f"""HloModule m
add {{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }}
ENTRY e {{
  x = s32[{shape}] parameter(0)
  i = s32[{",".join(map(str, dims))}] parameter(1)
  u = s32[{",".join(map(str, update))}] parameter(2)
  ROOT s = s32[{shape}] scatter(x, i, u), update_window_dims={braced(windows)}, \
inserted_window_dims={braced(inserted)}, scatter_dims_to_operand_dims={braced(chosen)}, \
index_vector_dim={vector}, to_apply=add{extra}
}}"""


def index_inputs(module: Any, rng: Random) -> list[Any]:
    generator = np.random.default_rng(rng.randint(0, 1 << 30))
    found: list[Any] = []
    for parameter in module.entry.parameters:
        shape = parameter.array_shape
        if parameter.name == "i":
            found.append(
                generator.integers(0 if shape.dtype.name == "u8" else -2, 7, shape.dims).astype(shape.dtype.numpy)
            )
        else:
            found.append(generator.integers(-9, 9, shape.dims).astype(shape.dtype.numpy))
    return found


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from(["gather-simplifier", "scatter-simplifier"]))
def test_simplified_gathers_and_scatters_of_every_form_mean_the_same(seed: int, name: str) -> None:
    rng = Random(seed)
    module = parse_hlo((random_gather if name == "gather-simplifier" else random_scatter)(rng))
    verify_module(module)
    simple = apply(module, name, device("sm_90"))
    verify_module(simple)
    inputs = index_inputs(module, rng)
    np.testing.assert_array_equal(ws.evaluate(simple, *inputs)[0], ws.evaluate(module, *inputs)[0])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([0, scatter_order.MOST_SEARCHED]))
def test_scatters_of_every_form_keep_their_order(seed: int, most: int) -> None:
    """Each update takes the last one from itself, so that no two orders give the same."""
    rng = Random(seed)
    module = parse_hlo(random_scatter(rng).replace("add(a, b)", "subtract(b, a)"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scatter_order, "MOST_SEARCHED", most)
        inputs = index_inputs(module, rng)
        (wanted,) = ws.evaluate(module, *inputs)
        rewritten = apply(module, "scatter-order", device("sm_90"))
        verify_module(rewritten)
        np.testing.assert_array_equal(ws.evaluate(rewritten, *inputs)[0], wanted)
        found = simulate(module, *inputs, stage="buffers", deterministic=True)
    assert found.findings == []
    np.testing.assert_array_equal(found.outputs[0], wanted)


def test_bodies_of_fusions_are_rewritten_too() -> None:
    module = parse_hlo("""HloModule m
f {
  x = f32[8,9] parameter(0)
  i = s32[2] parameter(1)
  ROOT s = f32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}
}""")
    found = apply(module, "dynamic-index-splitter", device("sm_90"))
    assert "fusion" in str(found)
    assert "s.reshape.1" in str(found)
    verify_module(found)


def test_what_no_rule_touches_is_the_same_object() -> None:
    module = parse_hlo("HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }")
    assert apply(module, "gather-simplifier,comparison-expander", device("sm_90")) is module


def test_the_command_prints_a_rewritten_module(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(TEXTS["dynamic-index-splitter"][0])
    assert main(["hlo", "print", str(file), "--rewrites", "dynamic-index-splitter"]) == 0
    assert "s.reshape.1" in capsys.readouterr().out


def test_an_unknown_rewrite_is_named() -> None:
    module = parse_hlo(TEXTS["gather-simplifier"][0])
    with pytest.raises(UnknownPass, match="gather-simplifier"):
        apply(module, "gather-simplifer", device("sm_90"))
