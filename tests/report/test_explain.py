"""`explain`: what it says of emitters and variants, of refusals, of bytes and sectors; its JSON and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hero_kernels import analysis_of, body
from needs import needs_ptxas

import warpsmith as ws
from warpsmith.cli import main
from warpsmith.devices import device
from warpsmith.emitters.choose import EMITTERS
from warpsmith.errors import UnknownTarget, WarpsmithError
from warpsmith.fusion.analysis import Refusal, later_rules
from warpsmith.report.explain.explanation import Explanation, KernelExplanation

SCATTER = (
    "scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, "
)


def fold(dims: str, kept: str, reduced: int) -> str:
    """The sum along one dimension."""
    return f"""
        x = f32[{dims}] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[{kept}] reduce(x, z), dimensions={{{reduced}}}, to_apply=add_f32"""


SHOWN = {
    "concatenate": """
        x = f32[512,1024] parameter(0)
        y = f32[256,1024] parameter(1)
        c = f32[768,1024] concatenate(x, y), dimensions={0}
        ROOT r = f32[768,1024] negate(c)""",
    "dynamic_update_slice": """
        buffer = f32[4096,1024] parameter(0)
        update = f32[64,1024] parameter(1)
        start = s32[] parameter(2)
        zero = s32[] constant(0)
        doubled = f32[64,1024] add(update, update)
        ROOT r = f32[4096,1024] dynamic-update-slice(buffer, doubled, start, zero)""",
    "input_slices": """
        x = f32[1024,512] parameter(0)
        e = f32[1024,512] exponential(x)
        a = f32[256,512] slice(e), slice={[0:256],[0:512]}
        b = f32[768,512] slice(e), slice={[256:1024],[0:512]}
        ROOT r = (f32[256,512], f32[768,512]) tuple(a, b)""",
    "loop": """
        x = f32[256,1024] parameter(0)
        ROOT r = f32[256,1024] exponential(x)""",
    "scatter.distributed_updates": f"""
        x = f32[1024,64] parameter(0)
        i = s32[200,1] parameter(1)
        u = f32[200,1,64] parameter(2)
        ROOT r = f32[1024,64] {SCATTER} to_apply=add_f32""",
    "scatter.distributed_indices": f"""
        x = f32[100,64] parameter(0)
        i = s32[6000,1] parameter(1)
        u = f32[6000,1,64] parameter(2)
        ROOT r = f32[100,64] {SCATTER} indices_are_sorted=true, to_apply=add_f32""",
    "transpose.padded": """
        x = f32[512,1024] parameter(0)
        e = f32[512,1024] exponential(x)
        ROOT r = f32[1024,512] transpose(e), dimensions={1,0}""",
    "transpose.packed": """
        x = bf16[512,640] parameter(0)
        ROOT r = bf16[640,512] transpose(x), dimensions={1,0}""",
    "reduction.row": fold("100,4096", "100", 1),
    "reduction.multi_row": fold("20000,8", "20000", 1),
    "reduction.column": fold("500,1100", "1100", 0),
    "reduction.small_column": fold("50,1000,4", "50,4", 1),
}
LEAST = {  # bytes, by hand: what is read once, what is written once
    "concatenate": (3 << 20, 3 << 20),
    "dynamic_update_slice": (64 * 1024 * 4 + 4, 64 * 1024 * 4),
    "input_slices": (2 << 20, 2 << 20),
    "loop": (1 << 20, 1 << 20),
    "scatter.distributed_updates": (200 * 4 + 200 * 64 * 4, 200 * 64 * 4),
    "scatter.distributed_indices": (6000 * 4 + 6000 * 64 * 4, 100 * 64 * 4),
    "transpose.padded": (2 << 20, 2 << 20),
    "transpose.packed": (512 * 640 * 2, 512 * 640 * 2),
    "reduction.row": (100 * 4096 * 4, 100 * 4),
    "reduction.multi_row": (20000 * 8 * 4, 20000 * 4),
    "reduction.column": (500 * 1100 * 4, 1100 * 4),
    "reduction.small_column": (50 * 1000 * 4 * 4, 50 * 4 * 4),
}
_CACHE: dict[tuple[str, str], Explanation] = {}


def explained(name: str, target: str = "sm_90") -> Explanation:
    """The explanation of one of `SHOWN`."""
    key = name, target
    if key not in _CACHE:
        _CACHE[key] = ws.explain(ws.parse_hlo(body(SHOWN[name]), f"{name}.hlo"), target)
    return _CACHE[key]


def kernel_of(name: str, target: str = "sm_90") -> KernelExplanation:
    (kernel,) = explained(name, target).kernels
    return kernel


def gelu() -> ws.HloModule:
    from warpsmith.cli.files import example_text

    return ws.parse_hlo(example_text("gelu"), "gelu.hlo")


# ------------------------------------------------------------------------------------------------------ what is chosen
@pytest.mark.parametrize("name", SHOWN)
def test_each_emitter_and_variant_says_why_and_why_not_the_others(name: str) -> None:
    """Wrong: the emitter or variant shown, or an emitter that is neither chosen nor refused."""
    kernel = kernel_of(name)
    emitter, _, variant = name.partition(".")
    assert (kernel.emitter, kernel.variant) == (emitter, variant)
    assert [each.emitter for each in kernel.refused] == [each for each in EMITTERS if each != emitter]
    assert all(each.reason for each in kernel.refused)
    text = str(explained(name))
    shown = f"{emitter} ({variant})" if variant else emitter
    assert f"kernel fusion: {shown}\n" in text
    assert all(f"{each.emitter}: {each.reason[:30]}" in text for each in kernel.refused)


@pytest.mark.parametrize("name", SHOWN)
def test_least_bytes_are_inputs_once_and_outputs_once(name: str) -> None:
    """Wrong: bytes of a buffer that is updated in place, or of an input that is only sliced."""
    kernel = kernel_of(name)
    assert (kernel.bytes_read, kernel.bytes_written) == LEAST[name]
    assert kernel.bytes_least == sum(LEAST[name])


@pytest.mark.parametrize("name", SHOWN)
def test_moved_bytes_are_those_of_the_accesses_and_never_less_than_what_is_touched(name: str) -> None:
    """Wrong: scaling from the blocks that ran to the grid, or a buffer that is left out."""
    kernel = kernel_of(name)
    assert kernel.bytes_moved is not None
    assert kernel.memory_bytes is not None
    sectors = sum(each.sectors for each in kernel.traffic if each.space == "global")
    assert abs(32 * sectors - kernel.bytes_moved) <= 32 * len(kernel.traffic)
    twice = sum(32 * each.sectors for each in kernel.traffic if each.kind == "atomic")  # read and written in one step
    assert kernel.bytes_moved + twice >= 0.999 * kernel.memory_bytes
    names = {each.buffer for each in kernel.traffic if each.space == "global"}
    assert names >= {each.name for each in kernel.kernel.inputs} - {"buffer"}


REFUSALS = {
    "transpose of narrow rows": (
        "x = f32[1000,4] parameter(0)\n ROOT t = f32[4,1000] transpose(x), dimensions={1,0}",
        "transpose",
        "minor dimensions 4 (input) and 1000 (output)",
        {"input_minor": 4, "output_minor": 1000, "least": 16, "product": 4000, "least_product": 8192},
    ),
    "transpose that keeps wide rows": (
        "x = f32[50,60,8] parameter(0)\n ROOT t = f32[60,50,8] transpose(x), dimensions={1,0,2}",
        "transpose",
        "256 bits, more than 64",
        {"row_bits": 256, "most": 64},
    ),
    "transpose of a few short rows": (
        "x = bf16[3,60,2] parameter(0)\n ROOT t = bf16[60,3,2] transpose(x), dimensions={1,0,2}",
        "transpose",
        "the shorter side has 96 bits, fewer than 128",
        {"side_bits": 96, "least": 128},
    ),
    "reduction of short rows": (
        fold("50,7", "50", 1),
        "reduction",
        "rows of 7 elements are shorter than a warp of 32",
        {"elements": 7, "warp": 32},
    ),
    "reduction of few rows": (
        fold("40,20", "20", 0),
        "reduction",
        "40 rows of 20 columns: fewer than 64 rows (with fewer than 32 columns)",
        {"rows": 40, "columns": 20, "least": 64},
    ),
    "concatenate of five": (
        "x = f32[8] parameter(0)\n ROOT c = f32[40] concatenate(x, x, x, x, x), dimensions={0}",
        "concatenate",
        "'c' has 5 operands, more than 4",
        {"operands": 5, "most": 4},
    ),
    "update of a buffer that is read elsewhere": (
        """b = f32[64] parameter(0)
        i = s32[] parameter(1)
        w = f32[64] reverse(b), dimensions={0}
        u = f32[8] slice(w), slice={[0:8]}
        ROOT r = f32[64] dynamic-update-slice(b, u, i)""",
        "dynamic_update_slice",
        "'w' (reverse) reads 'b' at other elements than its own",
        {},
    ),
    "slices with strides": (
        """x = f32[64] parameter(0)
        a = f32[32] slice(x), slice={[0:64:2]}
        b = f32[8] slice(x), slice={[0:8]}
        ROOT r = (f32[32], f32[8]) tuple(a, b)""",
        "input_slices",
        "has the strides [2]",
        {"stride": 2, "most": 1},
    ),
    "hidden reduce": (
        """x = f32[64,64] parameter(0)
        y = f32[64] parameter(1)
        z = f32[] constant(0)
        s = f32[64] reduce(x, z), dimensions={1}, to_apply=add_f32
        ROOT r = f32[64] add(s, y)""",
        "reduction",
        "'s' isn't what a root reaches through a chain",
        {},
    ),
    "several roots": (SHOWN["input_slices"], "scatter", "there are 2 roots", {"roots": 2, "most": 1}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_names_the_failed_condition_and_its_numbers(name: str) -> None:
    """Wrong: the condition, or the numbers that it compares."""
    text, emitter, words, numbers = REFUSALS[name]
    analysis = analysis_of(text)
    refused = {each.emitter: each for each in (*analysis.refused, *later_rules(analysis))}
    assert words in refused[emitter].reason
    assert dict(refused[emitter].numbers).items() >= numbers.items()


def test_rules_after_the_chosen_one_are_told_apart_from_those_that_fail() -> None:
    """A concatenate that is also transposed: the transpose is asked first, and the concatenate says so or why not."""
    both = """
        x = f32[64,64] parameter(0)
        i = s32[] parameter(1)
        t = f32[64,64] transpose(x), dimensions={1,0}
        ROOT r = f32[64,64] negate(t)"""
    analysis = analysis_of(both)
    assert analysis.emitter == "transpose"
    later = {each.emitter: each.reason for each in later_rules(analysis)}
    assert later["concatenate"] == "the fusion has no concatenate"
    sliced = analysis_of(SHOWN["input_slices"])
    assert [each.emitter for each in sliced.refused] == ["reduction", "transpose"]
    assert isinstance(later_rules(sliced)[0], Refusal)


# ------------------------------------------------------------------------------------------------------- what it costs
def test_gelu_moves_what_it_must_in_whole_sectors() -> None:
    """12,582,912 bf16 elements, four (8 bytes) a thread: 24,576 blocks; a warp's 256 bytes are 8 sectors."""
    found = ws.explain(gelu())
    (kernel,) = found.kernels
    assert (kernel.emitter, kernel.grid, kernel.block, kernel.unroll) == ("loop", (24576, 1, 1), (128, 1, 1), 4)
    assert kernel.bytes_least == kernel.bytes_moved == 2 * 12582912 * 2
    assert [(each.kind, each.buffer, each.bits, each.sectors_per_access) for each in kernel.traffic] == [
        ("load", "param", 64, 8.0),
        ("store", "result", 64, 8.0),
    ]
    assert kernel.blocks_run < 24576
    assert kernel.advice == ()
    assert kernel.largest is not None
    text = str(found)
    assert "writes element t * 4 + b * 512 + v of result, v = 0..3" in text
    assert "neighbours in a warp are contiguous, 64 bits each" in " ".join(text.split())
    assert "result[i] of param: the element at the same index" in text


