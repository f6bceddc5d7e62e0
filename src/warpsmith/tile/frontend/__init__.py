"""The front end: a kernel's Python text, read and never run, becomes a module of the tile dialect.

`source` finds the text and its places, `statements` and `expressions` walk the syntax tree, `scalars` does arithmetic,
`values` are the objects that names stand for, `language` and `primitives` are what `T` and `Tx` offer.
"""
