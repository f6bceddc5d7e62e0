"""HLO: text, objects, shapes, literals.  `parse_hlo` reads, `str(module)` prints; the two are inverses.

`verify_module` checks that shapes, types and signatures fit together; `query` finds and counts, `edit` changes,
`builder` makes.
"""

from __future__ import annotations

from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import AnyShape, Layout, Shape, TupleShape
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo.text.printer import print_module
from warpsmith.hlo.verifier import verify_module

__all__ = [
    "AnyShape",
    "HloComputation",
    "HloInstruction",
    "HloModule",
    "Layout",
    "Literal",
    "Shape",
    "TupleShape",
    "parse_hlo",
    "print_module",
    "verify_module",
]
