"""Both forms of a kernel as Python, in the surface that kernels are written in.

`kernel_text` walks a module and has a line for each kind of op, `expressions` folds values that are used once into the
expression that uses them, `python_text` writes layouts and options of calls.
"""
