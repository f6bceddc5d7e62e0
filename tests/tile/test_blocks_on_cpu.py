"""Blocks of threads as loops: each kernel gives on the CPU what it gives in the simulator; what can't be is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.tile.block_kernels import block_kernel, native, simulated
from warpsmith.backends.cpu.pipeline import BLOCKS
from warpsmith.errors import LoweringError
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import run_pipeline
from warpsmith.passes.threads_to_loops.memories import MOST_BYTES

STORE_TILE = """
  %x = memref.load %in[%g] : memref<1024xf32>
  memref.store %x, %tile[%t] : memref<1024xf32, 3>
"""
REVERSED = """
  %back = arith.subi %c63, %t : index
  gpu.barrier
  %y = memref.load %tile[%back] : memref<1024xf32, 3>
"""
PUT = "memref.store %r, %out[%g] : memref<1024xf32>"

KERNELS: dict[str, str] = {
    # x lives from one loop to the next; addresses are computed again.
    "a barrier": block_kernel(
        f"{STORE_TILE}{REVERSED} %r = arith.subf %y, %x : f32\n {PUT}", grid=(3, 1, 1)
    ),
    # The two carried values change places in each turn, and what lanes exchange is carried too.
    "a loop that carries": block_kernel("""
  %x = memref.load %in[%g] : memref<1024xf32>
  %one = arith.constant 1.0 : f32
  %r:3 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x, %b2 = %one, %n = %c0) -> (f32, f32, index) {
    memref.store %a, %tile[%t] : memref<1024xf32, 3>
    gpu.barrier
    %other = arith.xori %t, %c1 : index
    %y = memref.load %tile[%other] : memref<1024xf32, 3>
    gpu.barrier
    %s = arith.addf %y, %b2 : f32
    %m = arith.addi %n, %i : index
    scf.yield %b2, %s, %m : f32, f32, index
  }
  %k = arith.index_cast %r#2 : index to i32
  %f = arith.sitofp %k : i32 to f32
  %p = arith.subf %r#0, %r#1 : f32
  %q = arith.addf %p, %f : f32
  memref.store %q, %out[%g] : memref<1024xf32>
"""),
    "two that change places": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  %m = arith.negf %x : f32
  %p:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %c = %m) -> (f32, f32) {{
    gpu.barrier
    scf.yield %c, %a : f32, f32
  }}
  %q = arith.addf %p#0, %p#0 : f32
  %r = arith.addf %q, %p#1 : f32
  {PUT}
"""),
    # One value for all, but only for those that take the branch.
    "a variable that some threads set": block_kernel("""
  %v = memref.alloca() {alignment = 4 : i64} : memref<1xf32, 5>
  %one = arith.constant 1.5 : f32
  %two = arith.constant 2.5 : f32
  memref.store %one, %v[%c0] : memref<1xf32, 5>
  %x = memref.load %in[%g] : memref<1024xf32>
  %zero = arith.constant 0.0 : f32
  %positive = arith.cmpf ogt, %x, %zero : f32
  scf.if %positive {
    memref.store %two, %v[%c0] : memref<1xf32, 5>
  }
  gpu.barrier
  %r = memref.load %v[%c0] : memref<1xf32, 5>
  memref.store %r, %out[%g] : memref<1024xf32>
"""),
    "a number that a branch chooses": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  %zero = arith.constant 0.0 : f32
  %positive = arith.cmpf ogt, %x, %zero : f32
  %n = scf.if %positive -> (index) {{
    %y = memref.load %in[%c0] : memref<1024xf32>
    %k = arith.fptosi %y : f32 to i32
    %j = arith.index_cast %k : i32 to index
    scf.yield %j : index
  }} else {{
    %y = memref.load %in[%c2] : memref<1024xf32>
    %k = arith.fptosi %y : f32 to i32
    %j = arith.index_cast %k : i32 to index
    scf.yield %j : index
  }}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {{
    %z = arith.addf %a, %x : f32
    scf.yield %z : f32
  }}
  {PUT}
