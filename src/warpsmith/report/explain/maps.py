"""Indexing maps in words: which elements a thread touches, how neighbours in a warp lie, what an element is made of.

In: maps from ids to elements (as emitters state them), and from elements of a result to those of an input.  Out:
`Access` and sentences.  What is said of neighbours is counted, lane by lane, in the first block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from warpsmith.hlo.indexing.maps import fusion_indexing
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import Expr, IndexingMap, Values, linearize, parse_map, print_expr
from warpsmith.indexing.nodes import Const, Var
from warpsmith.indexing.points import contains

__all__ = ["Access", "access_of", "dependences", "lane_positions", "position_map", "verb_of"]

_LETTERS = {"th_x": "t", "bl_x": "b", "workgroup_id": "g", "vector_index": "v"}
_VECTOR = "vector_index"


@dataclass(frozen=True, slots=True)
class Access:
    """What threads do to one array: `verb` is "reads" or "writes".

    `map` is the map as text, `position` the place in memory (in elements) as a formula.  Of one thread: `vector`
    neighbours at once, `per_thread` elements in all (at most).  `stride` is the distance of two neighbouring lanes in
    elements, where all pairs have the same; `run` how many elements of a warp's first access lie together.
    """

    name: str
    verb: str
    shape: str
    map: str
    position: str
    vector: int
    per_thread: int
    stride: int | None
    run: int
    words: str


def verb_of(name: str, outputs: Sequence[str]) -> str:
    """What a map to the instruction `name` means."""
    return "writes" if name in outputs else "reads"


def position_map(map: IndexingMap, shape: Shape) -> IndexingMap:
    """The same map to the place in memory, counted in elements."""
    return map.with_results([linearize(map.results, shape.dims, shape.minor_to_major)]).simplify()


def lane_positions(map: IndexingMap, lanes: int, **fixed: int) -> list[int | None]:
    """The first result for threads 0, 1, .. of block 0, other variables at their least; None outside of the domain.

    `fixed` gives variables other values, by name.
    """
    variables = (*map.dim_vars, *map.symbol_vars)
    values: list[Values] = [
        np.arange(lanes, dtype=np.int64) if each.name == "th_x" else fixed.get(each.name, max(0, each.bounds.lower))
        for each in variables
    ]
    dims, symbols = values[: map.num_dims], values[map.num_dims :]
    inside = np.broadcast_to(contains(map, dims, symbols), (lanes,))
    found = np.broadcast_to(np.asarray(map.evaluate(dims, symbols)[0]), (lanes,))
    return [int(place) if there else None for place, there in zip(found, inside, strict=True)]


def access_of(title: str, text: str, instruction: HloInstruction, outputs: Sequence[str], warp: int) -> Access | None:
    """The access that an emitter's map (its title and text) describes; None for a map without points."""
    shape = instruction.shape.leaves()[0]
    map = parse_map(text)
    if map is None or map.known_empty or map.num_results != shape.rank:
        return None
    place = position_map(map, shape)
    per_thread = math.prod(each.size for each in map.symbol_vars)
    vector = next((each.size for each in map.symbol_vars if each.name == _VECTOR), 1) if _unit_step(place) else 1
    lanes = lane_positions(place, warp)
    stride, run = _neighbours(lanes, vector)
    verb = verb_of(instruction.name, outputs)
    active = sum(each is not None for each in lanes)
    words = _head(title, verb, instruction.name, place)
    if warp > 1:
        words += "; " + _lanes(active, warp, stride, run, vector, shape.dtype.bits)
    words += _guard(map)
    return Access(instruction.name, verb, str(shape), text, _formula(place), vector, per_thread, stride, run, words)


def _unit_step(place: IndexingMap) -> bool:
    """Whether the elements of a thread's vector are neighbours in memory."""
    if _VECTOR not in [each.name for each in place.symbol_vars]:
        return False
    first, second = (lane_positions(place, 1, vector_index=i)[0] for i in (0, 1))
    return first is not None and second is not None and second == first + 1


def _neighbours(lanes: Sequence[int | None], vector: int) -> tuple[int | None, int]:
    """The distance between neighbouring lanes, if it is one, and how many elements lie together from the first on."""
    known = [each for each in lanes if each is not None]
    if len(known) < 2:
        return None, vector
    steps = [b - a for a, b in pairwise(known)]
    run = 1
    while run < len(known) and steps[run - 1] == vector:
        run += 1
    return (steps[0] if len(set(steps)) == 1 else None), run * vector


