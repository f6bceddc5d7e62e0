"""Many kernels at once: the same code as one by one, compiled once each, with errors that stay errors."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from work import calls_of

import warpsmith as ws
from warpsmith.backends.cpu.loader import KernelLoader
from warpsmith.backends.llvm import isolate as llvm_isolate
from warpsmith.backends.nvptx.codegen import PtxBatch, ptx_from_llvm
from warpsmith.errors import LoweringError, UnsupportedFusion

ABORTS = """
declare float @llvm.tanh.f32(float)
define ptx_kernel void @k(ptr %p) {
  %x = load float, ptr %p
  %y = call float @llvm.tanh.f32(float %x)
  store float %y, ptr %p
  ret void
}
"""


def addition(constant: int) -> str:
    return f"define ptx_kernel void @k(ptr %p) {{\n  store i32 {constant}, ptr %p\n  ret void\n}}\n"


def chain(count: int) -> str:
    """A fusion of `count` ops, each of the two before it."""
    lines = ["%v0 = f32[64] negate(%p)", "%v1 = f32[64] abs(%p)"]
    lines += [f"%v{i} = f32[64] {'add' if i % 2 else 'maximum'}(%v{i - 1}, %v{i - 2})" for i in range(2, count)]
    lines[-1] = f"ROOT {lines[-1]}"
    body = "\n".join(lines)
    return (
        f"HloModule m\nf {{\n%p = f32[64] parameter(0)\n{body}\n}}\n"
        "ENTRY e {\n%x = f32[64] parameter(0)\nROOT %r = f32[64] fusion(%x), kind=kLoop, calls=f\n}\n"
    )


def test_ptx_of_a_batch_is_that_of_each_module_alone() -> None:
    texts = [addition(number) for number in range(12)]
    batch = PtxBatch("sm_90", 10_000)  # so many more to come that workers help
    for text in texts:
        batch.add(text)
    assert batch.results() == [ptx_from_llvm(text, "sm_90") for text in texts]


def test_a_module_that_kills_llvm_is_an_error_of_its_batch() -> None:
    batch = PtxBatch("sm_90", 2)
    batch.add(addition(1))
    batch.add(ABORTS)
    with pytest.raises(LoweringError, match="Cannot select"):
        batch.results()


def test_little_work_starts_no_worker() -> None:
    llvm_isolate.stop_workers()
    batch = llvm_isolate.object_batch(2)
    for number in (1, 2):
        batch.add(f"define i64 @k() {{\n  ret i64 {number}\n}}\n")
    assert len(batch.results()) == 2
    assert not llvm_isolate._teams.running


def test_equal_modules_are_compiled_once() -> None:
    text = "define i64 @k() {\n  ret i64 7\n}\n"
    loader = KernelLoader(3)
    for each in (text, text.replace("7", "8"), text):
        loader.add(each)
    first, second, third = loader.results()
    assert first is third
    assert first is not second


def test_many_fusions_compute_what_each_computes_alone() -> None:
    bodies = [
        f"f{i} {{\n%p = f32[100] parameter(0)\n%c = f32[] constant({i})\n"
        f"%b = f32[100] broadcast(%c), dimensions={{}}\nROOT %r = f32[100] add(%p, %b)\n}}\n"
        for i in range(20)
    ]
    calls = "\n".join(f"%r{i} = f32[100] fusion(%x), kind=kLoop, calls=f{i}" for i in range(20))
    types = ", ".join(["f32[100]"] * 20)
    text = (
        "HloModule m\n" + "\n".join(bodies) + f"ENTRY e {{\n%x = f32[100] parameter(0)\n{calls}\n"
        f"ROOT %t = ({types}) tuple({', '.join(f'%r{i}' for i in range(20))})\n}}\n"
    )
    x = np.arange(100, dtype=np.float32)
    for i, result in enumerate(ws.compile(ws.parse_hlo(text), cache=False)(x)):
        np.testing.assert_array_equal(result, x + i)


def test_garbage_collection_goes_on_after_a_compilation_and_after_a_failed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that goes on after an error would never free its cycles."""
    module = ws.parse_hlo(chain(4))
    assert gc.isenabled()
    ws.compile(module, cache=False)
    assert gc.isenabled()

    def refuse(*_: object, **__: object) -> None:
        raise UnsupportedFusion("on purpose")

    monkeypatch.setattr("warpsmith.compiler.lowering.emit", refuse)
    with pytest.raises(UnsupportedFusion):
        ws.compile(module, cache=False)
    assert gc.isenabled()


@pytest.mark.slow
def test_the_work_for_an_op_does_not_grow_with_the_fusion() -> None:
    """Quadratic work anywhere would make the large one take five times as much for each op."""

    def work_an_op(count: int) -> float:
        text = chain(count)
        return calls_of(lambda: ws.compile(ws.parse_hlo(text), cache=False)) / count

    work_an_op(20)
    assert work_an_op(1500) < 1.5 * work_an_op(300)
