"""LLVM IR to PTX: IEEE arithmetic, wide loads, and a refusal in place of LLVM's abort."""

from __future__ import annotations

import re

import pytest

from warpsmith.backends.llvm import isolate as llvm_isolate
from warpsmith.backends.nvptx import codegen as nvptx_codegen
from warpsmith.backends.nvptx import ptxas
from warpsmith.errors import InternalError, LoweringError, UnknownTarget

SMS = ["sm_80", "sm_90", "sm_100"]

VECTOR = """
define ptx_kernel void @k(ptr noalias align 16 %a, ptr noalias align 16 %o) #0 {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr <4 x float>, ptr %a, i32 %t
  %x = load <4 x float>, ptr %p, align 16, !invariant.load !0
  %d = fdiv <4 x float> splat (float 1.0), %x
  %r = getelementptr <4 x float>, ptr %o, i32 %t
  store <4 x float> %d, ptr %r, align 16
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
attributes #0 = { "nvvm.reqntid"="128,1,1" }
!0 = !{}
"""

TYPES = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}


def function(kind: str, body: str, declarations: str = "") -> str:
    return (
        f"{declarations}\ndefine ptx_kernel void @k(ptr %p) {{\n  %q = getelementptr {kind}, ptr %p, i32 1\n"
        f"  %x = load {kind}, ptr %p\n  %y = load {kind}, ptr %q\n{body}\n  store {kind} %r, ptr %p\n  ret void\n}}\n"
    )


@pytest.mark.parametrize("sm", SMS)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_a_multiply_and_an_add_stay_two_roundings(kind: str, sm: str) -> None:
    spelled = TYPES[kind]
    body = f"  %m = fmul {spelled} %x, %y\n  %r = fadd {spelled} %m, %y"
    ptx = nvptx_codegen.ptx_from_llvm(function(spelled, body), sm)
    assert f"mul.rn.{kind}" in ptx
    assert f"add.rn.{kind}" in ptx
    assert "fma" not in ptx


@pytest.mark.parametrize("sm", SMS)
def test_division_and_square_root_are_ieee_and_keep_subnormals(sm: str) -> None:
    body = "  %d = fdiv float %x, %y\n  %r = call float @llvm.sqrt.f32(float %d)"
    ptx = nvptx_codegen.ptx_from_llvm(function("float", body, "declare float @llvm.sqrt.f32(float)"), sm)
    assert "div.rn.f32" in ptx
    assert "sqrt.rn.f32" in ptx
    assert "ftz" not in ptx


def test_aligned_invariant_loads_are_one_wide_instruction() -> None:
    ptx = nvptx_codegen.ptx_from_llvm(VECTOR, "sm_90")
    assert re.search(r"ld\.global\.nc\.v(4\.b32|2\.b64)", ptx)
    assert "st.global.v4.b32" in ptx
    assert ".reqntid 128" in ptx


def test_sm_100_has_256_bit_loads() -> None:
    text = VECTOR.replace("<4 x float>", "<8 x float>").replace("align 16", "align 32")
    assert re.search(r"ld\.global\.nc\.v(8\.b32|4\.b64)", nvptx_codegen.ptx_from_llvm(text, "sm_100"))


@pytest.mark.parametrize("sm", ["sm_75", *SMS, "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"])
def test_the_header_names_target_and_version(sm: str) -> None:
    version = nvptx_codegen.ptx_version_of(sm)
    ptx = nvptx_codegen.ptx_from_llvm(VECTOR, sm)
    assert f".version {version // 10}.{version % 10}" in ptx
    assert f".target {sm}\n" in ptx


