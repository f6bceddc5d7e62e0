"""The IR that the loop emitter gives for GELU is the published walk-through's; names, ABI and places are kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warpsmith.ir.dialects
from warpsmith.devices import device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.errors import UnsupportedFusion, UsageError
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.dialects import func
from warpsmith.ir.text.printer import print_op

assert warpsmith.ir.dialects.arith

GELU = """HloModule m:

gelu {
  %param = bf16[6,512,4096] parameter(0)
  %constant_0 = bf16[] constant(0.5)
  %bcast_0 = bf16[6,512,4096] broadcast(bf16[] %constant_0), dimensions={}
  %constant_1 = bf16[] constant(1)
  %bcast_1 = bf16[6,512,4096] broadcast(bf16[] %constant_1), dimensions={}
  %constant_2 = bf16[] constant(0.79785)
  %bcast_2 = bf16[6,512,4096] broadcast(bf16[] %constant_2), dimensions={}
  %constant_3 = bf16[] constant(0.044708)
  %bcast_3 = bf16[6,512,4096] broadcast(bf16[] %constant_3), dimensions={}
  %square = bf16[6,512,4096] multiply(bf16[6,512,4096] %param, bf16[6,512,4096] %param)
  %cube = bf16[6,512,4096] multiply(bf16[6,512,4096] %square, bf16[6,512,4096] %param)
  %multiply_3 = bf16[6,512,4096] multiply(bf16[6,512,4096] %cube, bf16[6,512,4096] %bcast_3)
  %add_1 = bf16[6,512,4096] add(bf16[6,512,4096] %param, bf16[6,512,4096] %multiply_3)
  %multiply_2 = bf16[6,512,4096] multiply(bf16[6,512,4096] %add_1, bf16[6,512,4096] %bcast_2)
  %tanh_0 = bf16[6,512,4096] tanh(bf16[6,512,4096] %multiply_2)
  %add_0 = bf16[6,512,4096] add(bf16[6,512,4096] %tanh_0, bf16[6,512,4096] %bcast_1)
  %multiply_1 = bf16[6,512,4096] multiply(bf16[6,512,4096] %add_0, bf16[6,512,4096] %bcast_0)
  ROOT %multiply_0 = bf16[6,512,4096] multiply(bf16[6,512,4096] %param, bf16[6,512,4096] %multiply_1)
}

ENTRY main {
  %param = bf16[6,512,4096] parameter(0)
  ROOT fusion = bf16[6,512,4096] fusion(%param), kind=kLoop, calls=gelu
}
"""

# The walk-through's listing, without attributes of functions and arguments.
MAIN = """
%thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}
%block_id_x = gpu.block_id  x {xla.range = [0 : index, 24575 : index]}
%xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2) \
in #map iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {
%pure_call = xla_gpu.pure_call @gelu(%input, %dim0, %dim1, %dim2) \
: (tensor<6x512x4096xbf16>, index, index, index) -> bf16
%inserted = tensor.insert %pure_call into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
xla_gpu.yield %inserted : tensor<6x512x4096xbf16>
}
return %xla_loop : tensor<6x512x4096xbf16>
}
"""
BODY = """
%extracted = tensor.extract %arg0[%i, %j, %k] : tensor<6x512x4096xbf16>
%0 = arith.mulf %extracted, %extracted : bf16
%1 = arith.mulf %0, %extracted : bf16
%2 = arith.mulf %1, %cst_2 : bf16
%3 = arith.addf %extracted, %2 : bf16
%4 = arith.mulf %3, %cst_1 : bf16
%5 = math.tanh %4 : bf16
%6 = arith.addf %5, %cst_0 : bf16
%7 = arith.mulf %6, %cst : bf16
%8 = arith.mulf %extracted, %7 : bf16
return %8 : bf16
}
"""
MAP = (
    "(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, "
    "(bl_x mod 8) * 512 + th_x * 4 + vector_index), "
    "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
)


def kernel(text: str, target: str = "sm_90", file: str = "<string>", numerics: str = "strict") -> EmittedKernel:
    return emit(parse_hlo(text, file).entry.root, device(target), numerics=numerics)


def stripped(module: Operation) -> str:
    return "\n".join(line.strip() for line in print_op(module).splitlines())


def test_gelu_is_the_walk_throughs_listing() -> None:
    """Wrong: an op, its order, a name, or a map that the published text has otherwise."""
    found = kernel(GELU)
    text = stripped(found.module)
    assert MAIN.strip() in text
    assert BODY.strip() in text
    constants = re.findall(r"(%cst\w*) = arith.constant (\S+) : bf16", text)
    assert [name for name, _ in constants] == ["%cst", "%cst_0", "%cst_1", "%cst_2"]
    assert [float(value) for _, value in constants] == pytest.approx([0.5, 1.0, 0.796875, 4.46777e-2], rel=1e-5)
    assert found.origin.maps == (("thread -> multiply_0", MAP),)
    launch = found.launch
    assert (launch.grid, launch.block, launch.unroll, launch.index_bits) == (
        (24576, 1, 1),
        (128, 1, 1),
        4,
        32,
    )


def test_gelu_has_one_function_beside_the_entry() -> None:
    functions = list(func.functions(kernel(GELU).module))
    assert [op.str_attr("sym_name") for op in functions] == ["main", "gelu"]
    assert functions[1].str_attr("sym_visibility") == "private"


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "RTX A6000", "cpu"])
def test_gelu_verifies_on_every_target(target: str) -> None:
    verify(kernel(GELU, target).module)


def test_abi_attributes_of_the_entry() -> None:
    """One argument a buffer: its slice, alignment and size; inputs are never written."""
    entry = func.entry(kernel(GELU).module)
    inputs, outputs = func.arg_attributes(entry)
    size = 6 * 512 * 4096 * 2
    for number, found in enumerate((inputs, outputs)):
        values = {name: value.value for name, value in found.items() if isinstance(value, at.IntegerAttr)}
        assert values == {"xla.slice_index": number, "llvm.align": 16, "llvm.dereferenceable": size}
    assert "xla.invariant" in inputs
    assert "xla.invariant" not in outputs
    assert entry.str_attr("warpsmith.target") == "sm_90"
    assert entry.str_attr("warpsmith.emitter") == "loop"


def test_ops_remember_the_instruction_and_line_they_come_from(tmp_path: Path) -> None:
    path = str(tmp_path / "gelu.hlo")
    found = kernel(GELU, file=path).module
    (tanh,) = [op for op in found.walk() if op.name == "math.tanh"]
    line = next(i for i, text in enumerate(GELU.splitlines(), 1) if "tanh_0 =" in text)
    assert (tanh.location.names, tanh.location.file, tanh.location.line) == (("tanh_0",), path, line)


def test_cpu_takes_one_flat_loop_for_elementwise_code() -> None:
    """Work groups are neighbouring chunks of the linear index; together they cover every element."""
    found = kernel(GELU, "cpu")
    assert found.launch.index_bits == 64
    assert found.launch.workgroups * found.launch.chunk == 6 * 512 * 4096
    assert found.launch.chunk % 64 == 0
    (loop,) = [op for op in found.module.walk() if op.name == "xla_gpu.loop"]
    assert len(loop.operands) == 2
    assert found.origin.maps[0][1].startswith("(workgroup_id)[i] -> ")


def test_cpu_nests_loops_in_memory_order_for_a_transpose() -> None:
    """The innermost loop runs over neighbours in the output's memory."""
    text = """HloModule m
f {
  p = f32[1000,512]{0,1} parameter(0)
  ROOT t = f32[512,1000]{0,1} transpose(p), dimensions={1,0}
}
ENTRY e {
  p = f32[1000,512]{0,1} parameter(0)
  ROOT r = f32[512,1000]{0,1} fusion(p), kind=kLoop, calls=f
}"""
    ((_, map),) = kernel(text, "cpu").origin.maps
    assert re.match(r"\(workgroup_id\)\[i, j\] -> \(j, ", map)


