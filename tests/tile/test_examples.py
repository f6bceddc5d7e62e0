"""The kernels of examples/tile compute what they say, and cost what they say, in the simulator.

Expected values come from numpy in double precision; expected counters from the hardware's rules: 32 banks of a word, 32
bytes a sector.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tile.example_cases import EXAMPLES, SAMPLES, TARGETS, Arrays, compare, every_example, inputs_of, kernel
from warpsmith.arrays import Array
from warpsmith.compiler.tile.programs import TileRun, explain_tile, run_tile, tile_text
from warpsmith.tile.files import load_kernel
from warpsmith.tile.model.dtypes import tile_type


def output_of(result: TileRun) -> Array:
    (array,) = result.outputs.values()
    return array


@cache
def first_run(name: str) -> TileRun:
    return run_tile(kernel(name), inputs_of(SAMPLES[name], 1))


def check(name: str, inputs: Arrays, result: TileRun) -> None:
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    compare(name, inputs, output_of(result))


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAMPLES)


@every_example
def test_an_example_computes_what_it_says(name: str) -> None:
    check(name, inputs_of(SAMPLES[name], 1), first_run(name))


@every_example
def test_it_does_so_for_other_numbers(name: str) -> None:
    inputs = inputs_of(SAMPLES[name], 2)
    check(name, inputs, run_tile(kernel(name), inputs))


@pytest.mark.parametrize("length", [1, 3, 1023, 1024, 4096, 5121])
def test_vectors_of_any_length_are_added(length: int) -> None:
    rng = np.random.default_rng(length)
    inputs = {name: rng.standard_normal(length).astype(np.float32) for name in ("A_ptr", "B_ptr")}
    check("vector_add", inputs, run_tile(kernel("vector_add"), inputs))


RETYPED = [
    *((name, dtype) for name in ("vector_add", "transpose", "row_sum", "column_sum") for dtype in ("float64", "int32")),
    *((name, dtype) for name in ("transpose", "column_sum", "softmax") for dtype in ("float16", "bfloat16")),
    ("softmax", "float64"),
]
EPSILON = {"float64": 2**-52, "float16": 2**-10, "bfloat16": 2**-7, "int32": 0.0}


@pytest.mark.parametrize(("name", "dtype"), RETYPED)
def test_its_text_holds_for_other_types(name: str, dtype: str, tmp_path: Path) -> None:
    """Layouts count elements; how many are moved at once follows from their width."""
    path = tmp_path / "kernel.py"
    path.write_text((EXAMPLES / f"{name}.py").read_text().replace('"float32"', f'"{dtype}"'))
    rng = np.random.default_rng(4)
    type = tile_type(dtype).numpy
    shapes = SAMPLES[name].inputs
    inputs = {
        key: (rng.uniform(-2, 2, shape) * (1 + 99 * (dtype == "int32"))).astype(type) for key, shape in shapes.items()
    }
    result = run_tile(load_kernel(str(path)), inputs)
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    wanted = SAMPLES[name].result(*(a.astype(np.float64) for a in inputs.values()))
    np.testing.assert_allclose(
        output_of(result).astype(np.float64), wanted, rtol=4 * EPSILON[dtype], atol=32 * EPSILON[dtype]
    )


@every_example
def test_each_statement_gets_its_variant(name: str) -> None:
    for target in TARGETS:
        chosen = tuple(f"{each.primitive} {each.variant}" for each in explain_tile(kernel(name), target))
        assert chosen == SAMPLES[name].variants


@every_example
def test_no_bank_conflicts_no_sector_too_many_no_barrier_too_many(name: str) -> None:
    counters = first_run(name).counters
    assert counters is not None
    assert counters.conflicts == 0
    assert counters.sectors == counters.ideal_sectors > 0
    assert counters.barriers == SAMPLES[name].waits


@every_example
def test_all_global_memory_is_touched_once(name: str) -> None:
    """Each sector of the arrays is moved once a block that needs it."""
    counters = first_run(name).counters
    assert counters is not None
    arrays = [*inputs_of(SAMPLES[name], 1).values(), output_of(first_run(name))]
    assert counters.read_bytes + counters.written_bytes == sum(-(-a.nbytes // 32) * 32 for a in arrays)


def with_layout(name: str, variable: str, layout: str, folder: Path) -> Any:
    """An example with another layout of a staged tile."""
    text = (EXAMPLES / f"{name}.py").read_text()
    new, count = re.subn(rf"^{variable} = .*$", f"{variable} = {layout}", text, flags=re.MULTILINE)
    assert count == 1
    path = folder / "kernel.py"
    path.write_text(f"from warpsmith.tile import S, TileLayout\n{new}")
    return load_kernel(str(path))


LAYOUTS = {
    # 6 blocks read 32 columns each; of a dense tile's column all 32 numbers are in one bank: 31 turns too many
    ("transpose", "swizzled", "TileLayout(S[32, 32])"): (6 * 32 * 31, 4096),
    # rows of 33 words: a column's numbers are in 32 banks, and one word a row is lost
    ("transpose", "swizzled", "TileLayout(S[(32, 32) : (33, 1)])"): (0, 4 * (31 * 33 + 32)),
    # 8 lanes read 16 bytes of a row of 32 bytes each: rows i and i + 4 meet; 4 warps read and write 2 x 4 times
    ("square_root", "swizzled", "TileLayout(S[(4, 32, 8) : (256, 8, 1)])"): (4 * 2 * 2 * 4, 4096),
    # 8 lanes read 16 bytes of a row of 64 bytes each: 4 rows meet; 4 warps read and write 4 x 4 times
    ("root_mean_square", "swizzled", "TileLayout(S[128, 16])"): (4 * 2 * 4 * 4 * 3, 8192),
    # rows of 80 bytes are read without conflicts, but 8 lanes that write two of them meet in 4 words
    ("root_mean_square", "swizzled", "TileLayout(S[(128, 16) : (20, 1)])"): (4 * 2 * 4 * 4, 4 * (127 * 20 + 16)),
    # ldmatrix reads 8 rows of 64 bytes: 4 meet; 2 blocks of 4 warps read 8 times 16 such tiles of A
    ("gemm", "swizzled_a", "TileLayout(S[2, 128, 32])"): (2 * 4 * 8 * 16 * 3, 32768),
    # 8 rows of 256 bytes: all 8 meet; a warp reads 8 times 16 such tiles of B
    ("gemm", "swizzled_b", "TileLayout(S[2, 32, 128])"): (2 * 4 * 8 * 16 * 7, 32768),
}


@pytest.mark.parametrize(("name", "variable", "layout"), LAYOUTS, ids=[" ".join(each) for each in LAYOUTS])
def test_other_layouts_cost_more(name: str, variable: str, layout: str, tmp_path: Path) -> None:
    other = with_layout(name, variable, layout, tmp_path)
    inputs = inputs_of(SAMPLES[name], 1)
    result = run_tile(other, inputs)
    check(name, inputs, result)
    assert result.counters is not None
    assert (result.counters.conflicts, result.counters.shared_bytes) == LAYOUTS[name, variable, layout]


@every_example
def test_its_file_is_an_explanation_and_a_kernel(name: str) -> None:
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text())
    assert ast.get_docstring(tree)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions == [name]


@every_example
def test_its_cuda_has_no_leftovers(name: str) -> None:
    """Arrays of one element, variables that nothing reads, primitives without a comment of their own."""
    text = tile_text(kernel(name), "cuda")
    code = re.sub(r"//.*", "", text)
    assert not re.search(r"\w \w+\[1\];", code)
    for variable in re.findall(r"^ +(?:const )?\w+ (\w+) =", code, flags=re.MULTILINE):
        assert len(re.findall(rf"\b{variable}\b", code)) > 1, f"nothing reads {variable}"
    comments = re.findall(r"^ *// (Tx\.[\w.]+)\(.*\): (\w+)", text, flags=re.MULTILINE)
    assert [f"{call.rpartition('.')[2]} {variant}" for call, variant in comments] == list(SAMPLES[name].variants)