def _formula(place: IndexingMap) -> str:
    """The place as a formula over t (thread), b (block), and a thread's loops."""
    dims = [_LETTERS.get(each.name, each.name) for each in place.dim_vars]
    symbols = [_LETTERS.get(each.name, each.name) for each in place.symbol_vars]
    return print_expr(place.results[0], dims, symbols)


_SUBJECTS = {"thread": "thread t of block b", "work group": "work group g"}


def _head(title: str, verb: str, name: str, place: IndexingMap) -> str:
    who = title.partition(" -> ")[0]
    loops = [f"{_LETTERS.get(v.name, v.name)} = 0..{v.bounds.upper}" for v in place.symbol_vars if v.size > 1]
    over = f", {' and '.join(loops)}" if loops else ""
    return f"{_SUBJECTS.get(who, who)} {verb} element {_formula(place)} of {name}{over}"


def _lanes(active: int, warp: int, stride: int | None, run: int, vector: int, bits: int) -> str:
    """How a warp's lanes lie to one another."""
    if active < 2:
        return f"{active} of a warp's {warp} lanes does so"
    who = "neighbours in a warp" if active == warp else f"the {active} of a warp's {warp} lanes that do so"
    wide = f", {vector * bits} bits each" if vector > 1 else ""
    if stride == 0:
        return f"{who} take the same element"
    if stride == vector:
        return f"{who} are contiguous{wide}"
    if stride is not None:
        return f"{who} lie {abs(stride)} elements apart ({abs(stride) * bits / 8:g} bytes){wide}"
    if run > vector:
        return f"{who} are contiguous in runs of {run} elements{wide}"
    return f"{who} are scattered{wide}"


def _guard(map: IndexingMap) -> str:
    """What those do who have nothing to do."""
    if not map.constraints:
        return ""
    variables = [e.dim_mask.bit_count() + e.symbol_mask.bit_count() for e in map.constraints]
    bounds = all(n > 1 or e in map.results for n, e in zip(variables, map.constraints, strict=True))
    return "; those outside the array do nothing" if bounds else "; the others do nothing"


# --------------------------------------------------------------------------------------------------- output -> input
@dataclass(frozen=True, slots=True)
class Dependence:
    """What an element of `root` needs of a parameter: a map as text, and in words."""

    root: str
    parameter: str
    map: str
    words: str


def dependences(body: HloComputation, roots: Sequence[HloInstruction]) -> list[Dependence]:
    """For each root and parameter the maps from the root's index to the parameter's; unknown ones are left out."""
    listed = body.root.operands if body.root.opcode == "tuple" else (body.root,)
    found: list[Dependence] = []
    for root in roots:
        for parameter, maps in zip(body.parameters, fusion_indexing(body, listed.index(root)), strict=True):
            for map in maps:
                words = _dependence_words(map, root.shape.leaves()[0])
                found.append(Dependence(root.name, parameter.name, str(map), words))
    return found


def _dependence_words(map: IndexingMap, root: Shape) -> str:
    if map.known_empty:
        return "no element"
    count = math.prod(each.size for each in map.range_vars)
    many = f"{count} elements" if count > 1 else "the element"
    partly = ", where it is there" if map.constraints or _narrowed(map, root) else ""
    if map.rt_vars:
        return f"{many} at a place read from memory{partly}"
    if not map.results:
        return "its one element"
    if count == 1 and map.results == IndexingMap.identity(root.dims).results:
        return f"the element at the same index{partly}"
    if count == 1 and _is_permutation(map.results) and len(map.results) == map.num_dims:
        return f"the element whose index takes the dimensions in the order {[_dim(e) for e in map.results]}{partly}"
    if count == 1 and all(isinstance(e, Const) for e in map.results):
        return f"one element for all{partly}"
    return f"{many} at ({', '.join(print_expr(e) for e in map.results)}){partly}"


def _narrowed(map: IndexingMap, root: Shape) -> bool:
    return any(v.size < n for v, n in zip(map.dim_vars, root.dims, strict=False))


def _is_permutation(results: Sequence[Expr]) -> bool:
    ids = [_dim(each) for each in results]
    return -1 not in ids and len(set(ids)) == len(ids)


def _dim(expr: Expr) -> int:
    return expr.id if isinstance(expr, Var) and not expr.is_symbol else -1