def test_the_published_transpose_is_coalesced_on_both_sides_and_free_of_conflicts() -> None:
    """960 blocks, a tile of 32 x 1 x 33; the 20 columns of the output are 80 bytes, three sectors."""
    path = Path(__file__).parents[2] / "examples" / "transpose.hlo"
    (kernel,) = ws.explain(ws.parse_hlo(path.read_text(), "transpose.hlo")).kernels
    assert (kernel.emitter, kernel.variant, kernel.grid) == ("transpose", "padded", (960, 1, 1))
    assert kernel.shared_bytes == 32 * 33 * 4
    assert kernel.kernel.origin.tile is not None
    assert kernel.kernel.origin.tile.dims == (32, 1, 33)
    by_kind = {each.kind: each for each in kernel.traffic if each.space == "global"}
    assert by_kind["store"].sectors_per_access == 3.0
    assert by_kind["store"].sectors == by_kind["store"].ideal_sectors
    assert sum(each.conflicts for each in kernel.traffic) == 0


def test_full_tiles_move_each_element_once_without_conflicts() -> None:
    """Wrong: the tile's padding, the swizzle, or how lanes lie."""
    for name in ("transpose.padded", "transpose.packed"):
        kernel = kernel_of(name)
        assert kernel.bytes_moved == kernel.bytes_least, name
        assert sum(each.conflicts for each in kernel.traffic) == 0, name
        assert all("contiguous" in each.words for each in kernel.accesses)


