"""The simulator: kernels run over all threads in lockstep.  `run_kernel`, `watch_kernel` run IR, `simulate_ptx` PTX.

Three rooms; `ir` and `ptx` are machines that use `core` and don't know each other:

    core     watch              told of each access and barrier by either machine
             order, shadow, readers, reach
                                who is ordered after whom; who touched what; sets of readers; bytes that count
             tracked, async_copies
                                a buffer under watch, and the copies that are on their way to it or from it
             named_barriers     barriers of some of a block's warps
             matrix             fragments and products of matrices
             traffic, costs     sectors and turns of banks, for rows of a warp's addresses; counters
             checks, results    findings and counters: how they are made, what they are
             sampling           which of many blocks run

    ir       launch             the entry over its grid, batch by batch of blocks
             interpreter        each op once for all threads, under a mask; `handlers` joins the tables of what ops do:
             control, accesses, atomics, vectors, warps, llvm, nvgpu
             memory             buffers of elements
             spread             iterations of a loop that run like threads
             observe, op_classes
                                what the interpreter tells a watch, and how ops are counted

    ptx      launch             the way in: a text and its launch
             text/              tokens, declarations, parser, module: text to data
             spec, flow, layout, uses
                                opcodes taken apart, basic blocks, addresses of variables, bits that count
             decode             instructions to steps, by the tables in instructions/, one file a kind
             operands, values, packing
                                operands, numbers, packed elements
             machine            all threads through a function's blocks
             memory             a flat memory of bytes

Read `ir/interpreter`, `core/watch` and `core/shadow` first.
"""

from warpsmith.simt.ir.launch import run_kernel, watch_kernel

__all__ = ["run_kernel", "watch_kernel"]
