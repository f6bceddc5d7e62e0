"""What the simulator makes of blocks with branches and of the llvm dialect, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from simt.kernels import kernel, run

from warpsmith.errors import SimulationError
from warpsmith.ir.text.parser import parse_module
from warpsmith.simt import run_kernel


def test_blocks_and_branches_join_again() -> None:
    """A loop over t iterations, even ones adding 1, odd ones 10; what it carries is read after it."""
    body = """
      cf.br ^head(%c0, %c0 : index, index)
    ^head(%i: index, %a: index):
      %more = arith.cmpi slt, %i, %t : index
      cf.cond_br %more, ^body, ^exit
    ^body:
      %odd = arith.andi %i, %c1 : index
      %is_odd = arith.cmpi eq, %odd, %c1 : index
      cf.cond_br %is_odd, ^one, ^two
    ^one:
      %ten = arith.constant 10 : index
      %p = arith.addi %a, %ten : index
      cf.br ^join(%p : index)
    ^two:
      %q = arith.addi %a, %c1 : index
      cf.br ^join(%q : index)
    ^join(%n: index):
      %next = arith.addi %i, %c1 : index
      cf.br ^head(%next, %n : index, index)
    ^exit:
      %v = arith.index_cast %a : index to i32
      memref.store %v, %out[%t] : memref<8xi32>"""
    assert run(kernel(body, "8xi32")) == [0, 1, 11, 12, 22, 23, 33, 34]


LLVM = """
llvm.mlir.global internal constant @k(dense<[10, 20, 30, 40]> : vector<4xi32>)
    {alignment = 16 : i64} : !llvm.array<4 x i32>
llvm.func external @main(%in: !llvm.ptr, %out: !llvm.ptr) attributes {
    nvvm.kernel, xla.entry, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.block = array<i64: 4, 1, 1>} {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %g = llvm.mlir.addressof @k : !llvm.ptr
  %p = llvm.getelementptr inbounds %g[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> i32
  %q = llvm.getelementptr inbounds %in[%t] : (!llvm.ptr, i32) -> !llvm.ptr, OFFSET
  %y = llvm.load %q {alignment = 4 : i64} : !llvm.ptr -> i32
  %s = llvm.add %x, %y : i32
  %r = llvm.getelementptr inbounds %out[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %s, %r {alignment = 4 : i64} : i32, !llvm.ptr
  llvm.return
}
"""


def test_addresses_count_in_bytes() -> None:
    module = parse_module(LLVM.replace("OFFSET", "i32"))
    (result,) = run_kernel(module, [np.array([1, 2, 3, 4], np.int32)], [(4, np.dtype(np.int32))])
    assert result.tolist() == [11, 22, 33, 44]


def test_a_bad_address_is_an_error() -> None:
    source = [np.array([1, 2, 3, 4], np.int32)]
    for element, message in (("i64", "at byte 16, which is outside of 'input0'"), ("i16", "isn't a multiple of 4")):
        with pytest.raises(SimulationError, match=message):
            run_kernel(parse_module(LLVM.replace("OFFSET", element)), source, [(4, np.dtype(np.int32))])


def test_bare_pointers_need_the_outputs_sizes() -> None:
    with pytest.raises(SimulationError, match="bare pointers"):
        run_kernel(parse_module(LLVM.replace("OFFSET", "i32")), [np.zeros(4, np.int32)], 1)


def test_an_element_that_nobody_writes_is_no_zero() -> None:
    body = """
      %x = memref.load %in[%c0] : memref<8xf32>
      memref.store %x, %out[%c0] : memref<2xf32>"""
    assert run(kernel(body, "2xf32", threads=1))[1] != 0


def test_an_unknown_op_is_named() -> None:
    module = parse_module(kernel('"test.mystery"() : () -> ()', "8xf32"), allow_unregistered=True)
    with pytest.raises(SimulationError, match=r"test\.mystery"):
        run_kernel(module, [np.zeros(8, np.float32)], 1)
