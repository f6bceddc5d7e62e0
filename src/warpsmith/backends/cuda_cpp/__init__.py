"""IR as CUDA C++ that a person can read.

In: a module whose loops are still loops, below `lower-tensors`.  Out: one `.cu` text, a `__global__` function for each
entry.  `lower` brings an emitted fusion there, `lower_tile` a dispatched tile kernel.

    the text       source         a file: comment, headers, helper functions, tables, functions
                   writer         one function: scopes, names, which expression each value is
                   helpers        device functions that a file gets where it uses them
    ops            control, memory, warps, vectors, floats, integers, conversions, functions
                                  tables: op -> statement or expression
    expressions    types          C++ types and typed pieces of text
                   literals       numbers
    looking ahead  plan           which values are folded into the expression that uses them
                   contraction    which products must not be fused with a sum
                   signs, ranges  which integers get a sign; which indices are known not to be negative
                   integer_signs  integers with or without a sign, all their bits right or the low ones only
                   names, hints   names of variables, from the ops around them
    before         lowering       the passes that bring IR here

Read `writer` and `plan` first.
"""

from warpsmith.backends.cuda_cpp.lowering import PASSES, TILE_PASSES, lower, lower_tile
from warpsmith.backends.cuda_cpp.source import cuda_source

__all__ = ["PASSES", "TILE_PASSES", "cuda_source", "lower", "lower_tile"]
