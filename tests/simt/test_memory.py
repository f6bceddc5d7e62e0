"""What the simulator makes of memory, vectors, and threads that exchange values.  Expected values by hand."""

from __future__ import annotations

import numpy as np
import pytest
from simt.kernels import kernel, run

from warpsmith.errors import SimulationError


def test_a_tensors_layout_says_where_its_elements_are() -> None:
    """Memory order 0..5 of a 2x3 column-major tensor: element (i, j) is at 2 j + i."""
    text = """
func.func @main(%in: tensor<2x3xf32, dense<[0, 1]> : tensor<2xi64>>, %out: tensor<6xf32>) -> tensor<6xf32> attributes {
    xla.entry, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.block = array<i64: 6, 1, 1>} {
  %t = gpu.thread_id x {xla.range = [0 : index, 5 : index]}
  %c3 = arith.constant 3 : index
  %i = arith.divui %t, %c3 : index
  %j = arith.remui %t, %c3 : index
  %x = tensor.extract %in[%i, %j] : tensor<2x3xf32, dense<[0, 1]> : tensor<2xi64>>
  %r = tensor.insert %x into %out[%t] : tensor<6xf32>
  return %r : tensor<6xf32>
}
"""
    assert run(text, np.arange(6, dtype=np.float32)) == [0, 2, 4, 1, 3, 5]


# -------------------------------------------------------------------------------------------------------------- vectors
def test_vector_loads_and_stores_move_neighbours() -> None:
    body = """
      %i = arith.muli %t, %c4 : index
      %v = vector.load %in[%i] : memref<8xf32>, vector<4xf32>
      %r = vector.shuffle %v, %v [3, 2, 1, 0] : vector<4xf32>, vector<4xf32>
      vector.store %r, %out[%i] : memref<8xf32>, vector<4xf32>"""
    assert run(kernel(body, "8xf32", threads=2)) == [3, 2, 1, 0, 7, 6, 5, 4]


def test_a_vector_that_leaves_its_buffer_is_an_error() -> None:
    body = """
      %i = arith.addi %t, %c4 : index
      %v = vector.load %in[%i] : memref<8xf32>, vector<4xf32>"""
    run(kernel(body, "8xf32", threads=1))
    with pytest.raises(SimulationError, match=r"vector\.load at index 5 of dim 0"):
        run(kernel(body, "8xf32", threads=2))


def test_an_access_less_aligned_than_it_claims_is_an_error() -> None:
    body = """
      %i = arith.muli %t, %c2 : index
      %v = vector.load %in[%i] {alignment = 16 : i64} : memref<8xf32>, vector<2xf32>"""
    run(kernel(body, "8xf32", threads=1))
    with pytest.raises(SimulationError, match="at byte 8, which isn't a multiple of 16"):
        run(kernel(body, "8xf32", threads=2))


def test_masked_lanes_touch_nothing() -> None:
    """Thread 0 moves 4 lanes, thread 1 three; the fourth would be in[8]."""
    body = """
      %i = arith.muli %t, %c5 : index
      %count = arith.subi %c4, %t : index
      %m = vector.create_mask %count : vector<4xi1>
      %pass = arith.constant dense<-1.0> : vector<4xf32>
      %x = vector.maskedload %in[%i], %m, %pass : memref<8xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      vector.maskedstore %out[%i], %m, %x : memref<9xf32>, vector<4xi1>, vector<4xf32>
      %last = vector.extract %x[3] : f32 from vector<4xf32>
      %eight = arith.addi %c8, %c0 : index
      %is_one = arith.cmpi eq, %t, %c1 : index
      scf.if %is_one {
        memref.store %last, %out[%eight] : memref<9xf32>
      }
      scf.if %is_one { } else {
        memref.store %last, %out[%c4] : memref<9xf32>
      }"""
    assert run(kernel(body, "9xf32", threads=2)) == [0, 1, 2, 3, 3, 5, 6, 7, -1]


def test_each_block_has_its_own_shared_memory_under_a_mask() -> None:
    """Wrong: the second block's lanes written to the first one's copy."""
    body = """
      %i = arith.muli %b, %c4 : index
      %s = xla_gpu.allocate_shared : memref<4xf32, 3>
      %m = vector.create_mask %c4 : vector<4xi1>
      %x = vector.load %in[%i] : memref<8xf32>, vector<4xf32>
      vector.maskedstore %s[%c0], %m, %x : memref<4xf32, 3>, vector<4xi1>, vector<4xf32>
      %pass = arith.constant dense<-1.0> : vector<4xf32>
      %y = vector.maskedload %s[%c0], %m, %pass : memref<4xf32, 3>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      vector.store %y, %out[%i] : memref<8xf32>, vector<4xf32>"""
    assert run(kernel(body, "8xf32", threads=1, blocks=2)) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_lanes_under_a_mask_stand_side_by_side() -> None:
    body = """
      %x = vector.load %in[%c0] : memref<8xf32>, vector<8xf32>
      %m = arith.constant dense<[false, true, true, false, true, false, false, true]> : vector<8xi1>
      %y = xla_cpu.compress %x, %m : vector<8xf32>
      %z = vector.extract_strided_slice %y {offsets = [0], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
      vector.store %z, %out[%c0] : memref<4xf32>, vector<4xf32>"""
    assert run(kernel(body, "4xf32", threads=1)) == [1, 2, 4, 7]


