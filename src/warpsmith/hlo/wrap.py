"""A bare fusion body becomes a module: an entry that calls it once.

In: a module whose entry is the body (a text without `ENTRY`).  Out: a module with one more computation, the entry,
which passes its parameters to `fusion(...), kind=kLoop, calls=body`.
"""

from __future__ import annotations

from warpsmith.hlo.builder import wrap_in_entry
from warpsmith.hlo.module import HloModule

__all__ = ["wrap_bare_fusion"]


def wrap_bare_fusion(module: HloModule) -> HloModule:
    """`module` with its entry wrapped; the new entry is called `main`, or `main.1`, ... where that is taken."""
    taken = {computation.name for computation in module.computations}
    name, count = "main", 1
    while name in taken:
        name, count = f"main.{count}", count + 1
    entry = wrap_in_entry(module.entry, name)
    return HloModule(module.name, (*module.computations, entry), entry, module.attributes, module.style)
