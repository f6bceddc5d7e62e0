"""`warpsmith run` and `warpsmith compile`: output, exit status, files, and every misuse."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from warpsmith.cli import main
from warpsmith.cli.npz import read_npz, write_npz
from warpsmith.errors import InternalError, LoweringError, PassFailed
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes import expand_math
from warpsmith.passes.manager import lookup
from warpsmith.runtime.cache import Cache

HLO = """HloModule tiny:
f {
  p = bf16[64,3] parameter(0)
  t = bf16[64,3] tanh(p)
  ROOT s = bf16[64,3] multiply(t, p)
}
ENTRY e {
  x = bf16[64,3] parameter(0)
  ROOT z = bf16[64,3] fusion(x), kind=kLoop, calls=f
}
"""


@pytest.fixture
def hlo(tmp_path: Path) -> str:
    file = tmp_path / "tiny.hlo"
    file.write_text(HLO)
    return str(file)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(list(words))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_run_prints_a_verdict(hlo: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "run", hlo, "--iterations", "2")
    assert (status, err) == (0, "")
    assert re.search(r"tiny.*on cpu.*strict.*match", out)
    for word in ("kernel", "compile", "GB/s", "of 192 elements compared", "seed 0"):
        assert word in out


def test_run_json_is_one_object_a_module_and_nothing_else(hlo: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "run", hlo, hlo, "--json", "--iterations", "1")
    assert status == 0
    first, second = (json.loads(line) for line in out.splitlines())
    contract = (
        "module platform numerics kernels compile_ms time_ms bytes gbps match max_ulp max_abs_error max_rel_error "
        "mismatches findings"
    ).split()
    assert set(contract) <= set(first)
    assert first["module"] == second["module"] == "tiny"
    assert set(first["kernels"][0]) >= {"fusion", "emitter", "variant", "grid", "block", "shared_bytes", "host"}


def test_run_reads_and_writes_arrays(hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.linspace(-2, 2, 192).reshape(64, 3).astype(ml_dtypes.bfloat16)
    write_npz(str(tmp_path / "in.npz"), [x])
    status, _, _ = run(capsys, "run", hlo, "--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz"))
    assert status == 0
    (z,) = read_npz(str(tmp_path / "out.npz"))
    assert z.dtype == x.dtype
    t = np.tanh(x.astype(np.float64)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(z, (t.astype(np.float32) * x.astype(np.float32)).astype(ml_dtypes.bfloat16))


def test_xla_spellings_compile_dump_and_say_that_nothing_ran(
    hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The published walk-through's own reproducer line."""
    dump = tmp_path / "dump"
    words = ["--platform=CUDA", "--xla_disable_all_hlo_passes", "--reference_platform=", hlo]
    words += ["--xla_dump_hlo_pass_re=fusion-emitter", f"--xla_dump_to={dump}"]
    status, out, _ = run(capsys, "run", *words)
    assert status == 0
    assert "not run and not compared" in " ".join(out.split())
    names = sorted(p.name for p in dump.iterdir())
    assert "tiny.z.00.emitted.mlir" in names
    assert "tiny.ptx" in names
    passes = [n for n in names if n.endswith(".mlir")]
    numbers = [int(n.split(".")[2]) for n in passes]
    assert numbers == list(range(len(passes)))


