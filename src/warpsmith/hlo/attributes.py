"""Typed attribute values: windows, paddings, slices, dimension labels, aliases, metadata, stack frames.

In: fields, from the parser or a caller.  Out: immutable values whose `str` is XLA's text.  Plain attributes need no
class: integers, booleans, words and strings are Python's, lists are tuples.  `attribute_table` says which attribute
takes which value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import final

import numpy as np

from warpsmith.hlo.shapes import AnyShape
from warpsmith.hlo.text.lexer import escape

__all__ = [
    "Alias",
    "ConvDimNumbers",
    "Donor",
    "EntryLayout",
    "FrontendAttributes",
    "IotaGroups",
    "MeshGroups",
    "OpMetadata",
    "PaddingConfig",
    "PaddingDim",
    "RawText",
    "SliceDim",
    "StackFrames",
    "Window",
    "WindowDim",
    "braced",
]


def braced(values: Sequence[object]) -> str:
    """`{1,2,3}`: XLA's list without spaces."""
    return "{" + ",".join(map(str, values)) + "}"


class RawText(str):
    """The verbatim text of a value that nothing here reads: a sharding, a back end's config, a new form."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SliceDim:
    """One dimension of `slice={[start:limit:stride]}`: elements start, start+stride, ... below limit."""

    start: int
    limit: int
    stride: int = 1


@dataclass(frozen=True, slots=True)
class PaddingDim:
    """`low_high_interior`: elements added before, after, and between (low and high may be negative: crop)."""

    low: int = 0
    high: int = 0
    interior: int = 0


@dataclass(frozen=True, slots=True)
class PaddingConfig:
    """`padding=0_1x2_3`: one `PaddingDim` a dimension."""

    dims: tuple[PaddingDim, ...]

    def __str__(self) -> str:
        if any(dim.interior for dim in self.dims):
            return "x".join(f"{dim.low}_{dim.high}_{dim.interior}" for dim in self.dims)
        return "x".join(f"{dim.low}_{dim.high}" for dim in self.dims)


@dataclass(frozen=True, slots=True)
class WindowDim:
    """One dimension of a window.  In text: size, stride, pad (low_high), lhs_dilate (base_dilation), rhs_dilate
    (window_dilation), rhs_reversal (reversal)."""

    size: int
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    reversal: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """`window={size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=2x1 rhs_dilate=1x2 rhs_reversal=1x0}`."""

    dims: tuple[WindowDim, ...]

    def __str__(self) -> str:
        dims = self.dims
        parts: list[str] = []
        if dims:
            parts.append("size=" + "x".join(str(dim.size) for dim in dims))
        if any(dim.stride != 1 for dim in dims):
            parts.append("stride=" + "x".join(str(dim.stride) for dim in dims))
        if any(dim.pad_low or dim.pad_high for dim in dims):
            parts.append("pad=" + "x".join(f"{dim.pad_low}_{dim.pad_high}" for dim in dims))
        if any(dim.base_dilation != 1 for dim in dims):
            parts.append("lhs_dilate=" + "x".join(str(dim.base_dilation) for dim in dims))
        if any(dim.window_dilation != 1 for dim in dims):
            parts.append("rhs_dilate=" + "x".join(str(dim.window_dilation) for dim in dims))
        if any(dim.reversal for dim in dims):
            parts.append("rhs_reversal=" + "x".join("1" if dim.reversal else "0" for dim in dims))
        return "{" + " ".join(parts) + "}"


@dataclass(frozen=True, slots=True)
class ConvDimNumbers:
    """`dim_labels=b01f_01io->b01f`: where batch, feature and space lie in input, kernel and output."""

    lhs: str
    rhs: str
    output: str

    def __str__(self) -> str:
        return f"{self.lhs}_{self.rhs}->{self.output}"


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """`replica_groups=[2,4]<=[4,2]T(1,0)`: devices 0, 1, ... in the shape `reshape`, transposed, dealt into `dims`."""

    dims: tuple[int, ...]
    reshape: tuple[int, ...]
    transpose: tuple[int, ...] = ()

    def __str__(self) -> str:
        text = f"[{','.join(map(str, self.dims))}]<=[{','.join(map(str, self.reshape))}]"
        return text + (f"T({','.join(map(str, self.transpose))})" if self.transpose else "")


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """`replica_groups=mesh['a'=2,'b'=4] {'b':(1)2}`: devices in a mesh, grouped along some of its axes.

    `axes` is (name, size); `ids` the devices in mesh order; `along` is (name, part before, size) of each grouping axis:
    `'b':(1)2` takes the 2 in the middle when `b` is split into 1 x 2 x the rest, a whole axis has `(0, 0)`.  `text` is
    one spelling of it.
    """

    axes: tuple[tuple[str, int], ...]
    ids: tuple[int, ...]
    along: tuple[tuple[str, int, int], ...]
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The devices of each group, group after group."""
        sizes: list[int] = []
        parts: list[tuple[str, int]] = []  # of each dim of the split mesh: its axis, and which of its parts it is
        for name, size in self.axes:
            cuts = sorted({1, size}.union(*({before, before * n} for a, before, n in self.along if a == name and n)))
            for low, high in pairwise(cuts):
                sizes.append(high // low)
                parts.append((name, low))
        ordered: list[int] = []
        for name, before, size in self.along:
            end = before * size if size else dict(self.axes)[name]
            ordered += [i for i, (axis, low) in enumerate(parts) if axis == name and max(before, 1) <= low < end]
        others = [i for i in range(len(sizes)) if i not in ordered]
        count = prod(sizes[i] for i in ordered)
        dealt = np.array(self.ids).reshape(sizes).transpose(others + ordered).reshape(-1, count)
        return tuple(tuple(int(each) for each in row) for row in dealt)


@dataclass(frozen=True, slots=True)
class Alias:
    """`{output}: (number, {index}, kind)`: an output element that shares memory with part of an input.

    `number` counts parameters (of the module) or operands (of an instruction); `kind` is empty where none is written.
    """

    output: tuple[int, ...]
    number: int
    index: tuple[int, ...]
    kind: str = ""

    def __str__(self) -> str:
        kind = f", {self.kind}" if self.kind else ""
        return f"{braced(self.output)}: ({self.number}, {braced(self.index)}{kind})"


@dataclass(frozen=True, slots=True)
class Donor:
    """`(number, {index})`: part of a parameter whose memory an output may take."""

    number: int
    index: tuple[int, ...]

    def __str__(self) -> str:
        return f"({self.number}, {braced(self.index)})"


@dataclass(frozen=True, slots=True)
class EntryLayout:
    """`entry_computation_layout={(parameters)->result}`."""

    parameters: tuple[AnyShape, ...]
    result: AnyShape

    def __str__(self) -> str:
        parts: list[str] = []
        for index, shape in enumerate(self.parameters):
            comma = "" if index == 0 else f", /*index={index}*/" if index % 5 == 0 else ", "
            parts.append(comma + str(shape))
        return f"{{({''.join(parts)})->{self.result}}}"


def _value_text(value: object) -> str:
    """A field's value: strings in quotes, raw text and numbers as they are."""
    if isinstance(value, RawText):
        return value
    return f'"{escape(value)}"' if isinstance(value, str) else str(value)


_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|(-?[0-9]+))')


