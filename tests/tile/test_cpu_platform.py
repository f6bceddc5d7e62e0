"""Tile programs as native code: what the meaning of their primitives says, on every example and on random programs."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.tile.helpers import IMPORTS, SEED, body, read
from tests.tile.matrix_programs import async_copy, matrix_copy, product, relayout
from tests.tile.random_programs import GENERATORS
from warpsmith.cli import main
from warpsmith.compiler.tile.launches import compile_blocks
from warpsmith.compiler.tile.programs import run_tile
from warpsmith.errors import ArgumentMismatch, DispatchFailed, LoweringError, UsageError
from warpsmith.runtime import cpu_executable

SYMBOLIC = (
    'n = T.int32()\n    A = T.match_buffer(A_ptr, (n, 8), "float32"); B = T.match_buffer(B_ptr, (n, 8), "float32")'
)
EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "tile").glob("*.py"))


def test_the_seed_program_takes_square_roots() -> None:
    a = np.random.default_rng(1).random((32, 8), dtype=np.float32)
    result = run_tile(read(SEED), [a], platform="cpu")
    np.testing.assert_array_equal(result.outputs["B_ptr"], np.sqrt(a))
    assert result.ok
    assert result.platform == "cpu"
    assert result.counters is None


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_means_on_the_cpu_what_its_primitives_mean(path: Path) -> None:
    result = run_tile(runpy.run_path(str(path))[path.stem], platform="cpu", seed=3)
    assert result.outputs
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])


@pytest.mark.slow
@pytest.mark.parametrize("kind", GENERATORS)
def test_random_programs_mean_what_their_primitives_mean(kind: str) -> None:
    """`bench/random_tiles.py --platform cpu` runs thousands."""
    agreed = 0
    for seed in range(5000, 5020):
        text = GENERATORS[kind](seed)
        try:
            result = run_tile(read(text), seed=seed, platform="cpu")
        except DispatchFailed:
            continue
        assert result.ok, (kind, seed, text, dict(result.mismatches), [str(f) for f in result.findings])
        agreed += 1
    assert agreed >= 10


@pytest.mark.slow
@pytest.mark.parametrize("make", [matrix_copy, async_copy, product, relayout])
def test_what_lanes_do_together_means_what_its_primitives_mean(make: Callable[[int], str]) -> None:
    for seed in range(7000, 7006):
        result = run_tile(read(make(seed)), seed=seed, platform="cpu")
        assert result.ok, (seed, make(seed), dict(result.mismatches), [str(f) for f in result.findings])


BLOCKS = body(
    "\n".join(
        (
            "X = T.alloc_shared((32, 8), 'float32')",
            "Tx.cta.copy(X, A[bx * 32 : bx * 32 + 32, 0:8])",
            "T.cuda.cta_sync()",
            "Tx.cta.sqrt(X, X)",
            "Tx.cta.copy(B[bx * 32 : bx * 32 + 32, 0:8], X)",
        )
    ),
    parameters='A = T.match_buffer(A_ptr, (3200, 8), "float32"); B = T.match_buffer(B_ptr, (3200, 8), "float32")',
    grid=100,
    block=64,
)


def test_blocks_are_shared_out_and_what_is_compiled_can_be_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[tuple[int, int]] = []

    def launch(function: int, argv: bytes, total: int, grain: int) -> None:
        launches.append((total, grain))
        original(function, argv, total, grain)

    original = cpu_executable.pool.launch
    monkeypatch.setattr(cpu_executable.pool, "launch", launch)
    monkeypatch.setattr(cpu_executable.pool, "thread_count", lambda: 4)
    executable = compile_blocks(read(BLOCKS))
    for seed in range(3):
        a = np.random.default_rng(seed).random((3200, 8), dtype=np.float32)
        np.testing.assert_array_equal(executable([a])["B_ptr"], np.sqrt(a))
    ((total, grain),) = set(launches)
    assert total == 100
    assert grain < 100 // 4
    with pytest.raises(ArgumentMismatch, match="has shape"):
        executable([np.zeros((3, 8), np.float32)])


def test_what_is_compiled_once_takes_arrays_of_any_symbolic_extent() -> None:
    lines = "row = bx * 64 + tid\nif row < n:\n    for j in range(8):\n        B[row, j] = A[row, j] * 2.0"
    executable = compile_blocks(read(body(lines, parameters=SYMBOLIC, grid=4, block=64)))
    for n in (10, 200):
        a = np.random.default_rng(n).random((n, 8), dtype=np.float32)
        np.testing.assert_array_equal(executable([a, np.zeros_like(a)])["B_ptr"], a * 2)


def test_what_is_given_for_an_output_stays_as_it_was() -> None:
    a, b = np.ones((3200, 8), np.float32), np.zeros((3200, 8), np.float32)
    assert compile_blocks(read(BLOCKS))([a, b])["B_ptr"].all()
    assert not b.any()


def test_an_index_out_of_bounds_is_found_before_native_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_: object) -> None:
        raise AssertionError("native code ran")

    monkeypatch.setattr(cpu_executable, "run_on_all_cores", launch)
    result = run_tile(read(body("B[tid + 60, 0] = A[tid, 0]")), platform="cpu")
    assert not result.ok
    assert "64 elements" in str(result.findings[0])


def test_an_index_outside_of_a_view_of_unknown_extents_is_found_before_native_code_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def launch(*_: object) -> None:
        raise AssertionError("native code ran")

    monkeypatch.setattr(cpu_executable, "run_on_all_cores", launch)
    text = body('V = B.view("int32")\nV[tid, 0] = 1', parameters=SYMBOLIC, block=64)
    result = run_tile(read(text), [np.ones((3, 8), np.float32), np.zeros((3, 8), np.float32)], platform="cpu")
    assert not result.ok
    assert "which has 24 elements" in str(result.findings[0])


@pytest.mark.parametrize("extent", ["64", "n"])
def test_an_index_that_threads_race_for_reaches_no_other_memory(extent: str) -> None:
    """Without a barrier half of the threads read the large number, on a CPU, where one thread comes after the other; a
    store there would be a crash.  All of them store to the last element instead."""
    head = "n = T.int32()\n    " if extent == "n" else ""
    head += f'A = T.match_buffer(A_ptr, ({extent},), "float32"); B = T.match_buffer(B_ptr, ({extent},), "float32")'
    lines = "X = T.alloc_shared((64,), 'int32')\nX[tid] = FAR\nT.cuda.cta_sync()\nX[tid] = tid\nB[X[63 - tid]] = A[tid]"
    for far in (1 << 29, -(1 << 29)):
        text = body(lines.replace("FAR", f"0 + {far}"), parameters=head, block=64)
        result = run_tile(read(text), [np.ones(64, np.float32), np.zeros(64, np.float32)], platform="cpu")
        assert list(result.mismatches) == ["B_ptr"]
        np.testing.assert_array_equal(result.outputs["B_ptr"], [*np.ones(32), *np.zeros(31), 1])


def test_an_index_of_a_buffer_that_is_only_read_is_used_as_it_is() -> None:
    """Symbolic extents of two buffers, one of which needs its size at run time."""
    head = (
        "n = T.int32(); m = T.int32()\n"
        '    A = T.match_buffer(A_ptr, (n,), "int32"); B = T.match_buffer(B_ptr, (m,), "int32")'
    )
    lines = "X = T.alloc_shared((64,), 'int32')\nX[tid] = 2 * tid\nT.cuda.cta_sync()\nB[X[63 - tid]] = A[A[tid]]"
    a = np.roll(np.arange(64, dtype=np.int32), 7)
    wanted = np.zeros(200, np.int32)
    wanted[2 * (63 - np.arange(64))] = a[a]
    executable = compile_blocks(read(body(lines, parameters=head, block=64)))
    np.testing.assert_array_equal(executable([a, np.zeros(200, np.int32)])["B_ptr"], wanted)
    assert run_tile(read(body(lines, parameters=head, block=64)), [a, np.zeros(200, np.int32)], platform="cpu").ok


@pytest.mark.parametrize("platform", ["cpu", "sim"])
def test_a_division_that_a_processor_traps_on_ends_no_process(platform: str) -> None:
    """By zero, and of the least integer by -1; whatever these give, the other elements are right."""
    head = 'A = T.match_buffer(A_ptr, (64,), "int32"); B = T.match_buffer(B_ptr, (64,), "int32")'
    a = np.arange(64, dtype=np.int32) - 3
    a[63] = np.iinfo(np.int32).min
    rest = a[4:63]
    for expression, wanted in (
        ("100 // A[tid]", 100 // rest),
        ("100 % A[tid]", 100 % rest),
        ("A[tid] // A[2]", -rest),
        ("A[tid] % A[2]", 0 * rest),
    ):
        result = run_tile(read(body(f"B[tid] = {expression}", parameters=head, block=64)), [a], platform=platform)
        assert result.ok, (expression, dict(result.mismatches))
        np.testing.assert_array_equal(result.outputs["B_ptr"][4:63], wanted)


@pytest.mark.parametrize("platform", ["cpu", "sim"])
@pytest.mark.parametrize("n", [0, 1, 77])
def test_symbolic_extents_may_be_anything(n: int, platform: str) -> None:
    lines = "row = bx * 64 + tid\nif row < n:\n    for j in range(8):\n        B[row, j] = A[row, j] + 1.0"
    a = np.random.default_rng(n).random((n, 8), dtype=np.float32)
    text = body(lines, parameters=SYMBOLIC, grid=2, block=64)
    result = run_tile(read(text), [a, np.zeros_like(a)], platform=platform)
    assert result.ok, dict(result.mismatches)
    np.testing.assert_array_equal(result.outputs["B_ptr"], a + 1)


def test_a_barrier_that_memory_guards_is_refused_with_its_line() -> None:
    text = body("if A[tid, 0] > 1.0:\n    T.cuda.cta_sync()")
    with pytest.raises(LoweringError, match=r"gpu\.barrier is in an if") as refused:
        run_tile(read(text), platform="cpu")
    assert refused.value.span is not None
    assert "T.cuda.cta_sync()" in str(refused.value)
    assert "--platform sim" in str(refused.value)


def test_the_command_runs_on_the_cpu_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "seed.py"
    path.write_text(IMPORTS + SEED)
    assert main(["tile", str(path), "--run", "--platform", "cpu"]) == 0
    assert "platform cpu" in capsys.readouterr().out
    for platform in ("cpu", "sim"):
        assert main(["tile", str(path), "--run", "--platform", platform, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["kernel"], found["platform"], found["match"]) == ("k", platform, True)
        assert found["outputs"] == {"B_ptr": {"dtype": "float32", "shape": [32, 8], "mismatch": None}}
        assert (found["counters"] is None) == (platform == "cpu")


def test_another_platform_is_refused() -> None:
    with pytest.raises(UsageError, match="can't run on platform 'gpu'") as refused:
        run_tile(read(SEED), platform="gpu")
    assert "sim, cpu, cuda" in str(refused.value) or "did you mean" in str(refused.value)
