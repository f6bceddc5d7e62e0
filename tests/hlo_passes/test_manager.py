"""HLO passes by name: the text that they give, and that it means the same."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir.filecheck import check_file, run_line

import warpsmith as ws
from warpsmith.cli import main
from warpsmith.compiler import simulate
from warpsmith.compiler.generated import random_inputs
from warpsmith.devices import device
from warpsmith.errors import UnknownPass
from warpsmith.hlo import HloModule, parse_hlo
from warpsmith.hlo.verifier import verify_module
from warpsmith.hlo_passes import scatter_order
from warpsmith.hlo_passes.manager import CONTRACTS, apply, lookup, names

FILES = sorted((Path(__file__).parent / "text").glob("*.hlo"))
TARGET = device("sm_90")
EXACT = "E"


def modules_of(path: Path) -> list[HloModule]:
    """The modules of a text test, without its directives."""
    chunks = re.split(r"^// -----.*$", path.read_text(), flags=re.MULTILINE)
    return [parse_hlo("\n".join(line for line in each.splitlines() if not line.startswith("//"))) for each in chunks]


def test_every_pass_has_a_text_test_a_mark_and_a_picture() -> None:
    """A pass that nobody sees at work, or of which nobody knows what it may change, could do anything."""
    assert {run_line(path.read_text()) for path in FILES} == set(names())
    for name in names():
        assert lookup(name).contract in CONTRACTS
        assert lookup(name).doc.startswith(f"{name}: ")
        assert "->" in lookup(name).doc


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_text_that_a_pass_gives(path: Path) -> None:
    """What a pass makes would differ from what its picture and its readers expect."""
    check_file(path, lambda text, passes: str(apply(parse_hlo(text), passes, TARGET)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_keeps_the_meaning_and_settles(path: Path) -> None:
    """The module after a pass would be no HLO, mean something else, or change with every run."""
    name = run_line(path.read_text())
    for module in modules_of(path):
        found = apply(module, name, TARGET)
        verify_module(found)
        assert parse_hlo(str(found)) == found
        assert apply(found, name, TARGET) == found
        inputs = random_inputs(module, 3)
        for a, b in zip(ws.evaluate(module, *inputs), ws.evaluate(found, *inputs), strict=True):
            if lookup(name).contract == EXACT:
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=1e-4)


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
    simple = apply(module, name, TARGET)
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
        rewritten = apply(module, "scatter-order", TARGET)
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
    found = apply(module, "dynamic-index-splitter", TARGET)
    assert "fusion" in str(found)
    assert "s.reshape.1" in str(found)
    verify_module(found)


def test_what_no_rule_touches_is_the_same_object() -> None:
    module = parse_hlo("HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }")
    assert apply(module, "gather-simplifier,comparison-expander", TARGET) is module


VECTOR = "HloModule m\nENTRY e { x = f32[8] parameter(0) i = s32[1] parameter(1) ROOT s = f32[2] dynamic-slice(x, i), \
dynamic_slice_sizes={2} }"


@pytest.mark.parametrize("words", [["print", "--rewrites"], ["opt", "--passes"]])
def test_the_command_prints_a_rewritten_module(
    words: list[str], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The passes couldn't be tried on a file."""
    file = tmp_path / "m.hlo"
    file.write_text(VECTOR)
    assert main(["hlo", words[0], str(file), words[1], "inline-calls,dynamic-index-splitter"]) == 0
    assert parse_hlo(capsys.readouterr().out) == apply(parse_hlo(VECTOR), "dynamic-index-splitter", TARGET)


def test_the_command_lists_the_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody could tell which passes there are, nor what they may change."""
    assert main(["hlo", "opt", "--list-passes"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name}\n" in listed for name in names())
    assert CONTRACTS["R"] in listed


def test_an_unknown_pass_is_named() -> None:
    """A slip of the pen would do nothing, or be answered without a help."""
    with pytest.raises(UnknownPass, match="gather-simplifier"):
        apply(parse_hlo(VECTOR), "gather-simplifer", TARGET)