"""),
    # The value that a turn ends with is exchanged in the same turn.
    "a shuffle of what is carried": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (f32) {{
    %s:2 = gpu.shuffle down %a, %i1, %i32 : f32
    %y = arith.addf %a, %s#0 : f32
    scf.yield %y : f32
  }}
  {PUT}
"""),
    # A variable that all threads have alike drives a loop with barriers.
    "a while over a variable": block_kernel(f"""
  %n = memref.alloca() {{alignment = 4 : i64}} : memref<1xi32, 5>
  %acc = memref.alloca() {{alignment = 4 : i64}} : memref<1xf32, 5>
  %x = memref.load %in[%g] : memref<1024xf32>
  memref.store %i0, %n[%c0] : memref<1xi32, 5>
  memref.store %x, %acc[%c0] : memref<1xf32, 5>
  scf.while : () -> () {{
    %v = memref.load %n[%c0] : memref<1xi32, 5>
    %more = arith.cmpi slt, %v, %i4 : i32
    scf.condition(%more)
  }} do {{
    %old = memref.load %acc[%c0] : memref<1xf32, 5>
    memref.store %old, %tile[%t] : memref<1024xf32, 3>
    gpu.barrier
    %back = arith.subi %c63, %t : index
    %y = memref.load %tile[%back] : memref<1024xf32, 3>
    gpu.barrier
    %v = memref.load %n[%c0] : memref<1xi32, 5>
    %f = arith.sitofp %v : i32 to f32
    %s = arith.addf %y, %f : f32
    memref.store %s, %acc[%c0] : memref<1xf32, 5>
    %w = arith.addi %v, %i1 : i32
    memref.store %w, %n[%c0] : memref<1xi32, 5>
    scf.yield
  }}
  %r = memref.load %acc[%c0] : memref<1xf32, 5>
  {PUT}
"""),
    "a while that carries": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  %w:2 = scf.while (%i = %i0, %a = %x) : (i32, f32) -> (i32, f32) {{
    %more = arith.cmpi slt, %i, %i3 : i32
    scf.condition(%more) %i, %a : i32, f32
  }} do {{
  ^bb0(%j: i32, %c: f32):
    memref.store %c, %tile[%t] : memref<1024xf32, 3>
    gpu.barrier
    %other = arith.xori %t, %c32 : index
    %y = memref.load %tile[%other] : memref<1024xf32, 3>
    gpu.barrier
    %next = arith.addi %j, %i1 : i32
    %sum = arith.addf %c, %y : f32
    scf.yield %next, %sum : i32, f32
  }}
  %r = arith.negf %w#1 : f32
  {PUT}
"""),
    # Bounds and a condition that memory gives, the same for all threads of a block.
    "control from memory": block_kernel(
        f"""
  %n = memref.load %in[%b] : memref<1024xf32>
  %turns = arith.fptosi %n : f32 to i32
  %upper = arith.index_cast %turns : i32 to index
  %x = memref.load %in[%g] : memref<1024xf32>
  %odd = arith.cmpi eq, %b, %c1 : index
  %s = scf.for %i = %c0 to %upper step %c1 iter_args(%a = %x) -> (f32) {{
    memref.store %a, %tile[%t] : memref<1024xf32, 3>
    gpu.barrier
    %back = arith.subi %c63, %t : index
    %y = memref.load %tile[%back] : memref<1024xf32, 3>
    gpu.barrier
    scf.yield %y : f32
  }}
  %r = scf.if %odd -> (f32) {{
    memref.store %s, %tile[%t] : memref<1024xf32, 3>
    gpu.barrier
    %y = memref.load %tile[%c5] : memref<1024xf32, 3>
    scf.yield %y : f32
  }} else {{
    scf.yield %s : f32
  }}
  {PUT}