def test_a_transpose_without_a_tile_is_called_uncoalesced() -> None:
    """Rows of 4 floats: lanes of the loop emitter lie 16 bytes apart, so a warp's read takes 16 sectors, not 4."""
    text = "x = f32[8192,4] parameter(0)\n ROOT t = f32[4,8192] transpose(x), dimensions={1,0}"
    (kernel,) = ws.explain(ws.parse_hlo(body(text))).kernels
    assert kernel.emitter == "loop"
    reads = next(each for each in kernel.traffic if each.kind == "load")
    assert (reads.sectors_per_access, reads.ideal_sectors / reads.warps) == (16.0, 4.0)
    assert any(line.startswith("reading x is uncoalesced: 16.0 sectors") for line in kernel.advice)


def test_64_bit_indices_few_blocks_and_contention_are_said() -> None:
    """Wrong: a rule of the advice, or the input that stands for indices."""
    text = """
        x = f32[4096] parameter(0)
        i = s64[64] parameter(1)
        ROOT r = f32[64,1] gather(x, i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0},
            index_vector_dim=1, slice_sizes={1}"""
    (kernel,) = ws.explain(ws.parse_hlo(body(text))).kernels
    assert kernel.index_bits == 64
    assert "s64[64]" in kernel.index_reason
    assert any(line.startswith("64-bit indices") for line in kernel.advice)
    assert any(line == "only 1 of 132 multiprocessors gets a block" for line in kernel.advice)
    one = """
        x = f32[1] parameter(0)
        i = s32[640,1] parameter(1)
        u = f32[640,1] parameter(2)
        ROOT r = f32[1] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={},
            scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32"""
    (kernel,) = ws.explain(ws.parse_hlo(body(one))).kernels
    assert any("atomics contend: up to 32 threads" in line for line in kernel.advice)


