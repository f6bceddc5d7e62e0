"""Emitters for CPUs, one file each, under the names that `gpu/` uses: loop, concatenate, dynamic_update_slice,
input_slices, scatter, transpose, reduction.

`shares` and `rows` say how items, and rows of neighbours, are dealt out to the cores, `transpose_tile` how large a
transpose's tile is; `reduction_row` and `reduction_column` are the two kinds of reduction, `reduction_parts` what they
share.
"""
