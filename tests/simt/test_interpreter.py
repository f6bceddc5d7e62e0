"""What the simulator makes of control flow: masks, branches, loops, calls.  Expected values by hand."""

from __future__ import annotations

import pytest
from simt.kernels import kernel, run

from warpsmith.errors import SimulationError


def test_ids_number_threads_within_blocks() -> None:
    body = """
      %i = arith.muli %b, %c4 : index
      %j = arith.addi %i, %t : index
      %v = arith.index_cast %j : index to i32
      memref.store %v, %out[%j] : memref<12xi32>"""
    assert run(kernel(body, "12xi32", threads=4, blocks=3)) == list(range(12))


def test_a_branch_gives_each_thread_its_own_sides_value_and_effects() -> None:
    body = """
      %x = memref.load %in[%t] : memref<8xf32>
      %small = arith.cmpi slt, %t, %c3 : index
      %y = scf.if %small -> (f32) {
        %n = arith.negf %x : f32
        memref.store %n, %out[%t] : memref<8xf32>
        scf.yield %n : f32
      } else {
        %d = arith.addf %x, %x : f32
        scf.yield %d : f32
      }
      scf.if %small { } else {
        memref.store %y, %out[%t] : memref<8xf32>
      }"""
    assert run(kernel(body, "8xf32")) == [0, -1, -2, 6, 8, 10, 12, 14]


def test_an_access_out_of_bounds_counts_only_for_threads_that_make_it() -> None:
    guarded = """
      %i = arith.addi %t, %c5 : index
      %inside = arith.cmpi slt, %i, %c8 : index
      %zero = arith.constant 0.0 : f32
      %x = scf.if %inside -> (f32) {
        %y = memref.load %in[%i] : memref<8xf32>
        scf.yield %y : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %x, %out[%t] : memref<8xf32>"""
    assert run(kernel(guarded, "8xf32")) == [5, 6, 7, 0, 0, 0, 0, 0]
    bare = """
      %i = arith.addi %t, %c5 : index
      %x = memref.load %in[%i] : memref<8xf32>"""
    with pytest.raises(SimulationError, match=r"index 8 of dim 0, which has 8 elements \(block 0, thread 3"):
        run(kernel(bare, "8xf32"))


def test_a_switch_takes_one_region_a_thread() -> None:
    body = """
      %v = scf.index_switch %t -> i32
      case 1 { %x = arith.constant 11 : i32
        scf.yield %x : i32 }
      case 6 { %x = arith.constant 66 : i32
        scf.yield %x : i32 }
      default { %x = arith.constant -1 : i32
        scf.yield %x : i32 }
      memref.store %v, %out[%t] : memref<8xi32>"""
    assert run(kernel(body, "8xi32")) == [-1, 11, -1, -1, -1, -1, 66, -1]


def test_loops_of_different_lengths_end_for_each_thread_by_itself() -> None:
    """Thread t adds 1 t times, in steps of 2 up to 2t."""
    body = """
      %end = arith.muli %t, %c2 : index
      %one = arith.constant 1 : i32
      %zero = arith.constant 0 : i32
      %n = scf.for %i = %c0 to %end step %c2 iter_args(%a = %zero) -> (i32) {
        %s = arith.addi %a, %one : i32
        scf.yield %s : i32
      }
      memref.store %n, %out[%t] : memref<8xi32>"""
    assert run(kernel(body, "8xi32")) == list(range(8))


def test_a_loop_that_starts_past_its_end_gives_its_initial_values() -> None:
    body = """
      %k = arith.constant 7 : i32
      %one = arith.constant 1 : i32
      %n = scf.for %i = %c5 to %c2 step %c1 iter_args(%a = %k) -> (i32) {
        scf.yield %one : i32
      }
      memref.store %n, %out[%t] : memref<8xi32>"""
    assert run(kernel(body, "8xi32")) == [7] * 8


def test_a_while_loop_stops_for_each_thread_when_its_condition_fails() -> None:
    """Doubling from t + 1 until 20 is reached."""
    body = """
      %u = arith.addi %t, %c1 : index
      %x = arith.index_cast %u : index to i32
      %most = arith.constant 20 : i32
      %r = scf.while (%a = %x) : (i32) -> i32 {
        %more = arith.cmpi slt, %a, %most : i32
        scf.condition(%more) %a : i32
      } do {
      ^bb0(%d: i32):
        %e = arith.addi %d, %d : i32
        scf.yield %e : i32
      }
      memref.store %r, %out[%t] : memref<8xi32>"""
    assert run(kernel(body, "8xi32")) == [32, 32, 24, 32, 20, 24, 28, 32]


@pytest.mark.parametrize("trips", ["%c5", "%n"])
def test_iterations_as_threads_give_what_iterations_in_turn_give(trips: str) -> None:
    """The loop carries nothing, so it runs all at once; with a sum that nobody uses it can't."""
    loop = """
      %n = arith.addi %t, %c1 : index
      %row = arith.muli %t, %c8 : index
      scf.for %i = %c0 to TRIPS step %c1 {
        %j = arith.addi %row, %i : index
        %x = memref.load %in[%i] : memref<8xf32>
        memref.store %x, %out[%j] : memref<32xf32>
      }""".replace("TRIPS", trips)
    carried = (
        loop.replace("scf.for", "%s = scf.for")
        .replace("%c1 {", "%c1 iter_args(%a = %c0) -> (index) {")
        .replace("\n      }", "\n        scf.yield %a : index\n      }")
    )
    counts = [5] * 4 if trips == "%c5" else [1, 2, 3, 4]
    first = run(kernel(loop, "32xf32", threads=4))
    for thread, count in enumerate(counts):
        assert first[8 * thread : 8 * thread + count] == list(range(count))
    assert first == run(kernel(carried, "32xf32", threads=4))