""",
        grid=(4, 1, 1),
    ),
    # Known threads: a warp exchanges on one side, single threads write on the other.
    "sides of a branch": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  %low = arith.cmpi ult, %t, %c32 : index
  %r = scf.if %low -> (f32) {{
    %s:2 = gpu.shuffle xor %x, %i16, %i32 : f32
    "nvvm.bar.warp.sync"(%i1) : (i32) -> ()
    scf.yield %s#0 : f32
  }} else {{
    %even = arith.remui %t, %c2 : index
    %is = arith.cmpi eq, %even, %c0 : index
    %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {{
      %k = arith.addi %g, %i : index
      %y = memref.load %in[%k] : memref<1024xf32>
      %z = arith.addf %a, %y : f32
      scf.yield %z : f32
    }}
    %u = scf.if %is -> (f32) {{
      scf.yield %sum : f32
    }} else {{
      scf.yield %x : f32
    }}
    scf.yield %u : f32
  }}
  {PUT}
""", threads=96),
    # Every other thread, and a loop inside: no single run of threads.
    "a mask with holes": block_kernel("""
  %x = memref.load %in[%g] : memref<1024xf32>
  memref.store %x, %out[%g] : memref<1024xf32>
  %third = arith.remui %t, %c3 : index
  %is = arith.cmpi eq, %third, %c1 : index
  scf.if %is {
    scf.for %i = %c0 to %c3 step %c1 {
      %y = memref.load %out[%g] : memref<1024xf32>
      %s = arith.addf %y, %x : f32
      memref.store %s, %out[%g] : memref<1024xf32>
    }
  }
"""),
    # Two runs of threads, and within them every third thread: each of the conditions has to be asked.
    "a mask with holes in a mask of two runs": block_kernel("""
  %x = memref.load %in[%g] : memref<1024xf32>
  memref.store %x, %out[%g] : memref<1024xf32>
  %c40 = arith.constant 40 : index
  %rest = arith.remui %t, %c40 : index
  %ends = arith.cmpi ult, %rest, %c8 : index
  scf.if %ends {
    scf.for %i = %c0 to %c3 step %c1 {
      %y = memref.load %out[%g] : memref<1024xf32>
      %s = arith.addf %y, %x : f32
      memref.store %s, %out[%g] : memref<1024xf32>
    }
    %third = arith.remui %t, %c3 : index
    %is = arith.cmpi eq, %third, %c1 : index
    scf.if %is {
      scf.for %i = %c0 to %c2 step %c1 {
        %y = memref.load %out[%g] : memref<1024xf32>
        %s = arith.mulf %y, %x : f32
        memref.store %s, %out[%g] : memref<1024xf32>
      }
    }
  }
"""),
    # Which warps take part is known only at run time; warp 3 none of the time.
    "warps that memory chooses": block_kernel(f"""
  %n = memref.load %in[%c3] : memref<1024xf32>
  %k = arith.fptosi %n : f32 to i32
  %most = arith.index_cast %k : i32 to index
  %x = memref.load %in[%g] : memref<1024xf32>
  %some = arith.cmpi ult, %warp, %most : index
  %r = scf.if %some -> (f32) {{
    %lowest = arith.cmpi eq, %warp, %c0 : index
    scf.if %lowest {{
      %lead = nvvm.elect.sync -> i1
      scf.if %lead {{
        memref.store %x, %out[%c128] : memref<1024xf32>
      }}
    }}
    %turns = scf.for %i = %c0 to %most step %c1 iter_args(%a = %x) -> (f32) {{
      %s:2 = gpu.shuffle idx %a, %i7, %i32 : f32
      %z = arith.addf %s#0, %x : f32
      scf.yield %z : f32
    }}
    scf.yield %turns : f32
  }} else {{
    scf.yield %n : f32
  }}
  {PUT}
""".replace("nvvm.elect.sync -> i1", '"nvvm.elect.sync"() : () -> i1'), threads=128),
    # Warp 0 takes no part, so that what the others agree on is not to be had from it; then two conditions at once.
    "all warps but the first": block_kernel(f"""
  %n = memref.load %in[%c2] : memref<1024xf32>
  %k = arith.fptosi %n : f32 to i32
  %least = arith.index_cast %k : i32 to index
  %some = arith.cmpi uge, %warp, %least : index
  scf.if %some {{
    %m = memref.load %in[%c0] : memref<1024xf32>
    %j = arith.fptosi %m : f32 to i32
    %most = arith.index_cast %j : i32 to index
    %x = memref.load %in[%g] : memref<1024xf32>
    %r = scf.for %i = %c0 to %most step %c1 iter_args(%a = %x) -> (f32) {{
      %s:2 = gpu.shuffle down %a, %i3, %i32 : f32
      scf.yield %s#0 : f32
    }}
    {PUT}
    %other = arith.cmpi ult, %warp, %most : index
    scf.if %other {{
      %s:2 = gpu.shuffle xor %r, %i8, %i32 : f32
      %h = arith.addi %g, %c128 : index
      memref.store %s#0, %out[%h] : memref<1024xf32>
    }}
  }}
""", threads=128),
    # No thread is in the branch, so that nobody has the bound of its loop.
    "a branch that nobody takes": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  {PUT.replace("%r", "%x")}
  %large = arith.constant 1000.0 : f32
  %some = arith.cmpf ogt, %x, %large : f32
  scf.if %some {{
    %n = memref.load %in[%c0] : memref<1024xf32>
    %k = arith.fptosi %n : f32 to i32
    %most = arith.index_cast %k : i32 to index
    %r = scf.for %i = %c0 to %most step %c1 iter_args(%a = %x) -> (f32) {{
      %s:2 = gpu.shuffle down %a, %i3, %i32 : f32
      scf.yield %s#0 : f32
    }}
    {PUT}
  }}
