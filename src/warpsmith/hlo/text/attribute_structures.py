"""Reading attribute values that have a form of their own: slices, paddings, windows, dimension labels, groups, aliases.

In: a `Scanner` after `name=`.  Out: the typed value.  The simple ones are in `attribute_readers`.
"""

from __future__ import annotations

import re
from math import prod
from typing import cast

import numpy as np

from warpsmith.errors import BadAttribute, did_you_mean
from warpsmith.hlo.attributes import (
    Alias,
    ConvDimNumbers,
    Donor,
    IotaGroups,
    MeshGroups,
    PaddingConfig,
    PaddingDim,
    SliceDim,
    Window,
    WindowDim,
)
from warpsmith.hlo.text.attribute_readers import FIELD_NAME, bad_value, list_of, read_ints, read_raw, word_of
from warpsmith.hlo.text.lexer import Scanner, checked_int
from warpsmith.hlo.text.shapes import ShapeReader

_SLICE = re.compile(r"\[\s*(-?[0-9]+)\s*:\s*(-?[0-9]+)\s*(?::\s*(-?[0-9]+)\s*)?\]")
_PADDING = re.compile(r"-?[0-9]+_-?[0-9]+(?:_-?[0-9]+)?(?:x-?[0-9]+_-?[0-9]+(?:_-?[0-9]+)?)*")
_DIM_LABELS = re.compile(r"([0-9bf?]*)_([0-9io?]*)->([0-9bf?]*)")
_SIZES = re.compile(r"[0-9]+(?:x[0-9]+)*")
_PADS = re.compile(r"-?[0-9]+_-?[0-9]+(?:x-?[0-9]+_-?[0-9]+)*")
_MESH = re.compile(
    r"mesh\[((?:\s*'[^']*'\s*=\s*[0-9]+\s*,?)*)\s*\]\s*"
    r"(?:,\s*device_ids=\(([^()]*(?:\([^()]*\))?)\))?\s*\{([^{}]*)\}"
)
_MESH_AXIS = re.compile(r"'([^']*)'\s*=\s*([0-9]+)")
_MESH_ALONG = re.compile(r"\s*'([^']*)'\s*(?::\s*\(([0-9]+)\)\s*([0-9]+))?\s*(?:,|$)")
_MESH_ORDER = re.compile(r"\[([0-9,\s]+)\]\s*T\(([0-9,\s]+)\)")
_IOTA = re.compile(r"\[([0-9,\s]+)\]\s*<=\s*\[([0-9,\s]+)\]\s*(?:T\(([0-9,\s]+)\))?")


