"""`Tx`: tile primitives, called at a scope: `Tx.warp.copy(dst, src)`, `Tx.sqrt(dst, src)` at thread scope.

In: regions, buffers, numbers.  Out: one `tile` op a call, checked as far as its text tells (`frontend/checks.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError, did_you_mean
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import F64
from warpsmith.ir.dialects import tile
from warpsmith.tile.frontend import checks, subscripts
from warpsmith.tile.frontend.state import KernelState, current
from warpsmith.tile.frontend.values import Buffer, Region, Scalar, Variable, items
from warpsmith.tile.model import ops

__all__ = ["PrimitiveCall", "TilePrimitives", "Tx"]

_OTHER_NAMES = {
    "src1": "a",
    "src2": "b",
    "src3": "c",
    "lhs": "a",
    "rhs": "b",
    "D": "dst",
    "A": "a",
    "B": "b",
    "C": "c",
    "transpose_A": "transpose_a",
    "transpose_B": "transpose_b",
    "cond": "condition",
}
"""What TIRx calls some parameters."""


class PrimitiveCall:
    """One primitive at one scope, ready to be called."""

    def __init__(self, row: ops.Primitive, scope: str) -> None:
        self.row = row
        self.scope = scope
        self.__doc__ = _documentation(row)

    def __call__(
        self,
        *arguments: Any,
        workspace: Mapping[str, Any] | None = None,
        dispatch: str | None = None,
        scope: str | None = None,
        **keywords: Any,
    ) -> None:
        row = self.row
        state = current(f"Tx.{row.name}")
        state.need_device(f"Tx.{row.name}")
        if workspace:
            raise InvalidTileProgram(f"Tx.{row.name} takes no workspace: it needs none")
        given, config = _bound(row, arguments, keywords)
        checks.check_options(row, config)
        operands = {
            name: _operand(state, row, name, value) for name, value in given.items() if name not in _values(row)
        }
        values = {name: value for name, value in given.items() if name in _values(row)}
        config |= checks.check(row, operands, values)
        roles = [name for name in _roles(row) if name in operands]
        tile.call(
            state.b,
            row.name,
            [_value(state, operands[name]) for name in roles],
            roles,
            [_type_name(operands[name]) for name in roles],
            _scope(scope or self.scope),
            {key: _attribute(row, key, value) for key, value in config.items()},
            dispatch,
        )


_OPERANDS = {
    "copy": "dst and src have the same shape (extents of 1 aside) and the same element type: Tx.cast converts.",
    "cast": "src broadcasts to dst's shape, as in numpy, and is converted to dst's type.",
    "fill": "value is a number, rounded to dst's type.",
    "reduce": "dst is src without its reduced dims, or with extent 1 along them.  axes: dims of src, -1 the last one;\n"
    "accum: whether dst's old value takes part.",
    "gemm": "dst[m, n], a[m, k] (or [k, m] with transpose_a), b[k, n] (or [n, k] with transpose_b), c as dst.\n"
    "alpha and beta are numbers that are known while the kernel is read.",
}
_ELEMENTWISE = "Sources broadcast to dst's shape, as in numpy; numbers may stand for them, but not for all."


def _documentation(row: ops.Primitive) -> str:
    """What `help` shows of a primitive: the table's row in full."""
    parts = [f"{row.name}({', '.join(row.parameters)}): {row.summary or f'needs {row.needs}'}"]
    if not row.needs:
        parts.append("Each operand is a buffer, or a region of known extents in elements, in memory of any kind.")
        parts.append(_OPERANDS.get(row.kind, _ELEMENTWISE))
    if row.formula is not None and row.kind != "fill":
        parts.append(f"It computes in {row.legal}.")
    if row.config:
        parts.append(f"Options: {', '.join(sorted(row.config))}.")
    parts.append('All threads of the scope take part.  dispatch="NAME" asks for one lowering.')
    parts.append(
        "InvalidTileProgram for operands that don't fit; DispatchFailed, when the kernel is compiled, where no"
    )
    parts.append("lowering takes their memories and layouts.")
    return "\n".join(parts)


def _scope(name: str) -> str:
    name = "warpgroup" if name == "wg" else name
    if name not in ops.SCOPES:
        raise InvalidTileProgram(f"no scope is called '{name}'", help=f"one of {', '.join(ops.SCOPES)}")
    return name


def _roles(row: ops.Primitive) -> list[str]:
    return [each.rstrip("?=") for each in row.parameters]


def _values(row: ops.Primitive) -> list[str]:
    return [each.rstrip("=") for each in row.parameters if each.endswith("=")]