"""),
    # Only where the first condition holds does the second one exist: it divides by what the first looks at.
    "a condition within another": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  {PUT.replace("%r", "%x")}
  %third = arith.remui %t, %c3 : index
  %is = arith.cmpi ne, %third, %c0 : index
  %n = arith.fptosi %x : f32 to i32
  scf.if %is {{
    %rest = arith.remui %c4, %third : index
    %even = arith.cmpi eq, %rest, %c0 : index
    %most = arith.cmpi sgt, %n, %i1 : i32
    %both = arith.andi %even, %most : i1
    scf.if %both {{
      "nvvm.bar.warp.sync"(%i1) : (i32) -> ()
      %r = arith.negf %x : f32
      {PUT}
    }}
  }}
"""),
    # All blocks turn as often; a barrier in such a loop is of each of them.
    "a while in several blocks": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  %w:2 = scf.while (%i = %i0, %a = %x) : (i32, f32) -> (i32, f32) {{
    %more = arith.cmpi slt, %i, %i3 : i32
    scf.condition(%more) %i, %a : i32, f32
  }} do {{
  ^bb0(%j: i32, %c: f32):
    memref.store %c, %tile[%t] : memref<1024xf32, 3>
    gpu.barrier
    %y = memref.load %tile[%c5] : memref<1024xf32, 3>
    gpu.barrier
    "nvvm.bar.warp.sync"(%i1) : (i32) -> ()
    %next = arith.addi %j, %i1 : i32
    %sum = arith.addf %c, %y : f32
    scf.yield %next, %sum : i32, f32
  }}
  %r = arith.negf %w#1 : f32
  {PUT}