@needs_ptxas
def test_registers_and_occupancy_are_ptxas_and_the_devices() -> None:
    """Wrong: the kernel asked for, or the limiter."""
    kernel = kernel_of("reduction.column")
    assert kernel.resources is not None
    assert kernel.resources.registers > 0
    assert kernel.occupancy is not None
    assert kernel.occupancy.blocks == 2  # 1024 threads a block, 2048 a multiprocessor
    assert "registers" in str(explained("reduction.column"))


def test_without_ptxas_registers_are_unknown_and_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpsmith.backends.nvptx import cuda_files

    monkeypatch.setattr(cuda_files, "find", lambda *_: None)
    found = ws.explain(ws.parse_hlo(body(SHOWN["loop"])))
    assert found.kernels[0].resources is None
    text = " ".join(str(found).split())
    assert "registers are unknown: no ptxas here" in text
    assert "pip install" in text
    assert found.to_dict()["fusions"][0]["registers"] is None


def test_buffers_too_large_to_simulate_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: gigabytes of zeros for a report."""
    text = "x = f32[65536,8192] parameter(0)\n ROOT r = f32[65536,8192] negate(x)"
    found = ws.explain(ws.parse_hlo(body(text)))
    (kernel,) = found.kernels
    assert kernel.bytes_moved is None
    assert any(note.startswith("not simulated") for note in kernel.notes)
    row = found.to_dict()["fusions"][0]
    assert (row["bytes_moved"], row["bytes_moved_measured"]) == (row["bytes_least"], False)


def test_sampled_indices_stay_inside() -> None:
    """A window as large as the operand fits at one place: all 600 updates (64 floats each) are read."""
    text = f"""
        x = f32[8,8] parameter(0)
        i = s32[600,1] parameter(1)
        u = f32[600,8,8] parameter(2)
        ROOT r = f32[8,8] {SCATTER} indices_are_sorted=true, to_apply=add_f32"""
    (kernel,) = ws.explain(ws.parse_hlo(body(text))).kernels
    reads = [each for each in kernel.traffic if (each.kind, each.buffer) == ("load", "u")]
    assert 32 * sum(each.sectors for each in reads) == 600 * 64 * 4


# ------------------------------------------------------------------------------------------------------- other targets
@pytest.mark.parametrize("name", ["loop", "transpose.padded", "reduction.row"])
def test_the_cpu_has_work_groups_and_vectors(name: str) -> None:
    kernel = kernel_of(name, "cpu")
    assert not kernel.is_gpu
    assert kernel.block == (1, 1, 1)
    assert kernel.lanes > 1
    assert kernel.index_bits == 64
    assert {each.emitter for each in kernel.refused} == set(EMITTERS) - {kernel.emitter}
    assert "work group g writes element" in str(explained(name, "cpu"))


def test_gelu_on_the_cpu_is_looked_up() -> None:
    """bf16: a table of 65,536 results of two bytes (and padding) takes the place of tanh."""
    (kernel,) = ws.explain(gelu(), "cpu").kernels
    assert len(kernel.tables) == 1
    assert kernel.tables[0] >= 1 << 17
    assert "looked up in tables" in str(ws.explain(gelu(), "cpu"))


def test_a_slower_device_takes_longer() -> None:
    """The L4 has less than a tenth of an H100's bandwidth."""
    fast, slow = kernel_of("loop").roofline, kernel_of("loop", "l4").roofline
    assert fast.memory_us is not None
    assert slow.memory_us is not None
    ratio = device("sm_90").memory_bandwidth / device("l4").memory_bandwidth
    assert slow.memory_us == pytest.approx(fast.memory_us * ratio)