def _bound(
    row: ops.Primitive, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments by parameter, and the configuration."""
    names = _roles(row)
    if len(arguments) > len(names):
        raise InvalidTileProgram(f"Tx.{row.name} takes ({', '.join(names)}), not {len(arguments)} arguments")
    given = dict(zip(names, arguments, strict=False))
    config: dict[str, Any] = {}
    for key, value in keywords.items():
        name = _OTHER_NAMES.get(key, key) if _OTHER_NAMES.get(key, key) in names else key
        if name in names:
            if name in given:
                raise InvalidTileProgram(f"Tx.{row.name} got '{name}' twice")
            given[name] = value
        elif key in row.config:
            config[key] = value
        else:
            known = [*names, *sorted(row.config)]
            raise InvalidTileProgram(
                f"Tx.{row.name} has no parameter '{key}'", help=did_you_mean(key, known) or f"it has {', '.join(known)}"
            )
    given = {name: value for name, value in given.items() if value is not None}
    for each in row.parameters:
        if each[-1] not in "?=" and each not in given:
            raise InvalidTileProgram(f"Tx.{row.name} lacks '{each}'", help=row.summary)
    return given, config


def _operand(state: KernelState, row: ops.Primitive, name: str, value: Any) -> Region | Scalar | int | float:
    """What a parameter was given; what a tile is filled with is a number."""
    if row.kind == "fill" and name == "value" and isinstance(value, (Buffer, Region)):
        if isinstance(value, Region) and not any(value.kept):
            return subscripts.load(state, value)
        raise InvalidTileProgram(f"Tx.{row.name} takes a number, not a tile", help="Tx.copy(dst, src)")
    if isinstance(value, Buffer):
        return subscripts.full(value)
    if isinstance(value, Variable):
        return state.read(value)
    if isinstance(value, (Region, Scalar, bool, int, float)):
        return value
    raise InvalidTileProgram(f"a tile primitive takes buffers, regions and numbers, not {type(value).__name__}")


def _value(state: KernelState, operand: Region | Scalar | int | float) -> Value:
    if isinstance(operand, Region):
        return subscripts.region_value(state, operand)
    return state.scalars.scalar(operand).value


def _type_name(operand: Region | Scalar | int | float) -> str:
    if isinstance(operand, Region):
        return operand.buffer.type.name
    if isinstance(operand, Scalar):
        return operand.type.name
    return "bool" if isinstance(operand, bool) else "int32" if isinstance(operand, int) else "float32"


def _attribute(row: ops.Primitive, key: str, value: Any) -> at.Attribute:
    if isinstance(value, bool):
        return at.boolean(value)
    if isinstance(value, int):
        return at.integer_attr(value, at.I64)
    if isinstance(value, float):
        return at.float_attr(value, F64)
    if isinstance(value, str):
        return at.string(value)
    listed = items(value)
    if listed is not None and all(isinstance(each, int) for each in listed):
        return at.dense_array(listed)
    raise InvalidTileProgram(f"Tx.{row.name}: {key} can't be {value!r}")


class _AtScope:
    """`Tx.warp` and its like."""

    def __init__(self, scope: str) -> None:
        self._scope = scope

    def __getattr__(self, name: str) -> PrimitiveCall:
        if name.startswith("__"):  # Python asks, not an author
            raise AttributeError(name)
        row = ops.TABLE.get(name)
        if row is None:
            raise TileSyntaxError(f"no tile primitive is called '{name}'", help=self._similar(name))
        return PrimitiveCall(row, self._scope)

    def _similar(self, name: str) -> str:
        """What may have been meant."""
        return did_you_mean(name, ops.TABLE) or f"they are {', '.join(ops.TABLE)}"

    def __dir__(self) -> list[str]:
        return list(ops.TABLE)


class TilePrimitives(_AtScope):
    """`Tx`: primitives at thread scope, and the other scopes."""

    def __init__(self) -> None:
        super().__init__("thread")
        self.thread, self.warp, self.warpgroup = _AtScope("thread"), _AtScope("warp"), _AtScope("warpgroup")
        self.wg, self.cta, self.cluster = self.warpgroup, _AtScope("cta"), _AtScope("cluster")

    def __getattr__(self, name: str) -> PrimitiveCall:
        if name not in ops.TABLE and not name.startswith("__"):
            raise TileSyntaxError(f"Tx has no '{name}'", help=self._similar(name))
        return super().__getattr__(name)

    def _similar(self, name: str) -> str:
        scopes = (*ops.SCOPES, "wg")
        return did_you_mean(name, (*scopes, *ops.TABLE)) or (
            f"its scopes are {', '.join(scopes)}, its primitives {', '.join(ops.TABLE)}"
        )


Tx = TilePrimitives()
