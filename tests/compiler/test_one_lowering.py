"""Compiling, bisection, explanations and the simulator share one lowering of each kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.backends import backend_of
from warpsmith.backends.base import Backend
from warpsmith.backends.nvptx.pipeline import FUSIONS, STRUCTURED
from warpsmith.compiler.bisection import bisect
from warpsmith.devices import device
from warpsmith.emitters import emit
from warpsmith.hlo.module import HloModule
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall
from warpsmith.report.explain.explanation import explain

TWICE = """HloModule twice
f { x = f32[256] parameter(0) ROOT y = f32[256] add(x, x) }
g { x = f32[256] parameter(0) ROOT y = f32[256] add(x, x) }
ENTRY e { x = f32[256] parameter(0) a = f32[256] fusion(x), kind=kLoop, calls=f
  ROOT b = f32[256] fusion(a), kind=kLoop, calls=g }"""
X = np.ones(256, np.float32)

WAYS: dict[str, Callable[[HloModule], object]] = {
    "compile": lambda m: ws.compile(m, "sm_90"),
    "explain": lambda m: explain(m, "sm_90"),
    "simulate": lambda m: ws.simulate(m, X, target="sm_90"),
    "simulate IR": lambda m: ws.simulate(m, X, target="sm_90", stage="buffers"),
    "cuda": lambda m: ws.compile(m, "sm_90").artifact("cuda"),
}


@pytest.fixture
def pipelines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PassCall, ...]]:
    """The passes of every lowering, as they happen."""
    found: list[tuple[PassCall, ...]] = []
    lower = Backend[Any].lower

    def counted(self: Backend[Any], kernel: Kernel[object], **options: Any) -> Any:
        lowered = lower(self, kernel, **options)
        found.append(lowered.calls)
        return lowered

    monkeypatch.setattr(Backend, "lower", counted)
    return found


@pytest.mark.parametrize(("way", "times"), [("compile", 1), ("explain", 1), ("simulate", 1), ("simulate IR", 1)])
def test_equal_fusions_are_lowered_once(way: str, times: int, pipelines: list[tuple[PassCall, ...]]) -> None:
    """If this failed, time would go into a kernel that is there already, and the two might differ."""
    WAYS[way](ws.parse_hlo(TWICE))
    assert len(pipelines) == times


def test_what_is_asked_of_an_executable_is_emitted_and_lowered_no_more(pipelines: list[tuple[PassCall, ...]]) -> None:
    """If this failed, a text might not be that of the code that runs."""
    exe = ws.compile(ws.parse_hlo(TWICE), "sm_90")
    texts = [exe.artifact(stage) for stage in ("hlo", "emitted", "lowered", "llvm", "ptx")]
    assert all(texts)
    assert len(pipelines) == 1


def test_all_run_the_same_passes(pipelines: list[tuple[PassCall, ...]]) -> None:
    """If this failed, bisection or an explanation would judge other code than what is compiled."""
    module = ws.parse_hlo(TWICE)
    for way in ("compile", "explain", "simulate"):
        WAYS[way](module)
    bisect(module, X, target="sm_90")
    assert all(each == pipelines[0] for each in pipelines)
    assert tuple(each.name for each in pipelines[0]) == FUSIONS
    assert FUSIONS[: len(STRUCTURED)] == STRUCTURED


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("stage", ["emitted", "lowered", "llvm"])
def test_an_artifact_is_what_the_command_prints(stage: str, target: str) -> None:
    """If this failed, `exe.artifact` and `compile --stage` would differ."""
    from warpsmith.compiler import stage_text

    module = ws.parse_hlo(TWICE)
    assert ws.compile(module, target).artifact(stage) == stage_text(module, stage, target)


def test_cuda_and_cubins_are_artifacts_as_the_command_has_them() -> None:
    """If this failed, an executable for a GPU would lack stages that its target has."""
    from warpsmith.compiler import stage_text

    module = ws.parse_hlo(TWICE)
    exe = ws.compile(module, "sm_90")
    assert exe.artifact("cuda") == stage_text(module, "cuda", "sm_90")
    with pytest.raises(ws.WarpsmithError, match="a cubin is binary"):
        exe.artifact("cubin")


def in_place(elements: int) -> HloModule:
    """A dynamic-update-slice whose buffer is large, and what it reads and writes small."""
    return ws.parse_hlo(f"""f {{ p = f32[{elements}] parameter(0) u = f32[64] parameter(1) i = s32[] parameter(2)
        ROOT r = f32[{elements}] dynamic-update-slice(p, u, i) }}
    ENTRY e {{ p = f32[{elements}] parameter(0) u = f32[64] parameter(1) i = s32[] parameter(2)
        ROOT r = f32[{elements}] fusion(p, u, i), kind=kLoop, calls=f }}""")


def test_stores_stream_by_what_moves_not_by_what_stays(pipelines: list[tuple[PassCall, ...]]) -> None:
    """If this failed, bisection of an update in place of 24 MiB would judge streaming stores that aren't compiled."""
    cpu = device("cpu")
    kernel = emit(in_place(6 << 20).entry.root, cpu)
    assert kernel.aliases
    assert sum(each.byte_size for each in kernel.arguments) > 24 << 20 > kernel.bytes_moved
    options = {each.name: each.options for each in backend_of(cpu).pipeline(kernel)}
    assert options["vectorize-cpu"]["nontemporal"] is False
