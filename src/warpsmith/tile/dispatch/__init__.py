"""Dispatch: each tile primitive becomes loops over flat memory, by the first variant that takes it.

In: a kernel in the tile dialect, a device.  Out: a module of scf, memref and vector ops, and what was chosen for each
call.

    the walk           dispatcher           tries the variants of each call in order; says why none takes one
                       registry             the variants, found by file: `Variant`, `Predicate`, `register`
                       decline              how a variant refuses: `Decline`
                       context              what a variant knows of its call, and where it builds
                       predicates, advice   needs that several variants share; a next step where nothing fits
    before and after   storage              flat memory for buffers, values for ids
                       finish, early_exits  element accesses, marks for later passes; `break` and `continue` as flags

    variants           copy_shared          copy        global <-> shared memory
                       copy_register        copy        registers <-> memory
                       copy_matrix          copy        shared memory <-> registers by ldmatrix, stmatrix
                       copy_fallback        copy        anything, by one thread
                       copy_async_ldgsts    copy_async  global -> shared memory by cp.async
                       permute_shared       permute_layout, through a warp's registers
                       elementwise_register, elementwise_shared; `elementwise` is one element's formula
                       reduce_register, reduce_shared; `reduction` is what they share
                       gemm_mma             gemm        by mma.sync
                       known                variants that this project lacks, to be named in errors

    what they build    digits               layouts of several operands, split into the factors that all have
    with               irregular            regions that cut through their factors: elements by coordinates
                       threads              which thread holds which digit of a register tile
                       work_sharing         items that any thread may do, shared out over the scope
                       widths               how many elements one move may take
                       emission             index arithmetic, loops and branches
                       addressing           one element's address by its coordinates
                       moves                elements read and written in the buffer's own type
                       fragments            a warp's fragments: lanes by their bits, vectors out of registers

Read `dispatcher`, `digits` and `copy_shared` first.
"""

from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.dispatcher import Choice, Dispatched, dispatch
from warpsmith.tile.dispatch.registry import Predicate, Variant, register

__all__ = ["CallContext", "Choice", "Decline", "Dispatched", "Predicate", "Variant", "dispatch", "register"]
