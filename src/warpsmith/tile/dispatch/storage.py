"""Where each buffer lives, and what each id is: the top of a dispatched kernel.

In: a kernel in the tile dialect, its launch.  Out: for every root buffer its flat memory (`memref.global` for shared
memory, `memref.alloca` for registers, the argument for a parameter), and every scope id as arithmetic on the
hardware's.  An allocation is as large as its layout's span, padding included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpsmith.devices import Device
from warpsmith.errors import InvalidTileProgram
from warpsmith.indexing import Expr, add, dim, floordiv, mod, mul
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Location, Operation, Value
from warpsmith.ir.core.types import MemRefType, bit_width, memref
from warpsmith.ir.dialects import gpu, memory, tile
from warpsmith.tile.dispatch.emission import apply
from warpsmith.tile.frontend.source import span_at
from warpsmith.tile.model.buffers import BufferInfo, buffer_of, memory_elements
from warpsmith.tile.model.dtypes import TileType
from warpsmith.tile.model.scopes import WARP, WARPGROUP, Launch, ScopeId, scope_ids_of

__all__ = ["Ids", "Storage"]


class Ids:
    """The hardware's ids, made once at the top of the kernel when they are first wanted."""

    def __init__(self, function: Operation, launch: Launch) -> None:
        self.function = function
        self.launch = launch
        self.made: dict[str, Value] = {}
        self.last: Operation | None = None

    def _builder(self) -> Builder:
        body = self.function.body
        anchor = body.first if self.last is None else self.last.next
        return Builder(body, anchor, self.function.location)

    def _keep(self, key: str, b: Builder, value: Value) -> Value:
        self.made[key] = value
        op = value.defining_op
        if op is not None and op.block is self.function.body and not self._is_before(op):
            self.last = op
        return value

    def _is_before(self, op: Operation) -> bool:
        at_op = self.last
        while at_op is not None:
            if at_op is op:
                return True
            at_op = at_op.prev
        return False

    def hardware(self, kind: str, axis: str) -> Value:
        """threadIdx or blockIdx along an axis."""
        key = f"{kind}.{axis}"
        if key not in self.made:
            b = self._builder()
            extents = self.launch.block if kind == "thread" else self.launch.grid
            make = gpu.thread_id if kind == "thread" else gpu.block_id
            found = self._keep(key, b, make(b, axis, extents["xyz".index(axis)]))
            found.name = f"{'t' if kind == 'thread' else 'b'}{axis}"
            if kind == "thread" and self.launch.threads == self.launch.block[0]:
                found.name = "tid"
        return self.made[key]

    def thread(self) -> Value:
        """The number of the thread in its block, x fastest."""
        x, y, _ = self.launch.block
        if self.launch.threads == x:
            return self.hardware("thread", "x")
        if "thread" not in self.made:
            parts = [self.hardware("thread", axis) for axis in "xyz"]
            expr = add(dim(0), mul(dim(1), x), mul(dim(2), x * y))
            b = self._builder()
            self._keep("thread", b, apply(b, expr, parts, "tid"))
        return self.made["thread"]

    def derived(self, key: str, expr: Expr, hint: str) -> Value:
        """An expression of the thread's number."""
        if key not in self.made:
            thread = self.thread()
            b = self._builder()
            self._keep(key, b, apply(b, expr, [thread], hint))
        return self.made[key]

    def in_scope(self, scope: str) -> Value:
        """The number of the thread in its warp, warpgroup or block."""
        if scope == "warp":
            return self.derived("lane", mod(dim(0), WARP), "lane")
        if scope == "warpgroup":
            return self.derived("tid_in_wg", mod(dim(0), WARPGROUP), "tid_in_wg")
        return self.thread()


