"""IR as CUDA C++ that a person can read.

In: a module whose loops are still loops, below `lower-tensors`.  Out: one `.cu` text, a `__global__` function for each
entry.  `backend` brings kernels there.

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
    before         pipeline       the passes that bring IR here
                   backend        `CudaCpp`, which runs them

Read `writer` and `plan` first.
"""

from warpsmith.backends.cuda_cpp.source import cuda_source

__all__ = ["cuda_source"]