@final
class OpMetadata:
    """`metadata={op_type="..." op_name="..." source_line=3}`: the fields in the order they were written.

    Nearly every instruction of a real module has one and few are looked at, so what is kept is XLA's text, taken apart
    on demand.  Two are equal when their texts are.
    """

    __slots__ = ("_fields", "_text")

    _fields: tuple[tuple[str, object], ...] | None
    _text: str

    def __init__(self, fields: tuple[tuple[str, object], ...] = ()) -> None:
        self._fields = fields
        self._text = "{" + " ".join(f"{name}={_value_text(value)}" for name, value in fields) + "}"

    @staticmethod
    def of_plain_text(text: str) -> OpMetadata:
        """From XLA's text with braces, whose values are integers and strings without escapes."""
        made = object.__new__(OpMetadata)
        made._fields = None
        made._text = text
        return made

    @property
    def fields(self) -> tuple[tuple[str, object], ...]:
        """The names and their values: strings, integers, or raw text for anything else."""
        if self._fields is None:
            found = _FIELD.findall(self._text)
            self._fields = tuple([(name, int(number) if number else text) for name, text, number in found])
        return self._fields

    def get(self, name: str) -> object | None:
        """The field `name`, or None."""
        return dict(self.fields).get(name)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, OpMetadata) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"OpMetadata({self._text})"


@dataclass(frozen=True, slots=True)
class FrontendAttributes:
    """`frontend_attributes={name="value",other={"a":1}}`: strings, or JSON as raw text."""

    fields: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str | None:
        """The attribute `name`, or None."""
        return dict(self.fields).get(name)

    def __str__(self) -> str:
        return "{" + ",".join(f"{name}={_value_text(value)}" for name, value in self.fields) + "}"


@dataclass(frozen=True, slots=True)
class StackFrames:
    """The tables between header and computations, which `stack_frame_id` of metadata refers to.

    `file_names` and `function_names` are strings; a row of `file_locations` and `stack_frames` is its named integers.
    """

    file_names: tuple[str, ...]
    function_names: tuple[str, ...]
    file_locations: tuple[tuple[tuple[str, int], ...], ...]
    stack_frames: tuple[tuple[tuple[str, int], ...], ...]

    def __str__(self) -> str:
        tables = (
            ("FileNames", [_value_text(name) for name in self.file_names]),
            ("FunctionNames", [_value_text(name) for name in self.function_names]),
            ("FileLocations", [_row_text(row) for row in self.file_locations]),
            ("StackFrames", [_row_text(row) for row in self.stack_frames]),
        )
        return "\n".join(
            f"{title}\n" + "".join(f"{number} {row}\n" for number, row in enumerate(rows, 1)) for title, rows in tables
        )


def _row_text(row: tuple[tuple[str, int], ...]) -> str:
    return "{" + " ".join(f"{name}={value}" for name, value in row) + "}"
