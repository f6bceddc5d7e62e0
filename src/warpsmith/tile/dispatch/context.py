"""What a variant knows of the call that it is asked to lower: operands, scope, threads, device; and where to build.

In: a primitive's op.  Out: `CallContext`, which predicates read and emitters build with.  Reference: tile.md 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from warpsmith.devices import Device
from warpsmith.errors import InternalError
from warpsmith.ir import attributes as at
from warpsmith.ir.builder import Builder
from warpsmith.ir.core import Operation, Value
from warpsmith.tile.active import Active
from warpsmith.tile.buffers import RegionInfo, region_of
from warpsmith.tile.dispatch.digits import Placement, place
from warpsmith.tile.dispatch.storage import Storage
from warpsmith.tile.dtypes import tile_type
from warpsmith.tile.frontend.scalars import Scalars
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.ops import TABLE, Primitive
from warpsmith.tile.scopes import WARP, WARPGROUP, Launch

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

    @cached_property
    def row(self) -> Primitive:
        return TABLE[self.op.name.removeprefix("tile.")]

    @cached_property
    def scope(self) -> str:
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

    def place(self, role: str) -> Placement:
        """How an operand lies over its region.  Decline where it can't be said."""
        if role not in self.placements:
            self.placements[role] = place(self.region(role), self.scope)
        return self.placements[role]

    def memory(self, role: str) -> Value:
        """The flat memory that an operand lies in."""
        return self.storage.of(self.region(role).buffer)

    @property
    def scalars(self) -> Scalars:
        return Scalars(self.b)

    def words(self) -> str:
        """The call as its author wrote it, in short."""
        prefix = "Tx" if self.scope == "thread" else f"Tx.{self.scope}"
        parts = [str(each) if isinstance(each, RegionInfo) else "number" for each in self.operands.values()]
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
