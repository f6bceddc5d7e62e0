"""`warpsmith run` and `warpsmith compile`: output, exit status, files, and every misuse."""

from __future__ import annotations

import json
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
from warpsmith.ir.core import Operation
from warpsmith.passes import expand_math
from warpsmith.passes.manager import lookup

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
    for word in ("kernel", "compile", "GB/s", "ulp", "seed 0"):
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
    assert "no GPU here" in out
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
    "compile without a file": (["compile"], "give one HLO file"),
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

    monkeypatch.setattr("warpsmith.hlo.parser.parse_hlo", broken)
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
