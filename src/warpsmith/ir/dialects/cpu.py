"""The xla_cpu dialect: what only CPU kernels have."""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Effect, OpRow, Value
from warpsmith.ir.core.types import element_type, with_element
from warpsmith.ir.dialects import memory_rules as rules
from warpsmith.ir.text.format import described

ROWS = [
    # result lane = table[the bits of the value's lane, unsigned]; the value's type is 8 or 16 bits wide.
    OpRow(
        "xla_cpu.lookup",
        ("table", "value"),
        effects=((Effect.READ, "table"),),
        form=described(" $table[$value]{} : type(table), type(value) -> type(r0)"),
        result_hint="looked_up",
    ),
    # The value's lanes in which the mask holds, side by side from lane 0 on; the lanes after them hold anything.
    OpRow(
        "xla_cpu.compress",
        ("value", "mask"),
        verify=rules.compress,
        form=described(" $value, $mask{} : type(value)", "mask=mask(value) r0=value"),
        result_hint="compressed",
    ),
    # A hint that the line of base[index] is wanted soon, nearer than the last cache; it may lie outside.
    OpRow(
        "xla_cpu.prefetch",
        ("base", "index"),
        (),
        attributes=("elem_type",),
        effects=((Effect.WRITE, "base"),),
        form=described(" $base[$index]{} : type(base)", "index=index"),
    ),
]


def compress(b: Builder, value: Value, mask: Value) -> Value:
    """The lanes of `value` in which `mask` holds, side by side; the lanes after them hold anything."""
    return b.op1("xla_cpu.compress", (value, mask), value.type)


def prefetch(b: Builder, base: Value, index: Value) -> None:
    """Ask for the line of `base[index]`."""
    b.create("xla_cpu.prefetch", (base, index), (), {"elem_type": at.type_attr(element_type(base.type))})


def lookup(b: Builder, table: Value, value: Value) -> Value:
    """The table's entry for each lane of `value`."""
    return b.op1("xla_cpu.lookup", (table, value), with_element(value.type, element_type(table.type)))
