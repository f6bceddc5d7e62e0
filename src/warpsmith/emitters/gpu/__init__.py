"""Emitters for GPUs, one file each: loop, concatenate, dynamic_update_slice, input_slices, scatter, transpose and
reduction.

`packed_transpose` is the transpose of elements narrower than a word.  `reduction_row` and `reduction_column` are the
two kinds of reduction, `reduction_geometry`, `reduction_groups` and `reduction_body` what they share.
"""
