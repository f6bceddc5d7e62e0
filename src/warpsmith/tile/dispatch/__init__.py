"""Dispatch: each tile primitive becomes loops over flat memory, by the first variant that takes it.

`dispatcher` walks a kernel and chooses, `registry` holds the variants (one module each), `context` is what a variant
knows of its call, `digits` lines up the layouts of its operands, `emission` makes index arithmetic and loops, `storage`
gives buffers their memory and `finish` lowers what is left.  Reference: tile.md 5 to 8, 10.2, 10.3.
"""

from warpsmith.tile.dispatch.dispatcher import Choice, Dispatched, dispatch

__all__ = ["Choice", "Dispatched", "dispatch"]
