"""At which indices an instruction reads its operands, in the form that the partitioner compares.

In: an instruction and an operand's number; where the instruction itself is evaluated.  Out: `Place`s.  A place is an
index as a map from the function's indices; one that loops or reads a start index from memory also names the ops that
do, because equal maps of different loops, or of different start indices, are different indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from warpsmith.hlo.indexing.maps import output_to_input_indexing
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.indexing import IndexingMap
from warpsmith.indexing.rewire import remove_unused_symbols

__all__ = ["HERE", "Place", "index_dims", "operand_places"]


@dataclass(frozen=True, slots=True)
class Place:
    """An index: `map` of the function's indices (None: those themselves); `origins`: ops that bring in symbols."""

    map: IndexingMap | None
    origins: tuple[HloInstruction, ...] = ()


HERE = Place(None)
"""The function's own indices."""


def index_dims(instruction: HloInstruction) -> tuple[int, ...]:
    """The sizes that an instruction's index ranges over (of its first array, when it gives several)."""
    leaves = instruction.shape.leaves()
    return leaves[0].dims if leaves else ()


def operand_places(
    instruction: HloInstruction, number: int, place: Place, sizes: tuple[int, ...]
) -> list[Place | None]:
    """Where `instruction`, evaluated at `place` of a function of `sizes`, reads operand `number`; None: nobody knows.

    Places that are known to be empty are left out.  IndexingError when a map grows too deep to compare.
    """
    row = OPCODES.get(instruction.opcode)
    aligned = instruction.opcode == "get-tuple-element" or (row is not None and row.elementwise)
    if aligned and index_dims(instruction.operands[number]) == index_dims(instruction):
        return [place]
    maps = output_to_input_indexing(instruction)[number]
    if not maps:
        return [None]
    found: list[Place | None] = []
    for own in maps:
        simple = _composed(place.map, own)
        if simple.known_empty:
            continue
        if simple.is_identity and tuple(v.size for v in simple.dim_vars) == sizes:
            found.append(HERE)
        elif not simple.num_symbols:
            found.append(Place(simple))
        else:
            found.append(Place(simple, (*place.origins, instruction) if own.num_symbols else place.origins))
    return found


@lru_cache(maxsize=4096)
def _composed(place: IndexingMap | None, own: IndexingMap) -> IndexingMap:
    """The operand's index as a map from the function's indices, in the form that is compared."""
    return remove_unused_symbols((own if place is None else place.then(own)).simplify())