_DERIVED: dict[str, tuple[Expr, str]] = {
    "lane_id": (mod(dim(0), WARP), "lane"),
    "warp_id": (floordiv(dim(0), WARP), "warp"),
    "warpgroup_id": (floordiv(dim(0), WARPGROUP), "wg"),
    "warp_id_in_wg": (mod(floordiv(dim(0), WARP), WARPGROUP // WARP), "warp_in_wg"),
    "thread_id_in_wg": (mod(dim(0), WARPGROUP), "tid_in_wg"),
}
_KEYS = {"lane_id": "lane", "thread_id_in_wg": "tid_in_wg"}


class Storage:
    """Flat memory of every root buffer of a kernel."""

    def __init__(self, module: Operation, function: Operation, ids: Ids) -> None:
        self.module = module
        self.function = function
        self.ids = ids
        self.memory: dict[Value, Value] = {}
        self.names: set[str] = {function.str_attr("sym_name")}
        self.shared_bytes = 0
        self.dynamic_bytes = 0  # of them, those that a launch gives
        self.largest: tuple[int, Operation] | None = None
        self.scratches: dict[tuple[str, TileType, int], Value] = {}

    def of(self, buffer: BufferInfo) -> Value:
        """The flat memory that a buffer or view lies in."""
        return self.memory[buffer.root]

    def build(self) -> None:
        """Give every buffer its memory and every id its value."""
        elements = self._narrowest()
        for op in list(self.function.walk()):
            if op.name == "tile.match_buffer":
                self.memory[op.result] = _as_memory_of(op.operands[0], elements.get(op.result))
            elif op.name == "tile.alloc":
                self.memory[op.result] = self._allocate(op, elements.get(op.result))
        for id in scope_ids_of(self.function):
            self._resolve(id)

    def _narrowest(self) -> dict[Value, TileType]:
        """Element types of memory that some view has narrower elements of: theirs, for a wide one is made of these."""
        found: dict[Value, TileType] = {}
        for op in self.function.walk():
            if op.name == "tile.view":
                view = buffer_of(op.result)
                if view.type.bits < found.get(view.root, view.root_type).bits:
                    found[view.root] = view.type
        return found

    def _allocate(self, op: Operation, narrower: TileType | None) -> Value:
        buffer = buffer_of(op.result)
        element = narrower or buffer.type
        elements = memory_elements(buffer.layout, buffer.shape) * (buffer.type.bits // element.bits)
        alignment = op.attributes["alignment"]
        if buffer.is_shared:
            name = self._unique(op.result.name or "shared")
            type = memref((elements,), element.ir, tile.SHARED)
            size = elements * element.bytes
            self.shared_bytes += size
            if buffer.scope == "shared.dyn":
                self.dynamic_bytes += size
            if self.largest is None or size > self.largest[0]:
                self.largest = (size, op)
            return self._shared(name, type, alignment, op.location, is_dynamic=buffer.scope == "shared.dyn")
        if buffer.scope != "local":
            raise InvalidTileProgram(f"'{buffer.name}' is in scope '{buffer.scope}'", span=span_at(op.location))
        b = Builder.at_start(self.function.body, op.location)
        return memory.alloca(b, memref((elements,), element.ir, tile.PRIVATE), 16, op.result.name)

    def _shared(
        self, name: str, type: MemRefType, alignment: at.Attribute, location: Location, *, is_dynamic: bool = False
    ) -> Value:
        """A global in shared memory, and its value at the top of the kernel."""
        attributes: dict[str, at.Attribute] = {
            "sym_name": at.string(name),
            "type": at.type_attr(type),
            "sym_visibility": at.string("private"),
            "initial_value": at.UNIT,
            "alignment": alignment,
        }
        if is_dynamic:
            attributes["tile.dynamic"] = at.UNIT
        Builder.at_start(self.module.body, location).create("memref.global", (), (), attributes)
        b = Builder.at_start(self.function.body, location)
        return b.op1("memref.get_global", (), type, {"name": at.symbol(name)}, name)

    def scratch(self, scope: str, type: TileType, elements: int, device: Device) -> Value | None:
        """Shared memory that calls at one scope use in turn, with a barrier of the scope after each; None when the
        device has no more.  Calls share it only where each group of threads has the same part of it."""
        key = (scope, type, elements)
        if key not in self.scratches:
            static = self.shared_bytes - self.dynamic_bytes + elements * type.bytes
            if static > device.shared_per_block or static + self.dynamic_bytes > device.shared_per_block_optin:
                return None
            self.shared_bytes += elements * type.bytes
            held = memref((elements,), type.ir, tile.SHARED)
            location = self.function.location
            alignment = at.integer_attr(16, at.I64)
            self.scratches[key] = self._shared(self._unique("partials"), held, alignment, location)
        return self.scratches[key]

    def _unique(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self.names:
            candidate, count = f"{name}_{count}", count + 1
        self.names.add(candidate)
        return candidate

    def _resolve(self, id: ScopeId) -> None:
        """Replace a declaration's results."""
        values = self._values(id)
        for result, value in zip(id.op.results, values, strict=True):
            name = result.name
            if name and value.defining_op is not None:
                value.name = name
            result.name = ""
        id.op.replace_by(values)

    def _values(self, id: ScopeId) -> Sequence[Value]:
        count = len(id.op.results)
        if id.kind in ("cta_id", "thread_id"):
            kind = "block" if id.kind == "cta_id" else "thread"
            dims = self.ids.launch.grid if kind == "block" else self.ids.launch.block
            if count == 1 and (id.extents is None or math.prod(dims) == dims[0]):
                return [self.ids.hardware(kind, "x")]
            if count == 1 and kind == "thread":
                return [self.ids.thread()]
            return [self.ids.hardware(kind, axis) for axis in "xyz"[:count]]
        expr, hint = _DERIVED[id.kind]
        whole = self.ids.derived(_KEYS.get(id.kind, id.kind), expr, hint)
        if count == 1:
            return [whole]
        parts: list[Value] = []
        block = 1
        for extent in id.extents or ():
            expr_of_part = mod(floordiv(expr, block), extent)
            parts.append(self.ids.derived(f"{id.kind}/{block}%{extent}", expr_of_part, hint))
            block *= extent
        return parts


def _as_memory_of(argument: Value, narrower: TileType | None) -> Value:
    """A parameter, of narrower elements where a view has them."""
    type = argument.type
    if narrower is not None and isinstance(type, MemRefType):
        length = type.shape[0]
        parts = bit_width(type.element) // narrower.bits
        argument.type = memref((length * parts if length > 0 else length,), narrower.ir)
    return argument