""", grid=(3, 1, 1)),
    # A partial warp, a whole block of one thread, and the largest block.
    **{
        f"a block of {threads}": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  memref.store %x, %tile[%t] : memref<1024xf32, 3>
  gpu.barrier
  %last = arith.constant {threads - 1} : index
  %back = arith.subi %last, %t : index
  %y = memref.load %tile[%back] : memref<1024xf32, 3>
  %s:2 = gpu.shuffle down %y, %i3, %i32 : f32
  %r = arith.addf %s#0, %x : f32
  {PUT}
""", threads=threads)
        for threads in (1, 31, 33, 1024)
    },
    # Half a warp at the end of the block: lanes beyond it give a thread its own value.
    **{
        f"shuffle {mode}": block_kernel(f"""
  %x = memref.load %in[%g] : memref<1024xf32>
  %n = arith.index_cast %lane : index to i32
  %o = arith.remui %n, %i5 : i32
  %s:2 = gpu.shuffle {mode} %x, %o, %i32 : f32
  %two = arith.constant 1000.0 : f32
  %own = arith.addf %s#0, %two : f32
  %r = arith.select %s#1, %s#0, %own : f32
  {PUT}
""", threads=48)
        for mode in ("xor", "up", "down", "idx")
    },
    # x fastest, then y, then z.
    "three dimensions": block_kernel("""
  %ty = gpu.thread_id y {xla.range = [0 : index, 2 : index]}
  %tz = gpu.thread_id z {xla.range = [0 : index, 1 : index]}
  %by = gpu.block_id y {xla.range = [0 : index, 1 : index]}
  %bz = gpu.block_id z {xla.range = [0 : index, 2 : index]}
  %a = arith.muli %tz, %c3 : index
  %d = arith.addi %a, %ty : index
  %e = arith.muli %d, %c4 : index
  %f = arith.addi %e, %t : index
  %h = arith.muli %bz, %c2 : index
  %i = arith.addi %h, %by : index
  %j = arith.muli %i, %c2 : index
  %k = arith.addi %j, %b : index
  %c24 = arith.constant 24 : index
  %l = arith.muli %k, %c24 : index
  %m = arith.addi %l, %f : index
  %x = memref.load %in[%m] : memref<1024xf32>
  memref.store %x, %tile[%f] : memref<1024xf32, 3>
  gpu.barrier
  %c23 = arith.constant 23 : index
  %back = arith.subi %c23, %f : index
  %y = memref.load %tile[%back] : memref<1024xf32, 3>
  memref.store %y, %out[%m] : memref<1024xf32>
""", threads=(4, 3, 2), grid=(2, 2, 3)),
    # Private arrays: written as vectors, read by an index that differs between threads; vectors live across a barrier.
    "private arrays": block_kernel("""
  %regs = memref.alloca() {alignment = 16 : i64} : memref<8xf32, 5>
  %at = arith.muli %t, %c8 : index
  scf.for %f = %c0 to %c2 step %c1 {
    %o = arith.muli %f, %c4 : index
    %p = arith.addi %at, %o : index
    %v = vector.load %in[%p] : memref<1024xf32>, vector<4xf32>
    vector.store %v, %regs[%o] : memref<8xf32, 5>, vector<4xf32>
  }
  %v = vector.load %regs[%c2] : memref<8xf32, 5>, vector<4xf32>
  gpu.barrier
  %which = arith.remui %t, %c8 : index
  %x = memref.load %regs[%which] : memref<8xf32, 5>
  %s = vector.broadcast %x : f32 to vector<4xf32>
  %w = arith.addf %v, %s : vector<4xf32>
  %q = arith.muli %t, %c4 : index
  vector.store %w, %out[%q] : memref<1024xf32>, vector<4xf32>
"""),
    # Two halves of the block at barriers of their own.
    "named barriers": block_kernel(f"""
  {STORE_TILE}
  %half = arith.divui %t, %c64 : index
  %n = arith.index_cast %half : index to i32
  %id = arith.addi %n, %i1 : i32
  "nvvm.barrier"(%id, %i64) : (i32, i32) -> ()
  %other = arith.xori %t, %c63 : index
  %r = memref.load %tile[%other] : memref<1024xf32, 3>
  {PUT}
""", threads=128),
    "a named barrier on one side": block_kernel(f"""
  {STORE_TILE}
  %low = arith.cmpi ult, %t, %c64 : index
  scf.if %low {{
    "nvvm.barrier"(%i1, %i64) : (i32, i32) -> ()
    %other = arith.xori %t, %c63 : index
    %r = memref.load %tile[%other] : memref<1024xf32, 3>
    {PUT}
  }}
""", threads=128),
    "copies in flight": block_kernel(f"""
  %at = arith.muli %t, %c4 : index
  "nvgpu.device_async_copy"(%tile, %at, %in, %at) {{bytes = 16 : i64}}
      : (memref<1024xf32, 3>, index, memref<1024xf32>, index) -> ()
  "nvvm.cp.async.commit.group"() : () -> ()
  "nvvm.cp.async.wait.group"() {{n = 0 : i32}} : () -> ()
  gpu.barrier
  %back = arith.subi %c63, %t : index
  %r = memref.load %tile[%back] : memref<1024xf32, 3>
  {PUT}
"""),
    # Bounds that differ between threads, in a loop over threads; the variable that all have alike is read in it.
    "loops of each thread": block_kernel("""
  %v = memref.alloca() {alignment = 4 : i64} : memref<1xf32, 5>
  %one = arith.constant 1.5 : f32
  %two = arith.constant 2.5 : f32
  memref.store %one, %v[%c0] : memref<1xf32, 5>
  %x = memref.load %in[%g] : memref<1024xf32>
  %turns = arith.remui %t, %c5 : index
  %r = scf.for %i = %c0 to %turns step %c1 iter_args(%a = %x) -> (f32) {
    %y = memref.load %v[%c0] : memref<1xf32, 5>
    %z = arith.addf %a, %y : f32
    scf.yield %z : f32
  }
  memref.store %two, %v[%c0] : memref<1xf32, 5>
  %y = memref.load %v[%c0] : memref<1xf32, 5>
  %k = arith.addf %r, %y : f32
  memref.store %k, %out[%g] : memref<1024xf32>
"""),
    "atomics": block_kernel("""
  %x = memref.load %in[%t] : memref<1024xf32>
  %place = arith.remui %t, %c4 : index
  %old = memref.atomic_rmw addf %x, %out[%place] : (f32, memref<1024xf32>) -> f32
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_gives_what_it_gives_in_the_simulator(name: str) -> None:
    """First the loops themselves run in the simulator, every access of the memories that the pass has made watched, so
    that a wrong pass is seen before native code goes astray."""
    numbers = np.random.default_rng(1).integers(-50, 50, 1024).astype(np.float32)
    numbers[:4] = 3, 0, 1, 2  # what kernels read as bounds
    wanted = simulated(KERNELS[name], numbers)
    assert np.any(wanted)
    np.testing.assert_array_equal(simulated(KERNELS[name], numbers, loops=True), wanted)
    np.testing.assert_array_equal(native(KERNELS[name], numbers), wanted)


def _tiles(transpose: bool) -> str:
    flags, others = (f"num_tiles = 4 : i64, transpose = {str(each).lower()}" for each in (transpose, not transpose))
    return block_kernel(f"""
  %at = arith.muli %t, %c8 : index
  %v = vector.load %in[%at] : memref<1024xi16>, vector<8xi16>
  vector.store %v, %tile[%at] : memref<1024xi16, 3>, vector<8xi16>
  gpu.barrier
  %five = arith.muli %t, %c5 : index
  %row = arith.remui %five, %c64 : index
  %place = arith.muli %row, %c8 : index
  %m = "nvgpu.ldmatrix"(%tile, %place) {{{flags}}} : (memref<1024xi16, 3>, index) -> vector<8xi16>
  gpu.barrier
  %twice = arith.addi %m, %m : vector<8xi16>
  "nvgpu.stmatrix"(%twice, %tile, %at) {{{others}}} : (vector<8xi16>, memref<1024xi16, 3>, index) -> ()
  gpu.barrier
  %w = vector.load %tile[%at] : memref<1024xi16, 3>, vector<8xi16>
  vector.store %w, %out[%at] : memref<1024xi16>, vector<8xi16>
""", element="i16")  # fmt: skip


@pytest.mark.parametrize("transpose", [False, True])
def test_tiles_of_matrices_go_to_the_same_lanes(transpose: bool) -> None:
    numbers = np.arange(1024, dtype=np.int16)
    text = _tiles(transpose)
    np.testing.assert_array_equal(native(text, numbers), simulated(text, numbers))


def test_all_lanes_have_read_their_tile_before_any_goes_on() -> None:
    """ldmatrix is an instruction of the warp: what a lane stores after it, no lane of the warp reads."""
    text = block_kernel("""
  %at = arith.muli %t, %c8 : index
  %v = vector.load %in[%at] : memref<1024xi16>, vector<8xi16>
  vector.store %v, %tile[%at] : memref<1024xi16, 3>, vector<8xi16>
  gpu.barrier
  %m = "nvgpu.ldmatrix"(%tile, %at) {num_tiles = 4 : i64, transpose = false}
      : (memref<1024xi16, 3>, index) -> vector<8xi16>
  vector.store %m, %tile[%at] : memref<1024xi16, 3>, vector<8xi16>
  vector.store %m, %out[%at] : memref<1024xi16>, vector<8xi16>
""", threads=32, element="i16")  # fmt: skip
    numbers = np.arange(1024, dtype=np.int16)
    np.testing.assert_array_equal(native(text, numbers), simulated(text, numbers))


@pytest.mark.parametrize(("element", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_the_product_of_fragments_is_that_of_the_matrices(element: str, dtype: type) -> None:
    """The whole product is placed here by the PTX ISA's map of fragments, row by row, and compared with numpy."""
    text = block_kernel(f"""
  %group = arith.divui %lane, %c4 : index
  %quad = arith.remui %lane, %c4 : index
  %p = arith.muli %quad, %c2 : index
  %row = arith.muli %group, %c16 : index
  %a0 = arith.addi %row, %p : index
  %a1 = arith.addi %a0, %c128 : index
  %a2 = arith.addi %a0, %c8 : index
  %a3 = arith.addi %a1, %c8 : index
  %va = memref.alloca() {{alignment = 16 : i64}} : memref<8x{element}, 5>
  %v0 = vector.load %in[%a0] : memref<1024x{element}>, vector<2x{element}>
  vector.store %v0, %va[%c0] : memref<8x{element}, 5>, vector<2x{element}>
  %v1 = vector.load %in[%a1] : memref<1024x{element}>, vector<2x{element}>
  vector.store %v1, %va[%c2] : memref<8x{element}, 5>, vector<2x{element}>
  %v2 = vector.load %in[%a2] : memref<1024x{element}>, vector<2x{element}>
  vector.store %v2, %va[%c4] : memref<8x{element}, 5>, vector<2x{element}>
  %c6 = arith.constant 6 : index
  %v3 = vector.load %in[%a3] : memref<1024x{element}>, vector<2x{element}>
  vector.store %v3, %va[%c6] : memref<8x{element}, 5>, vector<2x{element}>
  %fa = vector.load %va[%c0] : memref<8x{element}, 5>, vector<8x{element}>
  %c256 = arith.constant 256 : index
  %column = arith.muli %group, %c16 : index
  %bt = arith.addi %column, %p : index
  %b0 = arith.addi %bt, %c256 : index
  %b1 = arith.addi %b0, %c8 : index
  %vb = memref.alloca() {{alignment = 16 : i64}} : memref<4x{element}, 5>
  %v4 = vector.load %in[%b0] : memref<1024x{element}>, vector<2x{element}>
  vector.store %v4, %vb[%c0] : memref<4x{element}, 5>, vector<2x{element}>
  %v5 = vector.load %in[%b1] : memref<1024x{element}>, vector<2x{element}>
  vector.store %v5, %vb[%c2] : memref<4x{element}, 5>, vector<2x{element}>
  %fb = vector.load %vb[%c0] : memref<4x{element}, 5>, vector<4x{element}>
  %fc = arith.constant dense<0.5> : vector<4xf32>
  %d = "nvgpu.mma.sync"(%fa, %fb, %fc) {{shape = array<i64: 16, 8, 16>}}
      : (vector<8x{element}>, vector<4x{element}>, vector<4xf32>) -> vector<4xf32>
  %r8 = arith.muli %group, %c8 : index
  %o0 = arith.addi %r8, %p : index
  %o1 = arith.addi %o0, %c64 : index
  %e0 = vector.extract %d[0] : f32 from vector<4xf32>
  %e1 = vector.extract %d[1] : f32 from vector<4xf32>
  %e2 = vector.extract %d[2] : f32 from vector<4xf32>
  %e3 = vector.extract %d[3] : f32 from vector<4xf32>
  %o2 = arith.addi %o0, %c1 : index
  %o3 = arith.addi %o1, %c1 : index
  memref.store %e0, %out[%o0] : memref<1024xf32>
  memref.store %e1, %out[%o2] : memref<1024xf32>
  memref.store %e2, %out[%o1] : memref<1024xf32>
  memref.store %e3, %out[%o3] : memref<1024xf32>
""", threads=32, element=element, out="f32")  # fmt: skip
    numbers = np.random.default_rng(2).integers(-8, 8, 1024).astype(dtype)
    a, b = numbers[:256].reshape(16, 16).astype(np.float32), numbers[256:384].reshape(8, 16).astype(np.float32).T
    found = native(text, numbers)[:128].reshape(16, 8)
    np.testing.assert_array_equal(found, a @ b + np.float32(0.5))


REFUSED: dict[str, tuple[str, str]] = {
    "a barrier that a part of the block reaches": (
        "%low = arith.cmpi ult, %t, %c32 : index\n scf.if %low { gpu.barrier }",
        "waits for the whole block, and threads 0 to 31 alone get here",
    ),
    "a barrier that warps reach as memory says": (
        """
  %x = memref.load %in[%warp] : memref<1024xf32>
  %zero = arith.constant 0.0 : f32
  %some = arith.cmpf ogt, %x, %zero : f32
  scf.if %some { gpu.barrier }""",
        "waits for the whole block, and some warps alone get here",
    ),
    "a barrier that threads reach as memory says": (
        """
  %x = memref.load %in[%t] : memref<1024xf32>
  %zero = arith.constant 0.0 : f32
  %some = arith.cmpf ogt, %x, %zero : f32
  scf.if %some { gpu.barrier }""",
        r"is in an if \(line 47\) that threads take differently",
    ),
    "a loop of different turns": (
        "scf.for %i = %c0 to %lane step %c1 { gpu.barrier }",
        r"is in a loop \(line 43\) that threads take differently",
    ),
    "a barrier for both sides": (
        """
  %low = arith.cmpi ult, %t, %c32 : index
  scf.if %low { "nvvm.barrier"(%i1, %i64) : (i32, i32) -> () } else { "nvvm.barrier"(%i1, %i64) : (i32, i32) -> () }""",
        "waits for 64 threads, and threads 0 to 31 alone get here",
    ),
    "a tile for half a warp": (
        """
  %low = arith.cmpi ult, %t, %c16 : index
  scf.if %low {
    %m = "nvgpu.ldmatrix"(%tile, %t) {num_tiles = 1 : i64, transpose = false}
        : (memref<1024xf32, 3>, index) -> vector<2xf32>
  }""",
        "is for all lanes of a warp, and threads 0 to 15 alone get here",
    ),
    "an election among some lanes": (
        """
  %y = arith.constant 1.0 : f32
  %low = arith.cmpi uge, %lane, %c16 : index
  scf.if %low {
    %e = "nvvm.elect.sync"() : () -> i1
    scf.if %e { memref.store %y, %out[%t] : memref<1024xf32> }
  }""",
        "is for all lanes of a warp, and here some may be elsewhere",
    ),
    "a switch around a barrier": (
        """
  scf.index_switch %b
  case 0 {
    gpu.barrier
    scf.yield
  }
  default {
    scf.yield
  }""",
        r"a synchronisation in scf\.index_switch has no form",
    ),
    "more memory than a stack has": (
        """
  %big = memref.alloca() {alignment = 16 : i64} : memref<8192xf32, 5>
  %x = memref.load %in[%t] : memref<1024xf32>
  memref.store %x, %big[%t] : memref<8192xf32, 5>
  %y = memref.load %big[%lane] : memref<8192xf32, 5>
  memref.store %y, %out[%t] : memref<1024xf32>""",
        rf"take 2097152 bytes; on a CPU {MOST_BYTES} fit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_loops_over_threads_cannot_do_is_refused(name: str) -> None:
    body, words = REFUSED[name]
    with pytest.raises(LoweringError, match=words):
        run_pipeline(parse_module(block_kernel(body)), BLOCKS)
