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

A pass of your own needs what is named here alone (`import warpsmith as ws`, then `ws.passes.register` and so on; the
page "Your own pass" shows one from nothing): `register` names it, `rewrite` applies patterns, `Builder` and `arith`
make ops, `constant` a constant of any type, `types` has the types; `parse_module`, `run_pipeline` and `print_module`
try it.
"""

from __future__ import annotations

from warpsmith.ir.core import types
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.rewriter import Pattern, Patterns, Rewriter, rewrite
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.dialects import arith
from warpsmith.ir.dialects.arith import constant, constant_value
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module
from warpsmith.passes.manager import names, register, run_pipeline

__all__ = [
    "Block",
    "Builder",
    "Operation",
    "Pattern",
    "Patterns",
    "Rewriter",
    "Value",
    "arith",
    "constant",
    "constant_value",
    "names",
    "parse_module",
    "print_module",
    "register",
    "rewrite",
    "run_pipeline",
    "types",
    "verify",
]
