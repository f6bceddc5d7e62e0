"""LLVM IR text to loaded machine code: results, refusals, and what the code must not contain."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.errors import InternalError, LoweringError, UnknownTarget

AXPY = """
define void @axpy(ptr %argv, i64 %begin, i64 %end) {
entry:
  %xs = load ptr, ptr %argv
  %p1 = getelementptr ptr, ptr %argv, i64 1
  %ys = load ptr, ptr %p1
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %loop]
  %xp = getelementptr <16 x float>, ptr %xs, i64 %i
  %yp = getelementptr <16 x float>, ptr %ys, i64 %i
  %x = load <16 x float>, ptr %xp, align 4
  %m = fmul <16 x float> %x, splat (float 3.0)
  %s = fadd <16 x float> %m, %x
  store <16 x float> %s, ptr %yp, align 4
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""


def unary(name: str, kind: str, result: str | None = None, extra: str = "") -> str:
    """A module whose function applies one intrinsic to one value."""
    result = result or kind
    extra_types = ", i1" if extra.startswith(", i1") else ", i32" if extra else ""
    return (
        f"declare {result} @{name}({kind}{extra_types})\n"
        f"define {result} @f({kind} %x) {{\n  %y = call {result} @{name}({kind} %x{extra})\n  ret {result} %y\n}}\n"
    )


def run_axpy(code: llvm_jit.LoadedCode, x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    argv = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
    code.kernel("axpy")(ctypes.addressof(argv), 0, x.size // 16)
    return y


def test_compiled_code_computes_what_the_ir_says() -> None:
    x = np.random.default_rng(0).standard_normal(160).astype(np.float32)
    code = llvm_jit.load_object(llvm_jit.compile_object(AXPY))
    np.testing.assert_array_equal(run_axpy(code, x), x * np.float32(3) + x)


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
def test_every_level_gives_the_same_bits(opt: int) -> None:
    x = np.random.default_rng(1).standard_normal(64).astype(np.float32)
    code = llvm_jit.load_object(llvm_jit.compile_object(AXPY, opt=opt))
    np.testing.assert_array_equal(run_axpy(code, x), x * np.float32(3) + x)


def test_a_multiply_and_an_add_are_not_contracted() -> None:
    text = llvm_jit.assembly(AXPY)
    assert "fmadd" not in text
    assert "fmla" not in text


def test_the_full_vector_register_is_used() -> None:
    triple, _, _, bits = llvm_jit.host_target()
    if not triple.startswith("x86_64") or bits != 512:
        pytest.skip("needs a CPU with AVX-512")
    assert "zmm" in llvm_jit.assembly(AXPY)


def test_other_cpus_can_be_compiled_for() -> None:
    if not llvm_jit.host_target()[0].startswith("x86_64"):
        pytest.skip("names x86 CPUs")
    text = llvm_jit.assembly(AXPY, cpu="haswell")
    assert "zmm" not in text
    assert "ymm" in text


def test_other_architectures_can_be_assembled_for() -> None:
    text = llvm_jit.assembly(AXPY, triple="aarch64-unknown-linux-gnu", cpu="neoverse-v1")
    assert "fmul" in text
    assert "fmla" not in text


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(UnknownTarget, match="abacus"):
        llvm_jit.assembly(AXPY, triple="abacus-unknown-linux-gnu")


FLOATS = ("fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round", "canonicalize")


@pytest.mark.parametrize("kind", ["f32:float", "f64:double", "v16f32:<16 x float>", "v8f64:<8 x double>"])
@pytest.mark.parametrize("name", FLOATS)
def test_tested_float_intrinsics_need_no_library(name: str, kind: str) -> None:
    suffix, _, spelled = kind.partition(":")
    data = llvm_jit.compile_object(unary(f"llvm.{name}.{suffix}", spelled)).data
    assert llvm_jit.undefined_symbols(data) == []


@pytest.mark.parametrize("suffix", ["i8", "i32", "i64", "v16i32"])
@pytest.mark.parametrize("name", ["ctpop", "bitreverse", "ctlz", "cttz", "abs"])
def test_tested_integer_intrinsics_need_no_library(name: str, suffix: str) -> None:
    spelled = "<16 x i32>" if suffix == "v16i32" else suffix
    extra = ", i1 false" if name in ("ctlz", "cttz", "abs") else ""
    data = llvm_jit.compile_object(unary(f"llvm.{name}.{suffix}", spelled, extra=extra)).data
    assert llvm_jit.undefined_symbols(data) == []


@pytest.mark.parametrize("name", ["llvm.tanh.f32", "llvm.exp.v16f32", "llvm.nosuch.f32"])
def test_untested_intrinsics_are_refused_by_name(name: str) -> None:
    kind = "<16 x float>" if "v16" in name else "float"
    with pytest.raises(LoweringError, match=name.replace(".", r"\.")):
        llvm_jit.compile_object(unary(name, kind))


def test_untested_intrinsics_are_listed_once_each_in_order() -> None:
    text = (
        "declare float @llvm.tanh.f32(float)\ndeclare float @llvm.fma.f32(float, float, float)\n"
        "declare noundef float @llvm.cos.f32(float) #0\ndeclare float @other(float)\n"
    )
    assert llvm_jit.untested_intrinsics(text) == ["llvm.tanh.f32", "llvm.cos.f32"]


@pytest.mark.parametrize(
    "text", ["junk", "define void @k() { %a = fadd i32 1, 2\n ret void }", "define void @k() { ret i32 0 }"]
)
def test_text_that_llvm_refuses_is_our_bug_with_llvms_words(text: str) -> None:
    with pytest.raises(InternalError, match=r"error:|return"):
        llvm_jit.compile_object(text)


def test_a_missing_symbol_is_named() -> None:
    text = (
        "declare float @nosuch(float)\ndefine float @k(float %x) { %c = call float @nosuch(float %x)\n ret float %c }"
    )
    code = llvm_jit.load_object(llvm_jit.compile_object(text))
    with pytest.raises(LoweringError, match="nosuch"):
        code.address("k")


def test_a_function_that_is_not_there_is_named() -> None:
    code = llvm_jit.load_object(llvm_jit.compile_object(AXPY))
    with pytest.raises(LoweringError, match="gelu"):
        code.address("gelu")


@pytest.mark.parametrize("cut", [0, 3, 100, -200])
def test_a_damaged_object_is_refused(cut: int) -> None:
    with pytest.raises(LoweringError):
        llvm_jit.load_object(llvm_jit.compile_object(AXPY).data[:cut])


def test_code_lives_as_long_as_its_owner_and_no_other() -> None:
    x = np.ones(16, np.float32)
    data = llvm_jit.compile_object(AXPY)
    kept = llvm_jit.load_object(data)
    for _ in range(20):
        run_axpy(llvm_jit.load_object(data), x)
    gc.collect()
    np.testing.assert_array_equal(run_axpy(kept, x), np.full(16, 4, np.float32))


def test_optimised_ir_is_ir_again() -> None:
    text = llvm_jit.optimize_ir(AXPY)
    x = np.ones(16, np.float32)
    code = llvm_jit.load_object(llvm_jit.compile_object(text))
    np.testing.assert_array_equal(run_axpy(code, x), np.full(16, 4, np.float32))