@pytest.mark.parametrize("sm", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"])
def test_the_least_version_is_one_that_llvm_takes(sm: str) -> None:
    for version in range(60, 91):
        try:
            nvptx_codegen.ptx_version_of(sm, version)
        except UnknownTarget:
            continue
        ptx = llvm_isolate.run_isolated(nvptx_codegen.ptx_code, VECTOR, sm=sm, ptx_version=version).decode()
        assert f".target {sm}" in ptx
        return
    pytest.fail("no version was allowed")


@pytest.mark.parametrize(
    ("sm", "version"), [("sm_91", None), ("h100", None), ("sm_90a", 78), ("sm_100", 80), ("sm_80", 99)]
)
def test_targets_that_llvm_would_die_on_are_refused(sm: str, version: int | None) -> None:
    with pytest.raises(UnknownTarget):
        nvptx_codegen.ptx_from_llvm(VECTOR, sm, version)


DEADLY = ["exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan"]
DEADLY += ["pow", "atan2"]


@pytest.mark.parametrize("name", DEADLY)
def test_what_llvm_dies_on_is_an_error(name: str) -> None:
    two = name in ("pow", "atan2")
    arguments, values = ("float, float", "float %x, float %y") if two else ("float", "float %x")
    text = function(
        "float", f"  %r = call float @llvm.{name}.f32({values})", f"declare float @llvm.{name}.f32({arguments})"
    )
    with pytest.raises(LoweringError):
        nvptx_codegen.ptx_from_llvm(text, "sm_90")


def test_an_unknown_intrinsic_is_named() -> None:
    text = function("float", "  %r = call float @llvm.foo.f32(float %x)", "declare float @llvm.foo.f32(float)")
    with pytest.raises(LoweringError, match=r"llvm\.foo\.f32"):
        nvptx_codegen.ptx_from_llvm(text, "sm_90")


def test_a_libdevice_function_that_was_not_linked_is_named() -> None:
    text = function("float", "  %r = call float @__nv_expf(float %x)", "declare float @__nv_expf(float)")
    with pytest.raises(LoweringError, match="__nv_expf"):
        nvptx_codegen.ptx_from_llvm(text, "sm_90")


def test_text_that_llvm_refuses_is_our_bug() -> None:
    with pytest.raises(InternalError):
        nvptx_codegen.ptx_from_llvm("junk", "sm_90")


UNARY = ["fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round"]
BINARY = ["copysign", "minimum", "maximum", "minnum", "maxnum"]
INTEGER = ["smax", "smin", "umax", "umin", "sadd.sat", "uadd.sat", "ssub.sat", "usub.sat"]


def module_of(name: str, suffix: str) -> str:
    kind = TYPES.get(suffix, suffix)
    full = f"llvm.{name}.{suffix}"
    if name in UNARY:
        return function(kind, f"  %r = call {kind} @{full}({kind} %x)", f"declare {kind} @{full}({kind})")
    return function(
        kind, f"  %r = call {kind} @{full}({kind} %x, {kind} %y)", f"declare {kind} @{full}({kind}, {kind})"
    )


CASES = [(name, suffix) for name in UNARY + BINARY for suffix in TYPES]
CASES += [(name, suffix) for name in INTEGER for suffix in ("i8", "i16", "i32", "i64")]


@pytest.mark.parametrize("sm", SMS)
def test_every_tested_intrinsic_compiles_without_a_call(sm: str) -> None:
    """In a worker, so that a wrong row of the table fails this test and not the whole run."""
    for name, suffix in CASES:
        ptx = llvm_isolate.run_isolated(nvptx_codegen.ptx_code, module_of(name, suffix), sm=sm).decode()
        assert "call" not in ptx, (name, suffix)


@pytest.mark.parametrize("sm", ["sm_80", "sm_90a", "sm_100"])
def test_ptxas_takes_the_text(sm: str) -> None:
    try:
        ptxas.find_ptxas()
    except ptxas.ToolMissing as missing:
        pytest.skip(missing.cause)
    cubin = ptxas.assemble(nvptx_codegen.ptx_from_llvm(VECTOR, sm), sm)
    assert cubin.data[:4] == b"\x7fELF"
    assert [kernel.name for kernel in cubin.kernels] == ["k"]
    assert 0 < cubin.kernels[0].registers <= 64
