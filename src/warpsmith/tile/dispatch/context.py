"""What a variant knows of the call that it is asked to lower: operands, scope, threads, device; and where to build.

In: a primitive's op.  Out: `CallContext`, which predicates read and emitters build with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from warpsmith.devices import Device
from warpsmith.errors import InternalError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import MemRefType
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, Placement, place, refine
from warpsmith.tile.dispatch.irregular import by_coordinates
from warpsmith.tile.dispatch.storage import Storage
from warpsmith.tile.frontend.scalars import Scalars
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.model.active import Active
from warpsmith.tile.model.buffers import RegionInfo, region_of
from warpsmith.tile.model.dtypes import tile_type
from warpsmith.tile.model.ops import TABLE, Primitive
from warpsmith.tile.model.scopes import WARP, WARPGROUP, Launch

__all__ = ["CallContext"]


@dataclass(eq=False)
class CallContext:
    """One call of a primitive."""

    op: Operation
    launch: Launch
    active: Active
    device: Device
    storage: Storage
    b: Builder
    placements: dict[str, Placement] = field(default_factory=dict[str, Placement])
    irregular: dict[str, Placement] = field(default_factory=dict[str, Placement])

    @cached_property
    def row(self) -> Primitive:
        """The primitive that is called."""
        return TABLE[self.op.name.removeprefix("tile.")]

    @cached_property
    def scope(self) -> str:
        """Who calls it together: thread, warp, warpgroup or cta."""
        return self.op.str_attr("scope")

    @cached_property
    def operands(self) -> Mapping[str, RegionInfo | Scalar]:
        """Regions and scalars by their part in the call."""
        found: dict[str, RegionInfo | Scalar] = {}
        for role, dtype, value in zip(
            _strings(self.op, "roles"), _strings(self.op, "dtypes"), self.op.operands, strict=True
        ):
            op = value.defining_op
            is_region = op is not None and op.name == "tile.region"
            found[role] = region_of(value) if is_region else Scalar(value, tile_type(dtype))
        return found

    @cached_property
    def regions(self) -> Mapping[str, RegionInfo]:
        """The operands that are regions of buffers, by role."""
        return {role: each for role, each in self.operands.items() if isinstance(each, RegionInfo)}

    def region(self, role: str) -> RegionInfo:
        """An operand that is a region."""
        return self.regions[role]

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The call's options as Python values."""
        found = self.op.attributes.get("config")
        return {key: _python(value) for key, value in found.items} if isinstance(found, at.DictAttr) else {}

    @property
    def forced(self) -> str | None:
        """The variant that the author asked for."""
        return self.op.str_attr("dispatch") if "dispatch" in self.op.attributes else None

    @property
    def threads(self) -> int:
        """How many threads do the call together."""
        return {"thread": 1, "warp": WARP, "warpgroup": WARPGROUP, "cta": self.launch.threads}.get(self.scope, 0)

    def thread(self) -> Value:
        """This thread's number among those that do the call together."""
        if self.scope == "thread":
            raise InternalError("a call at thread scope has no thread number")
        return self.storage.ids.in_scope(self.scope)

    def place(self, role: str, *, anyhow: bool = False) -> Placement:
        """How an operand lies over its region.  Decline where it can't be said; with `anyhow` not of memory, whose
        elements are then found by their coordinates."""
        if anyhow and role in self.irregular:
            return self.irregular[role]
        if role not in self.placements:
            try:
                self.placements[role] = place(self.region(role), self.scope)
            except Decline:
                if not anyhow or not self.give_way(role):
                    raise
                return self.irregular[role]
        return self.placements[role]

    def give_way(self, *roles: str) -> bool:
        """Find operands' elements by their coordinates from now on; whether that can be done for one more of them."""
        known = len(self.irregular)
        for role in roles:
            found = by_coordinates(self.region(role))
            if found is not None:
                self.irregular.setdefault(role, found)
        return len(self.irregular) > known

    def refined(self, roles: Sequence[str]) -> list[Digit]:
        """The digits of operands, of memory `anyhow`: where layouts don't divide each other, by coordinates."""
        try:
            return refine([self.place(role, anyhow=True) for role in roles])
        except Decline:
            if not self.give_way(*roles):
                raise
            return refine([self.place(role, anyhow=True) for role in roles])

    def memory(self, role: str) -> Value:
        """The flat memory that an operand lies in, for those who move its elements themselves (`moves` does all).

        Decline where the memory has other elements, or keeps copies that would have to be written too.
        """
        buffer = self.region(role).buffer
        flat = self.storage.of(buffer)
        if isinstance(flat.type, MemRefType) and flat.type.element is not buffer.type.ir:
            raise Decline(f"{role} {buffer.name} views memory of {flat.type.element} as {buffer.type}")
        if role == "dst" and any(not step.is_thread for _, step in self.place(role).replicas):
            raise Decline(f"dst {buffer.name} keeps copies of its elements in memory")
        return flat

    @property
    def scalars(self) -> Scalars:
        """Arithmetic on device values, where the call stands."""
        return Scalars(self.b)

    def words(self, *, short: bool = False) -> str:
        """The call as its author wrote it, with all regions spelled out; `short`: whole buffers by name alone.

        Of the options those that make another product of a gemm.
        """
        from warpsmith.tile.printers.expressions import value_text

        prefix = "Tx" if self.scope == "thread" else f"Tx.{self.scope}"
        parts = [
            (each.in_short if short else str(each)) if isinstance(each, RegionInfo) else value_text(each.value)
            for each in self.operands.values()
        ]
        if self.row.name == "gemm":
            plain = {"transpose_a": False, "transpose_b": False, "alpha": 1.0, "beta": float("c" in self.operands)}
            parts += [f"{key}={self.config[key]}" for key, value in plain.items() if self.config[key] != value]
        return f"{prefix}.{self.row.name}({', '.join(parts)})"


def _strings(op: Operation, name: str) -> list[str]:
    found = op.attributes[name]
    if not isinstance(found, at.ArrayAttr):
        raise InternalError(f"'{name}' of {op.name} is no list")
    return [each.value for each in found.items if isinstance(each, at.StringAttr)]


def _python(attribute: at.Attribute) -> Any:
    match attribute:
        case at.IntegerAttr():
            return bool(attribute.value) if attribute.type is at.I1 else attribute.value
        case at.FloatAttr():
            return attribute.value
        case at.StringAttr():
            return attribute.value
        case at.DenseArrayAttr():
            return attribute.values
        case _:
            raise InternalError("an option of a call is a number, a string, or a list of integers")