def test_several_roots_are_computed_before_the_first_insert() -> None:
    """An output may share memory with an input, so no write may come before the last read."""
    text = """HloModule m
f {
  p = f32[64] parameter(0)
  a = f32[64] negate(p)
  b = f32[64] exponential(p)
  ROOT t = (f32[64], f32[64]) tuple(a, b)
}
ENTRY e {
  p = f32[64] parameter(0)
  ROOT r = (f32[64], f32[64]) fusion(p), kind=kLoop, calls=f
}"""
    for target in ("sm_90", "cpu"):
        (loop,) = [op for op in kernel(text, target).module.walk() if op.name == "xla_gpu.loop"]
        names = [op.name for op in loop.body]
        assert names == ["xla_gpu.pure_call", "tensor.insert", "tensor.insert", "xla_gpu.yield"]


def test_unsupported_op_names_itself_its_place_and_a_way_out() -> None:
    text = """HloModule m
f {
  p = f32[8] parameter(0)
  c = f32[8] cholesky(p)
  ROOT r = f32[8] negate(c)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] fusion(p), kind=kLoop, calls=f
}""".replace("f32[8]", "f32[8,8]")
    with pytest.raises(UnsupportedFusion) as caught:
        kernel(text, file="x.hlo")
    message = str(caught.value)
    assert message.startswith("x.hlo:4:")
    assert "'cholesky'" in message
    assert "help: move 'cholesky' out of the fusion" in message


def test_a_scatter_root_is_the_scatter_emitters_on_both_machines() -> None:
    text = """HloModule m
set { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
f {
  x = f32[8] parameter(0)
  i = s32[4,1] parameter(1)
  u = f32[4,1] parameter(2)
  ROOT r = f32[8] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=set
}
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[4,1] parameter(1)
  u = f32[4,1] parameter(2)
  ROOT r = f32[8] fusion(x, i, u), kind=kLoop, calls=f
}"""
    assert [kernel(text, target=target).origin.emitter for target in ("cpu", "sm_90")] == ["scatter", "scatter"]


def test_numerics_is_checked_and_recorded() -> None:
    with pytest.raises(UsageError):
        kernel(GELU, numerics="fast")
    entry = func.entry(kernel(GELU, numerics="xla").module)
    assert entry.str_attr("warpsmith.numerics") == "xla"


def test_a_preferred_emitter_that_is_missing_is_reported() -> None:
    """A transpose that wants a tile still runs; the report says which emitter it should have had."""
    text = """HloModule m
f {
  p = f32[64,64] parameter(0)
  ROOT t = f32[64,64] transpose(p), dimensions={1,0}
}
ENTRY e {
  p = f32[64,64] parameter(0)
  ROOT r = f32[64,64] fusion(p), kind=kLoop, calls=f
}"""
    found = kernel(text, "cpu")
    assert found.origin.analysis.emitter == "transpose"
    assert found.origin.emitter == "loop" or found.origin.emitter == "transpose"
    if found.origin.emitter == "loop":
        assert "transpose" in {each.emitter for each in found.origin.refused}
