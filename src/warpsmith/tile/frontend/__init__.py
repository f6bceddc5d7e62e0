"""The front end: a kernel's Python text, read and never run, becomes a module of the tile dialect.

    text          source            a function's syntax tree, and the places of its parts
                  statements        the walk over statements: assignments, loops, branches, macros
                  expressions       the walk over expressions; `operators` is its table of Python's operators
                  names, assignments, arguments
                                    what a name means where it stands; which names are variables; a macro's parameters
    values        values            what names stand for: scalars, variables, buffers, regions, loops, macros
                  objects           those that a kernel makes of a class of its author
                  state             the kernel that is being read: its module, the insertion point, its parameters
                  scalars, numbers  arithmetic on scalars; what may stand where a number is wanted
                  subscripts, dots  what brackets pick: regions, elements; what stands behind a dot
                  views, picks, rearrange
                                    declarations of buffers, and views of them
    vocabulary    language          `T`
                  annotations, loops, scopes, cuda_functions, ptx_functions
                                    parts of `T`: after a colon, in a `for`, ids, `T.cuda`, `T.ptx`
                  primitives        `Tx`; `checks` is what a call must fulfil whatever lowering it gets

Read `statements`, `state` and `primitives` first.
"""