def test_a_loop_that_reads_what_it_writes_runs_in_turn() -> None:
    """out[i + 1] = out[i] + 1, from out[0] = in[3]."""
    body = """
      %x = memref.load %in[%c3] : memref<8xf32>
      memref.store %x, %out[%c0] : memref<6xf32>
      %one = arith.constant 1.0 : f32
      scf.for %i = %c0 to %c5 step %c1 {
        %p = memref.load %out[%i] : memref<6xf32>
        %q = arith.addf %p, %one : f32
        %j = arith.addi %i, %c1 : index
        memref.store %q, %out[%j] : memref<6xf32>
      }"""
    assert run(kernel(body, "6xf32", threads=1)) == [3, 4, 5, 6, 7, 8]


def tensor_kernel(map: str, body: str, *, threads: int = 4) -> str:
    return f"""
#map = #xla_gpu.indexing_map<"{map}">
func.func @main(%in: tensor<8xf32>, %out: tensor<16xf32>) -> tensor<16xf32> attributes {{
    xla.entry, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.block = array<i64: {threads}, 1, 1>}} {{
  %t = gpu.thread_id x {{xla.range = [0 : index, {threads - 1} : index]}}
  {body}
}}
func.func private @twice(%in: tensor<8xf32>, %i: index) -> f32 {{
  %x = tensor.extract %in[%i] : tensor<8xf32>
  %y = arith.addf %x, %x : f32
  return %y : f32
}}
"""


FILL = """
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %cleared = scf.for %k = %c0 to %c16 step %c1 iter_args(%o = %out) -> (tensor<16xf32>) {
    %p = tensor.insert %zero into %o[%k] : tensor<16xf32>
    scf.yield %p : tensor<16xf32>
  }
"""


def test_xla_loop_runs_where_bounds_and_constraints_hold() -> None:
    """Points (t, s) with t <= 2 and t + s <= 3 write 2 * in[t + s] to out[4 t + s]."""
    map = "(d0)[s] -> (d0 * 4 + s, d0 + s), domain: d0 in [0, 2], s in [0, 3], d0 + s in [0, 3]"
    body = (
        FILL
        + """
      %r = xla_gpu.loop (%t)[%s] -> (%i, %j) in #map iter_args(%o = %cleared) -> (tensor<16xf32>) {
        %v = xla_gpu.pure_call @twice(%in, %j) : (tensor<8xf32>, index) -> f32
        %w = tensor.insert %v into %o[%i] : tensor<16xf32>
        xla_gpu.yield %w : tensor<16xf32>
      }
      return %r : tensor<16xf32>"""
    )
    assert run(tensor_kernel(map, body)) == [0, 2, 4, 6, 2, 4, 6, 0, 4, 6, 0, 0, 0, 0, 0, 0]


def test_xla_loop_carries_scalars_through_points_outside_the_domain() -> None:
    """The sum of in[s] for s up to 2 t + 1; thread 3 is outside its bounds and keeps the initial 100."""
    map = "(d0)[s] -> (s), domain: d0 in [0, 2], s in [0, 7], d0 * 2 - s in [-1, 100]"
    body = (
        FILL
        + """
      %start = arith.constant 100.0 : f32
      %sum = xla_gpu.loop (%t)[%s] -> (%i) in #map iter_args(%a = %start) -> (f32) {
        %x = tensor.extract %in[%i] : tensor<8xf32>
        %n = arith.addf %a, %x : f32
        xla_gpu.yield %n : f32
      }
      %r = tensor.insert %sum into %cleared[%t] : tensor<16xf32>
      return %r : tensor<16xf32>"""
    )
    assert run(tensor_kernel(map, body))[:4] == [101, 106, 115, 100]


def test_predicated_access_touches_memory_only_where_the_predicate_holds() -> None:
    body = (
        FILL
        + """
      %c2 = arith.constant 2 : index
      %c5 = arith.constant 5 : index
      %i = arith.muli %t, %c5 : index
      %in_range = arith.cmpi slt, %t, %c2 : index
      %nine = arith.constant 9.0 : f32
      %x = xla_gpu.predicated_extract %in[%i] if %in_range else %nine : tensor<8xf32>
      %c16b = arith.constant 16 : index
      %far = arith.muli %t, %c16b : index
      %first = arith.cmpi eq, %t, %c0 : index
      %r = tensor.insert %x into %cleared[%t] : tensor<16xf32>
      %u = xla_gpu.predicated_insert %nine into %r[%far] if %first : tensor<16xf32>
      return %u : tensor<16xf32>"""
    )
    assert run(tensor_kernel("(d0) -> (d0), domain: d0 in [0, 3]", body))[:5] == [9, 5, 9, 9, 0]


def test_atomic_rmw_lets_threads_that_meet_take_turns() -> None:
    """Eight threads add in[t] to element t mod 3."""
    text = """
func.func @main(%in: tensor<8xf32>, %out: tensor<3xf32>) -> tensor<3xf32> attributes {
    xla.entry, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.block = array<i64: 8, 1, 1>} {
  %t = gpu.thread_id x {xla.range = [0 : index, 7 : index]}
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %i = arith.remui %t, %c3 : index
  %z = tensor.insert %zero into %out[%i] : tensor<3xf32>
  %x = tensor.extract %in[%t] : tensor<8xf32>
  %r = xla_gpu.atomic_rmw %z[%i] : tensor<3xf32> {
    ^bb0(%old: f32):
      %new = arith.addf %old, %x : f32
      xla_gpu.yield %new : f32
  }
  return %r : tensor<3xf32>
}
"""
    assert run(text) == [0 + 3 + 6, 1 + 4 + 7, 2 + 5]
