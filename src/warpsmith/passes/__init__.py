"""Passes over the IR, one file a pass, named as on the command line; each begins with what it does to five lines of IR.

`manager` runs passes by name, `pipeline` lists them in order for each kind of target.  By what they are for:

    clean-up      canonicalize (a package), cse, licm, symbol-dce, erase-dead-functions, simplify-arith,
                  simplify-affine
    functions     inline, inline-calls, convert-pure-call
    loops         lower-loops-to-scf, lower-xla-to-scf, lower-xla-shared, peel-loops, unswitch-loops, fit-loop-bounds,
                  optimize-loops, pair-registers, unroll-marked-loops, prefetch-rows
    memory        flatten-tensors, lower-tensors, merge-pointers, pack-sub-byte, lower-atomics, allocate-on-stack
    vectors       vectorize-cpu, vectorize-loads-stores
    numbers       expand-float-ops, expand-small-floats, expand-math, expand-approximate, expand-remainder, tabulate,
                  library-calls
    threads       threads-to-loops (a package), clamp-indices before it, guard-divisions after it; lower-workgroups
    the end       convert-scf-to-cf, convert-to-llvm (a package)

Every file here but `manager` and `pipeline` is a pass; what several share is in `support/`.
"""