WHOLE = """HloModule whole
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY main {
  x = f32[64,100] parameter(0)
  e = f32[64,100] exponential(x)
  s = f32[64,100] sort(e), dimensions={1}, to_apply=less
  f = f32[64,100] exponential(s)
  ROOT r = f32[100,64] transpose(f), dimensions={1,0}
}
"""


def test_whole_modules_have_a_section_a_kernel_and_their_host_steps() -> None:
    """The two exponentials are one kernel, explained once and listed twice; the sort is a host step with its reason."""
    found = ws.explain(ws.parse_hlo(WHOLE, "whole.hlo"))
    assert found.kernels[0].fusions == ("e", "f")
    assert [each["name"] for each in found.to_dict()["fusions"]] == ["e", "f", "r"]
    assert [(each.name, each.opcode) for each in found.host] == [("s", "sort")]
    text = str(found)
    assert "kernel e: loop, and 1 more that are the same kernel" in text
    assert "host s = sort: no emitter takes 'sort'" in text
    assert "from 'x' (whole.hlo:4)" in text


# ---------------------------------------------------------------------------------------------------------------- JSON
FIELDS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "emitter": str,
    "variant": str,
    "hero": str,
    "refused": list,
    "grid": list,
    "block": list,
    "unroll": int,
    "shared_bytes": int,
    "index_bits": int,
    "index_reason": str,
    "maps": list,
    "bytes_least": int,
    "bytes_moved": int,
    "traffic": list,
    "limits": dict,
    "advice": list,
    "notes": list,
}