def read_slice(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{[0:4], [1:9:2]}`: start, limit and stride of each dimension."""

    def item() -> object:
        match = scanner.match(_SLICE)
        if match is None:
            raise bad_value(scanner, "[start:limit] or [start:limit:stride]")
        ints = [checked_int(scanner, part or "1", match.start()) for part in match.groups()]
        return SliceDim(ints[0], ints[1], ints[2])

    return list_of(scanner, item, "a list of slices")


def read_padding(scanner: Scanner, shapes: ShapeReader) -> object:
    """`0_1x2_3_1`: low, high and interior padding of each dimension."""
    match = scanner.match(_PADDING)
    if match is None:
        raise bad_value(
            scanner, "a padding such as 0_1x2_3_1", "write low_high or low_high_interior for each dimension"
        )
    dims: list[PaddingDim] = []
    for part in match.group().split("x"):
        ints = [checked_int(scanner, text, match.start()) for text in part.split("_")]
        dims.append(PaddingDim(*ints))
    return PaddingConfig(tuple(dims))


_WINDOW_FIELDS = {
    "size": _SIZES,
    "stride": _SIZES,
    "lhs_dilate": _SIZES,
    "rhs_dilate": _SIZES,
    "rhs_reversal": _SIZES,
    "pad": _PADS,
}


def read_window(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{size=2x3 stride=1x2 pad=0_0x1_1 ...}`: every field has a value a dimension."""
    start = scanner.skip()
    if not scanner.accept("{"):
        raise bad_value(scanner, "'{' before a window")
    fields: dict[str, list[str]] = {}
    while not scanner.accept("}"):
        match = scanner.match(FIELD_NAME)
        if match is None or match.group(1) not in _WINDOW_FIELDS:
            if match is not None:
                scanner.pos = match.start()
            near = did_you_mean(match.group(1), _WINDOW_FIELDS) if match is not None else None
            raise bad_value(scanner, f"a window field ({', '.join(_WINDOW_FIELDS)})", near)
        name = match.group(1)
        value = scanner.match(_WINDOW_FIELDS[name])
        if value is None:
            raise bad_value(scanner, "low_high for each dimension" if name == "pad" else "sizes such as 3x3")
        if name in fields:
            raise BadAttribute(f"window field '{name}' is given twice", span=scanner.span(match.start(), len(name)))
        fields[name] = value.group().split("x")
    rank = len(fields.get("size", ()))
    for name, values in fields.items():
        if len(values) != rank:
            raise BadAttribute(
                f"window field '{name}' has {len(values)} dimensions, 'size' has {rank}",
                span=scanner.span(start, scanner.pos - start),
            )

    def ints(name: str, default: int) -> list[int]:
        return [checked_int(scanner, text, start) for text in fields[name]] if name in fields else [default] * rank

    pads = [tuple(checked_int(scanner, part, start) for part in text.split("_")) for text in fields.get("pad", ())]
    dims = zip(
        ints("size", 1),
        ints("stride", 1),
        pads or [(0, 0)] * rank,
        ints("lhs_dilate", 1),
        ints("rhs_dilate", 1),
        ints("rhs_reversal", 0),
        strict=True,
    )
    return Window(
        tuple(WindowDim(size, step, pad[0], pad[1], base, win, rev != 0) for size, step, pad, base, win, rev in dims)
    )


def read_dim_labels(scanner: Scanner, shapes: ShapeReader) -> object:
    """`b01f_01io->b01f`: which dimension of a convolution's operands and result is which."""
    match = scanner.match(_DIM_LABELS)
    if match is None:
        raise bad_value(scanner, "dimension labels such as b01f_01io->b01f")
    lhs, rhs, output = match.groups()
    for part in (lhs, rhs, output):
        known = part.replace("?", "")
        if len(set(known)) != len(known):
            raise BadAttribute(
                f"dimension labels '{part}' name one dimension twice",
                span=scanner.span(match.start(), len(match.group())),
            )
    return ConvDimNumbers(lhs, rhs, output)


def read_groups(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{{0,1},{2,3}}`, XLA's iota form `[2,2]<=[4]`, or axes of a mesh: `mesh['a'=2,'b'=4] {'b'}`."""
    if scanner.peek() == "{":
        return read_ints(scanner, shapes)
    if (mesh := scanner.match(_MESH)) is not None:
        return _mesh_groups(scanner, mesh)
    match = scanner.match(_IOTA)
    if match is None:
        return read_raw(scanner, shapes)
    parts = [
        tuple(checked_int(scanner, text.strip(), match.start()) for text in group.split(",")) if group else ()
        for group in match.groups()
    ]
    return IotaGroups(parts[0], parts[1], parts[2])


def _mesh_groups(scanner: Scanner, match: re.Match[str]) -> MeshGroups:
    """Groups along axes of a mesh; BadAttribute where an axis is unknown or doesn't divide as it says."""

    def bad(cause: str) -> BadAttribute:
        return BadAttribute(
            f"replica_groups: {cause}",
            span=scanner.span(match.start(), len(match.group())),
            help="write mesh['axis'=size,...] {'axis', 'axis':(before)size}",
        )

    axes = tuple((name, int(size)) for name, size in _MESH_AXIS.findall(match.group(1)))
    sizes = dict(axes)
    devices = prod(sizes.values())
    along: list[tuple[str, int, int]] = []
    place = 0
    while place < len(match.group(3).rstrip()):
        part = _MESH_ALONG.match(match.group(3), place)
        if part is None or part.group(1) not in sizes:
            raise bad(f"'{match.group(3)[place:].strip()}' doesn't name an axis of the mesh")
        before, size = (int(each or 0) for each in part.group(2, 3))
        if part.group(2) is not None and (not before * size or sizes[part.group(1)] % (before * size)):
            raise bad(f"({before}){size} doesn't divide axis '{part.group(1)}' of size {sizes[part.group(1)]}")
        along.append((part.group(1), before, size))
        place = part.end()
    ids: list[int] = list(range(devices))
    if (order := match.group(2)) is not None:
        if (iota := _MESH_ORDER.fullmatch(order.strip())) is not None:
            dims, perm = ([int(each) for each in group.split(",")] for group in iota.groups())
            if prod(dims) != devices or sorted(perm) != list(range(len(dims))):
                raise bad(f"device_ids {order} don't fill a mesh of {devices} devices")
            ids = [int(each) for each in np.arange(devices).reshape(dims).transpose(perm).reshape(-1)]
        else:
            ids = [int(each) for each in re.findall(r"[0-9]+", order)]
    if sorted(ids) != list(range(devices)) or not devices:
        raise bad(f"the mesh has {devices} devices, and each is named once")
    return MeshGroups(axes, tuple(ids), tuple(along), re.sub(r"\]\s*\{", "] {", match.group()))


def _index(scanner: Scanner) -> tuple[int, ...]:
    ints = list_of(scanner, lambda: scanner.integer("an index"), "an index into a tuple")
    return cast("tuple[int, ...]", ints)


def read_aliases(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{ {0}: (1, {}, may-alias) }`: outputs that share memory with parameters."""

    def item() -> object:
        output = _index(scanner)
        scanner.expect(":", "after an output's index")
        scanner.expect("(", "before what the output shares memory with")
        number = scanner.integer("a number")
        scanner.expect(",", "after the number")
        index = _index(scanner)
        kind = ""
        if scanner.accept(","):
            kind = str(word_of("may-alias", "must-alias")(scanner, shapes))
        scanner.expect(")", "after an alias")
        return Alias(output, number, index, kind)

    return list_of(scanner, item, "a list of aliases")


def read_donors(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{ (0, {}), (1, {2}) }`: parameters whose memory may be taken over."""

    def item() -> object:
        scanner.expect("(", "before a donated buffer")
        number = scanner.integer("a parameter's number")
        scanner.expect(",", "after the parameter's number")
        index = _index(scanner)
        scanner.expect(")", "after a donated buffer")
        return Donor(number, index)

    return list_of(scanner, item, "a list of donated buffers")