def test_dump_keeps_only_passes_that_match(hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, _ = run(capsys, "compile", hlo, "--dump-to", str(tmp_path / "d"), "--dump-pass-re", "^flatten")
    assert status == 0
    assert [p.name for p in (tmp_path / "d").glob("*.mlir")] == [
        next(p.name for p in (tmp_path / "d").glob("*.flatten-tensors.mlir"))
    ]


@pytest.mark.parametrize(
    ("stage", "target", "expected"),
    [
        ("hlo", "sm_90", "HloModule tiny"),
        ("emitted", "sm_90", "xla_gpu.pure_call"),
        ("lowered", "sm_90", "llvm.func"),
        ("llvm", "sm_80", "define ptx_kernel"),
        ("ptx", "sm_100", ".target sm_100"),
        ("ptx", "RTX A6000", ".target sm_86"),
        ("emitted", "cpu", "xla_gpu.workgroup_id"),
        ("llvm", "cpu", "define void @main(ptr"),
        ("asm", "cpu", "main"),
    ],
)
def test_each_stage_prints(
    stage: str, target: str, expected: str, hlo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "compile", hlo, "--target", target, "--stage", stage)
    assert (status, err) == (0, "")
    assert expected in out


def test_time_passes_goes_to_stderr(hlo: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "compile", hlo, "--time-passes", "--stage", "ptx")
    assert status == 0
    assert ".version" in out
    for word in ("flatten-tensors", "LLVM", "total"):
        assert word in err


MISUSES = {
    "run without a file": (["run"], "warpsmith run --example gelu"),
    "run of a missing file": (["run", "nowhere.hlo"], "can't read nowhere.hlo"),
    "run of a misspelt example": (["run", "--example", "gelo"], "did you mean 'gelu'?"),
    "run on a misspelt platform": (["run", "{hlo}", "--platform", "cup"], "did you mean 'cpu'?"),
    "run with a misspelt reference": (["run", "{hlo}", "--reference", "interpretr"], "did you mean 'interpreter'?"),
    "run with misspelt numerics": (["run", "{hlo}", "--numerics", "strikt"], "strict"),
    "run with no iterations": (["run", "{hlo}", "--iterations", "0"], "isn't a positive number"),
    "run with a negative bound": (["run", "{hlo}", "--abs-error", "-1"], "is no error bound"),
    "run with a GPU device on the CPU": (["run", "{hlo}", "--target", "sm_90"], "--platform cuda"),
    "run with one input file for two modules": (["run", "{hlo}", "{hlo}", "--input", "x.npz"], "go with one file"),
    "run with a missing input file": (["run", "{hlo}", "--input", "x.npz"], "can't read x.npz"),
    "run with an input file that is none": (["run", "{hlo}", "--input", "{hlo}"], "isn't an .npz file"),
    "run with a bad dump pattern": (
        ["run", "{hlo}", "--dump-to", "{folder}/d", "--dump-pass-re", "("],
        "regular expression",
    ),
    "dump into a file": (["compile", "{hlo}", "--dump-to", "{hlo}"], "can't write"),
    "compile without a file": (["compile"], "give a file"),
    "compile for a misspelt device": (["compile", "{hlo}", "--target", "h20"], "did you mean"),
    "compile to a misspelt stage": (["compile", "{hlo}", "--stage", "ptz"], "did you mean 'ptx'?"),
    "compile to a stage of the other target": (["compile", "{hlo}", "--target", "cpu", "--stage", "ptx"], "its stages"),
    "cubin on a terminal": (["compile", "{hlo}", "--stage", "cubin"], "-o OUT.cubin"),
    "compile into a missing folder": (["compile", "{hlo}", "-o", "{folder}/no/x.ptx"], "can't write"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_status_2_with_help_and_no_output(
    misuse: str, hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, hint = MISUSES[misuse]
    status, out, err = run(capsys, *(w.format(hlo=hlo, folder=tmp_path) for w in words))
    assert (status, out) == (2, "")
    assert hint in err


def test_one_bad_file_of_two_is_status_2_and_the_other_runs(
    hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.hlo"
    bad.write_text(HLO.replace("tanh", "tahn"))
    status, out, err = run(capsys, "run", str(bad), hlo, "--iterations", "1")
    assert status == 2
    assert "match" in out
    assert "did you mean 'tanh'?" in err


def test_json_has_an_object_for_a_file_that_fails(hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.hlo"
    bad.write_text(HLO.replace("tanh", "tahn"))
    status, out, err = run(capsys, "run", str(bad), hlo, "--iterations", "1", "--json")
    assert status == 2
    failed, ran = (json.loads(line) for line in out.splitlines())
    assert failed["module"] == str(bad)
    assert failed["error"]["code"] == "WS0203"
    assert failed["error"]["file"] == str(bad)
    assert failed["error"]["help"] == "did you mean 'tanh'?"
    assert ran["match"] is True
    assert "unknown opcode" in err


def test_arrays_of_no_stated_type_are_refused(hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """numpy writes the types of ml_dtypes as bytes and forgets which they were."""
    path = tmp_path / "x.npz"
    np.savez(path, **{"0": np.ones(4, ml_dtypes.bfloat16)})
    status, out, err = run(capsys, "run", hlo, "--input", str(path))
    assert (status, out) == (2, "")
    assert "of which type" in err
    assert '{"0": "bf16"}' in err


def test_a_difference_is_status_1(
    hlo: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict must come from the comparison: a kernel that is wrong on purpose has to be caught."""
    honest = expand_math.run

    def wrong(module: Operation, **options: bool) -> None:
        for op in list(module.walk()):
            if op.name == "math.tanh":
                op.replace_by(op.operands)
        honest(module, **options)

    monkeypatch.setattr(expand_math, "run", wrong)
    lookup.cache_clear()
    try:
        status, out, _ = run(capsys, "run", hlo, "--no-cache", "--iterations", "1")
    finally:
        monkeypatch.undo()
        lookup.cache_clear()
    assert status == 1
    assert "DIFFERS" in out
    assert "expected" in out


def test_a_bug_of_ours_is_status_70_with_a_repro_that_replays(
    hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("warpsmith.hlo.load.parse_hlo", broken)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    status, out, err = run(capsys, "run", hlo)
    assert (status, out) == (70, "")
    assert "internal error: ZeroDivisionError: on purpose" in err
    (path,) = tmp_path.glob("warpsmith-repro-*.zip")
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("command.json")) == ["warpsmith", "run", "tiny.hlo"]
        assert archive.read("tiny.hlo").decode() == HLO
        assert "on purpose" in archive.read("log.txt").decode()


@pytest.mark.slow
def test_save_repro_holds_the_command_and_its_files(
    hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, _ = run(capsys, "run", hlo, "--iterations", "1", "--seed", "5", "--save-repro", str(tmp_path / "r.zip"))
    assert status == 0
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        archive.extractall(tmp_path / "replay")
    replay = subprocess.run(
        [sys.executable, "replay.py"], cwd=tmp_path / "replay", capture_output=True, text=True, check=False
    )
    assert replay.returncode == 0, replay.stderr
    assert "match" in replay.stdout


def replayed(folder: Path, archive: Path) -> subprocess.CompletedProcess[str]:
    """What the command of a repro prints, unpacked elsewhere."""
    with zipfile.ZipFile(archive) as found:
        found.extractall(folder)
    return subprocess.run(
        [sys.executable, "replay.py"], cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def command_in(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as found:
        return json.loads(found.read("command.json"))


@pytest.mark.parametrize("error", [InternalError("on purpose"), PassFailed("on purpose")])
@pytest.mark.parametrize("count", [1, 2])
def test_our_own_error_is_status_70_with_a_repro_whatever_the_number_of_files(
    error: Exception,
    count: int,
    hlo: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pass that refuses IR which the user hasn't written is a bug of ours as well."""

    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("warpsmith.hlo.load.parse_hlo", broken)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    status, out, err = run(capsys, "run", *[hlo] * count)
    assert (status, out) == (70, "")
    assert "this is a bug in Warpsmith" in err
    assert len(list(tmp_path.glob("warpsmith-repro-*.zip"))) == 1


def test_a_pass_that_refuses_the_users_own_ir_is_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise PassFailed("on purpose")

    ir = tmp_path / "f.mlir"
    ir.write_text("func.func @f() {\n  return\n}\n")
    monkeypatch.setattr("warpsmith.passes.manager.run_pipeline", broken)
    assert run(capsys, "opt", str(ir), "--passes", "cse")[0] == 2


@pytest.mark.slow
def test_a_repro_holds_what_came_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(HLO))
    archive = tmp_path / "r.zip"
    assert run(capsys, "run", "-", "--iterations", "1", "--json", "--save-repro", str(archive))[0] == 0
    done = replayed(tmp_path / "replay", archive)
    assert done.returncode == 0, done.stderr
    assert "match" in done.stdout


@pytest.mark.slow
def test_a_repro_keeps_every_option_and_files_of_one_name(
    hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options that decide the verdict must be in the replay; where the output goes mustn't."""
    other = tmp_path / "other" / "tiny.hlo"
    other.parent.mkdir()
    other.write_text(HLO.replace("HloModule tiny", "HloModule second"))
    words = ["--reference=none", "--iterations", "2", "--step-limit", "999999", "--abs-error", "1.5"]
    archive = tmp_path / "r.zip"
    status, _, _ = run(capsys, "run", hlo, str(other), *words, "--js", f"--save-repro={archive}")
    assert status == 0
    assert command_in(archive) == ["warpsmith", "run", "--no-cache", "tiny.hlo", "tiny.2.hlo", *words]
    done = replayed(tmp_path / "replay", archive)
    assert "tiny" in done.stdout
    assert "second" in done.stdout


def test_a_repro_leaves_out_where_the_results_go(hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive, output = tmp_path / "r.zip", tmp_path / "out.npz"
    assert run(capsys, "run", hlo, "--iterations", "1", "--out", str(output), "--save-repro", str(archive))[0] == 0
    assert command_in(archive) == ["warpsmith", "run", "--no-cache", "tiny.hlo", "--iterations", "1"]


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("not json", "isn't JSON"),
        ('["bf16"]', "isn't a JSON object of names"),
        ('{"0": 3}', "isn't a JSON object of names"),
        ('{"0": "bf17"}', "bf17"),
        ('{"0": "bf16"}', "elements of 1 bytes, bf16 has 2"),
    ],
)
def test_bad_dtypes_in_an_npz_are_the_users_to_mend(
    entry: str, hint: str, hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.npz"
    np.savez(file, **{"0": np.zeros(99, np.uint8), "dtypes": np.array(entry)})
    status, out, err = run(capsys, "run", hlo, "--input", str(file))
    assert (status, out) == (2, "")
    assert hint in err


@pytest.mark.parametrize("stage", ["hlo", "emitted", "lowered", "llvm"])
@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_ir_can_be_read_when_llvm_refuses_it(
    stage: str, target: str, hlo: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What LLVM dies of is what one wants to see then."""

    def refused(*_: object, **__: object) -> None:
        raise LoweringError("LLVM stopped")

    monkeypatch.setattr("warpsmith.backends.cpu.loader.KernelLoader.add", refused)
    monkeypatch.setattr("warpsmith.backends.nvptx.codegen.PtxBatch.add", refused)
    status, out, err = run(capsys, "compile", hlo, "--target", target, "--stage", stage)
    assert (status, err) == (0, "")
    assert {"hlo": "ENTRY", "emitted": "func.func", "lowered": "llvm.func", "llvm": "define"}[stage] in out
    last = "ptx" if target == "sm_90" else "asm"
    status, _, err = run(capsys, "compile", hlo, "--target", target, "--stage", last, "--no-cache")
    assert status == 2
    assert "LLVM stopped" in err


def test_a_dump_has_the_ir_when_llvm_refuses_it(
    hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise LoweringError("LLVM stopped")

    monkeypatch.setattr("warpsmith.backends.nvptx.codegen.PtxBatch.add", refused)
    assert run(capsys, "compile", hlo, "--dump-to", str(tmp_path / "d"))[0] == 2
    assert len(list((tmp_path / "d").glob("*.ll"))) == 1
    assert (tmp_path / "d" / "index.txt").exists()


def test_compile_without_the_cache_keeps_nothing_on_disk(
    hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Cache(tmp_path / "cache")
    monkeypatch.setattr("warpsmith.compiler.driver.default_cache", lambda: kept)
    words = ["compile", hlo, "--target", "cpu", "--dump-to", str(tmp_path / "d"), "--stage", "asm"]
    assert run(capsys, *words, "--no-cache")[0] == 0
    assert list(tmp_path.glob("cache/*.bin")) == []
    assert run(capsys, *words)[0] == 0
    assert len(list(tmp_path.glob("cache/*.bin"))) == 1


def test_a_cubin_counts_kernels_and_not_host_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sorts.hlo"
    file.write_text(
        """HloModule m
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[64] parameter(0) ROOT s = f32[64] sort(x), dimensions={0}, to_apply=less }
"""
    )
    status, _, err = run(capsys, "compile", str(file), "--stage", "cubin", "-o", str(tmp_path / "x.cubin"))
    assert status == 2
    assert "the module has 0 kernels" in err


def test_output_goes_into_pipes_and_through_links(hlo: str, tmp_path: Path) -> None:
    """A rename would replace the pipe, or the link."""
    real, link = tmp_path / "real.ptx", tmp_path / "link.ptx"
    real.write_text("old")
    link.symlink_to(real)
    assert main(["compile", hlo, "-o", str(link)]) == 0
    assert link.is_symlink()
    assert ".version" in real.read_text()
    assert main(["compile", hlo, "-o", os.devnull]) == 0
    assert not Path(os.devnull).is_file()


def test_values_left_out_are_made_up_when_asked_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dump without its constants couldn't be run, or nobody would know that its values aren't the real ones."""
    path = tmp_path / "elided.hlo"
    path.write_text("ENTRY e { a = f32[4] parameter(0)\n\n c = f32[4] constant({...})  ROOT r = f32[4] add(a, c) }\n")
    assert main(["run", str(path), "--json"]) == 2
    assert "elided.hlo:3:" in capsys.readouterr().err
    assert main(["run", str(path), "--json", "--fill-elided", "7"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["match"] is True
    assert "values of 1 constant made up (seed 7): c" in printed.err


def _hlo(folder: Path, body: str) -> str:
    file = folder / "m.hlo"
    file.write_text(f"HloModule m\nENTRY e {{ p = f32[64] parameter(0)  {body} }}\n")
    return str(file)


OVERFLOW = (
    "c = f32[] constant(1e30)  b = f32[64] broadcast(c), dimensions={}  x = f32[64] multiply(p, b)"
    " ROOT s = f32[64] exponential(x)"
)


@pytest.mark.parametrize("rule", [[], ["--abs-error", "1e-3"]])
@pytest.mark.parametrize("platform", ["cpu", "sim"])
def test_a_comparison_that_proves_nothing_is_status_3_and_no_match(
    platform: str, rule: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Infinities that agree with infinities would be called a match."""
    words = ["run", _hlo(tmp_path, OVERFLOW), "--platform", platform, "--iterations", "1", *rule]
    status, out, _ = run(capsys, *words)
    assert status == 3
    assert "NOTHING WAS COMPARED" in out
    status, out, _ = run(capsys, *words, "--json")
    found = json.loads(out)
    assert (status, found["match"], found["vacuous"]) == (3, None, [0])
    assert found["compared"] < 16 <= found["elements"]


def test_with_given_input_the_report_claims_no_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader would try to get the same run from a seed that had no part in it; nor are given inputs judged."""
    write_npz(str(tmp_path / "in.npz"), [np.full(64, 1e30, np.float32)])
    words = ["run", _hlo(tmp_path, OVERFLOW), "--input", str(tmp_path / "in.npz"), "--iterations", "1"]
    status, out, _ = run(capsys, *words)
    assert (status, "seed" in out, "given input" in out, "0 of 64 elements compared" in out) == (0, False, True, True)
    assert json.loads(run(capsys, *words, "--json")[1])["seed"] is None