@pytest.mark.parametrize("target", ["sm_80", "cpu"])
def test_json_has_the_fields_of_the_contract(target: str, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """Wrong: a field that is gone, of another type, or something else on standard output."""
    path = tmp_path / "m.hlo"
    path.write_text(body(SHOWN["transpose.padded"]))
    assert main(["explain", str(path), "--target", target, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report.keys() == {"schema", "module", "target", "device", "numerics", "fusions", "host"}
    (row,) = report["fusions"]
    for name, kind in FIELDS.items():
        assert isinstance(row[name], kind), name
    assert all({"emitter", "reason"} <= each.keys() for each in row["refused"])
    assert {each["kind"] for each in row["maps"]} == {"thread", "dependence"}


def test_two_calls_say_the_same() -> None:
    """Nothing in it is timed."""
    module = ws.parse_hlo(body(SHOWN["reduction.column"]))
    assert ws.explain(module).to_json() == ws.explain(module).to_json()


def test_lines_fit_a_terminal() -> None:
    for name in SHOWN:
        assert max(map(len, str(explained(name)).splitlines())) <= 120


def test_a_tile_kernel_is_explained_by_its_primitives(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    file = str(Path(__file__).resolve().parents[2] / "examples" / "tile" / "root_mean_square.py")
    assert main(["explain", file, "--svg", str(tmp_path / "out.svg")]) == 0
    out = capsys.readouterr().out
    assert "gmem_smem: 4 x 128 threads x 4 elements" in out
    assert "not gmem_smem" in out
    assert (tmp_path / "out.svg").read_text().startswith("<svg")
    assert main(["explain", f"{file}:root_mean_square", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [each["variant"] for each in data["primitives"]][:2] == ["gmem_smem", "reg"]
    assert data["block"] == [128, 1, 1]


# -------------------------------------------------------------------------------------------------------------- errors
def test_bad_input_is_refused_in_our_own_words(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    with pytest.raises(UnknownTarget, match="unknown target 'sm_9'"):
        ws.explain(gelu(), "sm_9")
    with pytest.raises(WarpsmithError, match="numerics"):
        ws.explain(gelu(), numerics="sloppy")
    assert main(["explain"]) == 2
    assert "give a file" in capsys.readouterr().err
    assert main(["explain", "kernel.py"]) == 2
    assert "kernel.py" in capsys.readouterr().err
    path = tmp_path / "empty.hlo"
    path.write_text("HloModule m\nENTRY e { ROOT p = f32[3] parameter(0) }\n")
    assert main(["explain", str(path)]) == 0
    assert "computes nothing" in capsys.readouterr().out
    assert main(["explain", str(path), "--svg", str(tmp_path / "out.svg")]) == 2
    assert "no kernel to draw" in capsys.readouterr().err
    assert not (tmp_path / "out.svg").exists()


def test_the_command_prints_what_str_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--example", "gelu"]) == 0
    out = capsys.readouterr().out
    assert out == str(ws.explain(gelu())) + "\n"
    assert not re.search(r"\d+ ms\b", out)


def test_the_example_in_the_documentation_is_what_is_printed() -> None:
    """Each line of the block in docs/explain.md, in order (some are left out there)."""
    root = Path(__file__).parents[2]
    block = re.search(r"```text\n(.*?)```", (root / "docs" / "explain.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    module = ws.parse_hlo((root / "examples" / "transpose.hlo").read_text(), "examples/transpose.hlo")
    lines = iter(str(ws.explain(module)).splitlines())
    assert [line for line in block[1].splitlines() if line not in lines] == []
