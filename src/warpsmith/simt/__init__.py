"""The simulator: runs kernels over all threads in lockstep.  `run_kernel` and `watch_kernel` run IR, `ptx` runs PTX.

Two machines, which share all that checks and counts:

    IR       launch             the entry over its grid, batch by batch of blocks; `sampling` picks some of many blocks
             interpreter        each op once for all threads, under a mask; `handlers` joins the tables of what ops do:
             control, accesses, atomics, vectors, warps, llvm, nvgpu
             memory             buffers of elements
             spread             iterations of a loop that run like threads
             observe, op_classes
                                what the interpreter tells a watch, and how ops are counted

    PTX      ptx                the way in: a text and its launch
             ptx_tokens, ptx_declarations, ptx_parser, ptx_module
                                text to data
             ptx_spec, ptx_flow, ptx_layout, ptx_uses
                                opcodes taken apart, basic blocks, addresses of variables, bits that count
             ptx_decode         instructions to steps, by the tables of ptx_access, ptx_async, ptx_matrix, ptx_meet,
                                ptx_warp; of ptx_integer, ptx_wide, ptx_float, ptx_approx, ptx_compare, ptx_convert
             ptx_operands, ptx_values, ptx_round, ptx_packing, ptx_special
                                operands, numbers, rounding, packed elements, special registers
             ptx_machine        all threads through a function's blocks
             ptx_memory, ptx_atomics
                                a flat memory of bytes

    shared   watch              told of each access and barrier by either machine
             order, shadow, readers, reach
                                who is ordered after whom; who touched what; sets of readers; bytes that count
             named_barriers     barriers of some of a block's warps
             in_flight, async_copies
                                copies that go on by themselves
             matrix             fragments and products of matrices
             traffic, costs     sectors and turns of banks, for rows of 32 addresses; counters
             checks, results, tracked
                                findings and counters: how they are made, what they are; a buffer under watch

Read `interpreter`, `watch` and `shadow` first.
"""

from warpsmith.simt.ir.launch import run_kernel, watch_kernel

__all__ = ["run_kernel", "watch_kernel"]
