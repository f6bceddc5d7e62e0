"""Random elementwise primitives: the whole table, on registers or shared memory, for `random_programs.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.tile.random_layouts import DTYPES, SCOPES, Factor, Registers, register_tile, scope_threads
from tests.tile.random_text import SHAPES, Around, indented, kernel, shared, sync_of
from warpsmith.tile.model.ops import TABLE

FLOATS = ("float32", "float32", "float16", "bfloat16", "float64")
NUMBERS = (*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LEGAL = {"float": FLOATS, "number": NUMBERS, "any": NUMBERS}
ELEMENTWISE = [name for name, row in TABLE.items() if row.kind in ("unary", "binary", "ternary", "cast", "fill")]
EXACT = ("abs", "neg", "relu", "maximum", "minimum", "add")
"""What may follow an approximation without making more of its error."""


def _narrowed(r: random.Random, tile: Registers) -> Registers:
    """A tile that broadcasts: some dims of extent 1, their threads having copies."""
    dims, copies = list(tile.dims), list(tile.copies)
    for d in range(len(dims)):
        if r.random() < 0.5:
            copies += [f for f in dims[d] if f.axis]
            dims[d] = (Factor(1, 1),)
    return Registers(tuple(dims), tuple(copies), tile.offset, tile.whole)


@dataclass
class _Call:
    """One call under construction: the tiles made so far, the copies that fill them, and their parameters."""

    r: random.Random
    scope: str
    tile: Registers
    shape: Sequence[int]
    where: str
    made: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)
    parameters: list[tuple[str, Sequence[int], str, str]] = field(default_factory=list)

    def operand(self, dtype: str, *, narrow: bool = False, fill: bool = True) -> str:
        """A new tile (or a region of one), filled from a parameter of its own; narrow ones broadcast."""
        r, name = self.r, f"X{len(self.made)}"
        if self.where == "local":
            held = _narrowed(r, self.tile) if narrow else self.tile
            extents, text = list(held.shape), name
            self.made.append(held.allocation(name, dtype))
        else:
            extents = [1 if narrow and r.random() < 0.5 else e for e in self.shape]
            if narrow and len(extents) > 1 and r.random() < 0.3:
                extents = extents[1:]
            around = Around(r, extents, 0.3)
            text = around.of(name)
            self.made.append(shared(r, name, around.shape, dtype))
        if fill:
            source = f"A{len(self.parameters)}"
            self.filled.append(f"Tx.{self.scope}.copy({text}, {source})")
            self.parameters.append((source, extents, dtype, ""))
        return text


def _sources(call: _Call, name: str, dtype: str, first: str | None) -> list[str]:
    """The sources of a primitive: tiles of the same type mostly, one of them perhaps a number; `first` where given."""
    r, row = call.r, TABLE[name]
    roles = [role for role in row.sources if role not in ("bias", "scale")]
    found = [] if first is None else [first]
    numbers = [role for role in roles[len(found) :] if role != "condition"] if len(roles) > 1 else []
    number = r.choice(numbers) if numbers and r.random() < 0.3 else ""
    for role in roles[len(found) :]:
        if role == number:
            found.append(r.choice(("2", "3") if dtype[0] in "iu" else ("0.5", "2.0", "3")))
            continue
        own = r.choice(LEGAL[row.types]) if r.random() < 0.2 else dtype
        if row.kind == "cast":
            own = r.choice(DTYPES)
        if role == "condition":
            own = r.choice(("bool", "int32", "uint8"))
        found.append(call.operand(own, narrow=r.random() < 0.35))
    return found


def _options(call: _Call, name: str, dtype: str) -> str:
    r, row, text = call.r, TABLE[name], ""
    if "bias" in row.sources:
        text += r.choice(("", ", scale=0.5"))
        bias = r.choice(("", "", "0.25", "tile"))
        text += f", bias={call.operand(dtype, narrow=True) if bias == 'tile' else bias}" if bias else ""
    if "rounding_mode" in row.config and r.random() < 0.2:
        text += ', rounding_mode="rn"'
    return text


def elementwise_program(seed: int) -> str:
    """One primitive of the table on tiles in registers or shared memory, and perhaps an exact one after it."""
    r = random.Random(seed)
    scope, block = r.choice((*SCOPES, ("thread", 32)))
    where, name = r.choice(("local", "shared")), r.choice(ELEMENTWISE)
    row = TABLE[name]
    dtype = r.choice(DTYPES if row.kind == "cast" else LEGAL[row.types])
    tile = register_tile(r, scope, scope_threads(scope, block), rank=r.choice((1, 2, 2, 3)), partial=r.random() < 0.2)
    shape = tile.shape if where == "local" else r.choice(SHAPES)
    call = _Call(r, scope, tile, shape, where)
    in_place = row.kind in ("unary", "binary") and r.random() < 0.25
    dst = call.operand(dtype, fill=in_place or r.random() < 0.2)
    options = ""
    if row.kind == "fill":
        given = [] if name == "zero" else [r.choice(("0", "1", "3") if dtype[0] in "iu" else ("0.0", "1.5", "-2.0"))]
    elif in_place and row.kind == "unary":
        given = r.choice(([], [dst]))
        options = _options(call, name, dtype) if given else ""
    else:
        given = _sources(call, name, dtype, dst if in_place else None)
        options = _options(call, name, dtype)
    calls = [f"Tx.{scope}.{name}({', '.join([dst, *given])}{options})"]
    if dtype in NUMBERS and r.random() < 0.3:
        then = r.choice(EXACT)
        calls.append(f"Tx.{scope}.{then}({dst}, {dst}{', 2' if then in ('maximum', 'minimum', 'add') else ''})")
    sync = sync_of(scope) if where == "shared" and scope != "thread" else ""
    guards = {("warpgroup", 256): "if tid < 128:", ("thread", 32): "if tid == 3:"}
    lines = [*call.made, guards.get((scope, block), "")]
    lines += indented(lines, [*call.filled, sync, *calls, sync, f"Tx.{scope}.copy(B, {dst})"])
    return kernel(lines, [*call.parameters, ("B", shape, dtype, "")], block)
