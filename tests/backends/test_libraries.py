"""f64 functions come from libm here and from libdevice on a GPU; 16-bit floats need no functions at all."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.cpu.backend import Cpu
from warpsmith.backends.cpu.pipeline import FUSIONS
from warpsmith.backends.nvptx import codegen as nvptx_codegen
from warpsmith.backends.nvptx import libdevice
from warpsmith.compiler import compile
from warpsmith.devices import device
from warpsmith.emitters import emit
from warpsmith.errors import LoweringError
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.passes.library_calls import FUNCTIONS
from warpsmith.passes.manager import PassCall, run_pipeline
from warpsmith.schedule.schedule import make_schedule

needs_libdevice = pytest.mark.skipif(libdevice.find_libdevice() is None, reason="no libdevice here")
_RENAMED = {
    "math.cos": "cosine",
    "math.exp": "exponential",
    "math.expm1": "exponential-minus-one",
    "math.log1p": "log-plus-one",
    "math.sin": "sine",
}
_NOT_HLO = {"math.atan", "math.atan2", "math.exp2", "math.log10", "math.log2", "math.powf"}  # or of two operands
OPCODES = {op: _RENAMED.get(op, op.removeprefix("math.")) for op in FUNCTIONS if op not in _NOT_HLO}


def text_of(opcode: str, dtype: str = "f64", operands: int = 1, size: int = 33) -> str:
    parameters = "".join(f"p{i} = {dtype}[{size}] parameter({i})  " for i in range(operands))
    names = ", ".join(f"p{i}" for i in range(operands))
    return f"HloModule m\nf {{ {parameters} ROOT r = {dtype}[{size}] {opcode}({names}) }}"


def test_this_computers_libm_has_every_function() -> None:
    declared = "\n".join(
        f"declare double @{name}({', '.join(['double'] * (2 if name in ('pow', 'atan2') else 1))})"
        for name in FUNCTIONS.values()
    )
    table = ", ".join(f"ptr @{name}" for name in FUNCTIONS.values())
    code = f"{declared}\n@table = constant [{len(FUNCTIONS)} x ptr] [{table}]\n"
    assert llvm_jit.load_object(llvm_jit.compile_object(code)).address("table")  # a missing symbol is an error


@pytest.mark.parametrize("op", sorted(OPCODES))
def test_f64_on_this_computer_is_libm(op: str) -> None:
    """Against Python's math, which is the same C library: vectors and their tails alike."""
    x = np.linspace(1.0, 1.9, 33) if op == "math.acosh" else np.linspace(0.01, 0.98, 33)
    found = compile(parse_hlo(text_of(OPCODES[op])), cache=False)(x)[0]
    function = getattr(math, op.removeprefix("math."))
    wanted = np.array([function(float(v)) for v in x])
    np.testing.assert_array_max_ulp(found, wanted, 1)


@needs_libdevice
@pytest.mark.parametrize("op", sorted(OPCODES))
def test_libdevice_is_linked_in(op: str) -> None:
    text = compile(parse_hlo(text_of(OPCODES[op])), "sm_90").artifact("ptx")
    assert ".extern" not in text
    assert "__nv_" not in text  # inlined
    assert "__nvvm_reflect" not in text
    assert ".f64" in text


@needs_libdevice
def test_only_what_is_called_is_linked() -> None:
    one = compile(parse_hlo(text_of("exponential")), "sm_90").artifact("ptx")
    assert len(one) < 20_000  # the library's text is a megabyte
    plain = compile(parse_hlo(text_of("add", operands=2)), "sm_90").artifact("llvm")
    assert libdevice.called(plain) == []


def test_without_libdevice_the_op_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libdevice, "find_libdevice", lambda: None)
    with pytest.raises(LoweringError, match=r"tanh of f64 needs CUDA's libdevice") as caught:
        compile(parse_hlo(text_of("tanh")), "sm_90")
    assert caught.value.help is not None
    assert "CUDA_HOME" in caught.value.help


def test_libdevice_is_found_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tmp_path / "nvvm" / "libdevice" / "libdevice.10.bc"
    chosen.parent.mkdir(parents=True)
    chosen.write_bytes(b"")
    monkeypatch.delenv("WARPSMITH_LIBDEVICE", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert libdevice.find_libdevice() == chosen


def test_a_function_that_libdevice_lacks_is_refused() -> None:
    llvm = f"""target datalayout = "{nvptx_codegen.DATA_LAYOUT}"
target triple = "{nvptx_codegen.TRIPLE}"
declare double @__nv_nonsense(double)
define ptx_kernel void @main(ptr %a) {{
  %x = call double @__nv_nonsense(double 1.0)
  store double %x, ptr %a
  ret void
}}
"""
    with pytest.raises(LoweringError, match="__nv_nonsense"):
        nvptx_codegen.ptx_from_llvm(llvm, "sm_90")


# -------------------------------------------------------------------------------------------------------- 16-bit floats
def lowered(text: str, *, f16: bool) -> str:
    """LLVM IR for a processor without wide vectors; `f16`: and without f16 conversions."""
    (step,) = (s for s in make_schedule(wrap(parse_hlo(text))).steps if s.kind == "kernel")
    kernel = emit(step.instruction, device("cpu"))
    options = {
        "vectorize-cpu": {"vector_bits": 128, "nontemporal": False},
        "expand-math": {"fma": False},
        "expand-small-floats": {"f16": f16},
    }
    run_pipeline(kernel.module, [PassCall(name, options.get(name, {})) for name in FUSIONS])
    return Cpu(device("cpu")).code(kernel.module)


@pytest.mark.skipif(not llvm_jit.host_target()[0].startswith("x86_64"), reason="the plain processor here is an x86")
@pytest.mark.parametrize("opcode", ["add", "tanh", "maximum", "sqrt", "negate"])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8e4m3fn", "f8e5m2"])
def test_plain_x86_code_calls_no_conversion_functions(opcode: str, dtype: str) -> None:
    operands = 2 if opcode in ("add", "maximum") else 1
    code = llvm_jit.compile_object(lowered(text_of(opcode, dtype, operands), f16=True), cpu="x86-64", features="")
    assert llvm_jit.undefined_symbols(code.data) == []


@pytest.mark.skipif(not llvm_jit.host_target()[0].startswith("x86_64"), reason="the plain processor here is an x86")
def test_the_check_above_can_fail() -> None:
    code = llvm_jit.compile_object(lowered(text_of("add", "f16", 2), f16=False), cpu="x86-64", features="")
    assert any("hf" in name for name in llvm_jit.undefined_symbols(code.data))


def test_expanded_f16_code_computes_the_same() -> None:
    """Both kinds of code, run on this computer: every f16 number, doubled and rounded."""
    text = text_of("add", "f16", 2, size=1 << 16)
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    out = np.empty_like(x)
    with np.errstate(all="ignore"):
        wanted = x + x
    code = llvm_jit.load_object(llvm_jit.compile_object(lowered(text, f16=True)))
    pointers = np.array([a.ctypes.data for a in (x, x, out)], np.uint64)
    groups = emit(wrap(parse_hlo(text)).entry.root, device("cpu")).launch.workgroups
    code.kernel("main")(int(pointers.ctypes.data), 0, groups)
    nan = np.isnan(wanted)
    assert (np.isnan(out) == nan).all()
    assert (out.view(np.uint16)[~nan] == wanted.view(np.uint16)[~nan]).all()