def test_gather_reads_where_each_lane_says() -> None:
    body = """
      %at = arith.constant dense<[6, 0, 3, 99]> : vector<4xindex>
      %m = arith.constant dense<[true, true, true, false]> : vector<4xi1>
      %pass = arith.constant dense<-1.0> : vector<4xf32>
      %x = vector.gather %in[%t] [%at], %m, %pass
        : memref<8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %i = arith.muli %t, %c4 : index
      vector.store %x, %out[%i] : memref<8xf32>, vector<4xf32>"""
    assert run(kernel(body, "8xf32", threads=2)) == [6, 0, 3, -1, 7, 1, 4, -1]


def test_lanes_are_taken_out_and_put_in_at_constant_and_computed_places() -> None:
    body = """
      %v = vector.load %in[%c0] : memref<8xf32>, vector<4xf32>
      %x = vector.extract %v[%t] : f32 from vector<4xf32>
      %y = vector.extract %v[2] : f32 from vector<4xf32>
      %s = arith.addf %x, %y : f32
      %w = vector.insert %s, %v [%t] : f32 into vector<4xf32>
      %i = arith.muli %t, %c4 : index
      vector.store %w, %out[%i] : memref<8xf32>, vector<4xf32>"""
    assert run(kernel(body, "8xf32", threads=2)) == [2, 1, 2, 3, 0, 3, 2, 3]


def test_a_mask_as_an_integer_has_its_first_lane_lowest() -> None:
    body = """
      %m = vector.create_mask %t : vector<8xi1>
      %w = vector.bitcast %m : vector<8xi1> to vector<1xi8>
      %x = vector.extract %w[0] : i8 from vector<1xi8>
      memref.store %x, %out[%t] : memref<8xi8>"""
    assert run(kernel(body, "8xi8")) == [0, 1, 3, 7, 15, 31, 63, 127]


def test_lookup_reads_a_table_at_the_elements_bits() -> None:
    """A CPU kernel: its setup fills table[x] with x + 1, then -1 (255) gives 0."""
    text = """
func.func @main(%in: memref<4xi8>, %out: memref<4xi8>, %table: memref<256xi8>, %begin: index, %end: index) attributes {
    xla.entry, warpsmith.workgroups = 4 : i64, warpsmith.target = "cpu"} {
  %x = memref.load %in[%begin] : memref<4xi8>
  %y = xla_cpu.lookup %table[%x] : memref<256xi8>, i8 -> i8
  memref.store %y, %out[%begin] : memref<4xi8>
  return
}
func.func @main_setup(%table: memref<256xi8>) attributes {warpsmith.setup, xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 256 : index
  %one = arith.constant 1 : i8
  scf.for %i = %c0 to %n step %c1 {
    %x = arith.index_castui %i : index to i8
    %y = arith.addi %x, %one : i8
    memref.store %y, %table[%i] : memref<256xi8>
  }
  return
}
"""
    assert run(text, np.array([-1, 0, 127, 5], np.int8)) == [0, 1, -128, 6]


# --------------------------------------------------------------------------------------------------- threads and blocks
def test_each_block_has_shared_memory_of_its_own() -> None:
    """Threads write to the tile, wait, and read it the other way round."""
    extra = 'memref.global "private" @tile : memref<4xf32, 3> = uninitialized'
    body = """
      %s = memref.get_global @tile : memref<4xf32, 3>
      %i = arith.muli %b, %c4 : index
      %j = arith.addi %i, %t : index
      %x = memref.load %in[%j] : memref<8xf32>
      memref.store %x, %s[%t] : memref<4xf32, 3>
      gpu.barrier
      %k = arith.subi %c3, %t : index
      %y = memref.load %s[%k] : memref<4xf32, 3>
      memref.store %y, %out[%j] : memref<8xf32>"""
    assert run(kernel(body, "8xf32", threads=4, blocks=2, extra=extra)) == [3, 2, 1, 0, 7, 6, 5, 4]


@pytest.mark.parametrize(
    ("mode", "offset", "expected"),
    [
        ("xor", 1, [1, 0, 3, 2, 5, 4, 7, 6]),
        ("down", 3, [3, 4, 5, 6, 7, 5, 6, 7]),
        ("up", 2, [0, 1, 0, 1, 2, 3, 4, 5]),
        ("idx", 6, [6] * 8),
    ],
)
def test_shuffles_take_another_lanes_value_or_keep_their_own(mode: str, offset: int, expected: list[int]) -> None:
    body = f"""
      %x = memref.load %in[%t] : memref<8xf32>
      %o = arith.constant {offset} : i32
      %w = arith.constant 32 : i32
      %y, %valid = gpu.shuffle {mode} %x, %o, %w : f32
      memref.store %y, %out[%t] : memref<8xf32>"""
    assert run(kernel(body, "8xf32")) == expected


def test_shuffle_reduce_sums_a_warp_into_its_first_lane() -> None:
    text = """
func.func @main(%in: tensor<64xf32>, %out: tensor<2xf32>) -> tensor<2xf32> attributes {
    xla.entry, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.block = array<i64: 64, 1, 1>} {
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %x = tensor.extract %in[%t] : tensor<64xf32>
  %s = xla_gpu.shuffle_reduce(%x) to 16 combiner=@sum : f32
  %lane = arith.remui %t, %c32 : index
  %warp = arith.divui %t, %c32 : index
  %first = arith.cmpi eq, %lane, %c0 : index
  %r = scf.if %first -> (tensor<2xf32>) {
    %u = tensor.insert %s into %out[%warp] : tensor<2xf32>
    scf.yield %u : tensor<2xf32>
  } else {
    scf.yield %out : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
func.func private @sum(%a: f32, %b: f32) -> f32 {
  %r = arith.addf %a, %b : f32
  return %r : f32
}
"""
    assert run(text, np.arange(64, dtype=np.float32)) == [sum(range(32)), sum(range(32, 64))]
