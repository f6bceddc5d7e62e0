"""Edge values as fusions: all batches of a family that read elements of the same types, in one kernel.

In: a family's batches.  Out: `Group`s, each a module whose one fusion has a result a batch, and the arrays to run it
on.  A kernel a batch would be 1,800 kernels; these are about 200.  Shorter batches are filled up with their own
elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from oracle.edge_batch import Batch

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.ulp import ulp_distance

__all__ = ["Group", "groups"]

_RESULTS = 24
"""Results of one kernel at most."""


@dataclass(frozen=True)
class Group:
    """Batches whose operands have these types; `length` elements each."""

    batches: Sequence[Batch]
    length: int

    @property
    def id(self) -> str:
        """The first batch's name, and how many there are."""
        return f"{self.batches[0].id}+{len(self.batches) - 1}"

    @property
    def operands(self) -> list[tuple[DType, Array]]:
        """The distinct operands of all batches."""
        pairs = [pair for batch in self.batches for pair in zip(batch.sources, batch.operands, strict=True)]
        return list({id(array): (dtype, _filled(array, self.length)) for dtype, array in pairs}.values())

    def text(self) -> str:
        """The module: one fusion of all batches."""
        place: dict[int, int] = {}
        for batch in self.batches:
            for array in batch.operands:
                place.setdefault(id(array), len(place))
        parameters = [
            f"  p{i} = {dtype.name}[{self.length}] parameter({i})" for i, (dtype, _) in enumerate(self.operands)
        ]
        body = [*parameters]
        types: list[str] = []
        for i, batch in enumerate(self.batches):
            dims = ",".join(map(str, (self.length, *batch.expected.shape[1:])))
            types.append(f"{batch.target.name}[{dims}]")
            names = ", ".join(f"p{place[id(array)]}" for array in batch.operands)
            body.append(f"  r{i} = {types[-1]} {batch.opcode}({names}){batch.attributes}")
        result = f"({', '.join(types)})"
        results = ", ".join(f"r{i}" for i in range(len(types)))
        names = ", ".join(f"p{i}" for i in range(len(parameters)))
        body.append(f"  ROOT t = {result} tuple({results})")
        entry = [*parameters, f"  ROOT f = {result} fusion({names}), kind=kLoop, calls=all"]
        return "\n".join(["HloModule edges", "all {", *body, "}", "ENTRY e {", *entry, "}", ""])

    def wrong(self, outputs: Sequence[Array]) -> list[str]:
        """A line for each of the first elements that the contract doesn't allow."""
        assert len(outputs) == len(self.batches)
        lines: list[str] = []
        for batch, found in zip(self.batches, outputs, strict=True):
            lines += _beyond(batch, found[: len(batch.expected)])
        return lines


def _beyond(batch: Batch, found: Array) -> list[str]:
    """Elements that aren't the exact ones, nor within the op's bound of them.  Zeros, infinities and NaN are exact."""
    source = batch.sources[0]
    allowed = bound(batch.opcode, source if batch.opcode == "abs" else batch.target)
    if not allowed:
        return batch.wrong(found)
    expected = batch.expected
    if batch.target.is_complex:
        part = np.float32 if batch.target.bits == 64 else np.float64
        found, expected = (np.ascontiguousarray(each).view(part) for each in (found, expected))
        if batch.opcode == "divide":  # docs/numerics.md, "Edge values": the sign of a part that is zero is open
            batch = replace(batch, either_sign=(expected == 0).reshape(-1, 2))
    near = np.isfinite(expected) & (expected != 0) & (ulp_distance(found, expected) <= allowed)
    kept = np.where(near, expected, found).astype(found.dtype)
    return batch.wrong(kept.view(batch.expected.dtype))


def _filled(array: Array, length: int) -> Array:
    return np.resize(array, length) if len(array) < length else array


def groups(batches: Iterable[Batch]) -> Iterator[Group]:
    """The batches by the types that they read."""
    by_types: dict[tuple[object, ...], list[Batch]] = {}
    for batch in batches:
        by_types.setdefault((batch.sources, batch.expected.shape[1:]), []).append(batch)
    for each in by_types.values():
        for start in range(0, len(each), _RESULTS):
            some = each[start : start + _RESULTS]
            yield Group(some, max(len(batch.expected) for batch in some))
