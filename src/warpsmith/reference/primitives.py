"""What each tile primitive means, on whole tiles, in numpy.

Sums, products and elementary functions are done in double precision and rounded once to the type that the primitive
computes in, then to the destination's: what any lowering approximates.  Maximum and minimum carry a NaN on.

Under `rounding_at_random` operands and results are off by about a unit in the last place: how far results of such
runs lie apart is what rounding can do to them (Monte Carlo arithmetic; D. S. Parker, 1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.reference.places import Places
from warpsmith.tile.frontend.checks import squeezed
from warpsmith.tile.model.buffers import region_of
from warpsmith.tile.model.dtypes import TileType, tile_type
from warpsmith.tile.model.ops import TABLE, compute_type
from warpsmith.tile.model.reductions import accumulation_type, has_slots

__all__ = ["MEANINGS", "rounding_at_random"]

Meaning = Callable[[Places, Operation], None]

_PARTIAL = 2.0**-23  # how far partial results round, in float32 or wider


_ROUNDING: ContextVar[np.random.Generator | None] = ContextVar("rounding", default=None)


@contextmanager
def rounding_at_random(seed: int) -> Generator[None]:
    """Primitives that compute round to either side, as `seed` has it."""
    token = _ROUNDING.set(np.random.default_rng(seed))
    try:
        yield
    finally:
        _ROUNDING.reset(token)


def _rounded(values: Array, epsilon: float) -> Array:
    """Floats as they are; under `rounding_at_random` off by about `epsilon` of themselves."""
    rng = _ROUNDING.get()
    if rng is None or values.dtype.kind in "iub":
        return values
    with np.errstate(all="ignore"):
        noise = rng.standard_normal(values.size).reshape(values.shape)
        return np.asarray(values.astype(np.float64) * (1 + epsilon * noise)).astype(values.dtype)


def _exact(function: Callable[..., Array]) -> Callable[..., Array]:
    """A float function in double precision; integers wrap."""

    def apply(*arrays: Array) -> Array:
        dtype = arrays[0].dtype
        with np.errstate(all="ignore"):
            if dtype.kind in "iub":
                return np.asarray(function(*arrays)).astype(dtype)
            return np.asarray(function(*(a.astype(np.float64) for a in arrays))).astype(dtype)

    return apply


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _reciprocal(x: Array) -> Array:
    return 1 / x


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": _rsqrt,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "erf": _erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "sigmoid": _sigmoid,
    "abs": np.abs,
    "neg": np.negative,
    "relu": _relu,
    "square": np.square,
    "reciprocal": _reciprocal,
    "silu": _silu,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fdiv": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


class _Call:
    """One call's operands."""

    def __init__(self, places: Places, op: Operation) -> None:
        self.places, self.op = places, op
        self.groups = places.groups(op)
        self.values: dict[str, Value] = dict(zip(_strings(op, "roles"), op.operands, strict=True))
        self.types: dict[str, TileType] = {
            role: tile_type(name) for role, name in zip(_strings(op, "roles"), _strings(op, "dtypes"), strict=True)
        }
        found = op.attributes.get("config")
        self.config: Mapping[str, at.Attribute] = dict(found.items) if isinstance(found, at.DictAttr) else {}

    def shape(self, role: str) -> tuple[int, ...]:
        return region_of(self.values[role]).extents

    def is_region(self, role: str) -> bool:
        op = self.values[role].defining_op
        return op is not None and op.name == "tile.region"

    def read(self, role: str) -> Array:
        """An operand's elements, [groups, its shape]; a number's, [groups]."""
        value = self.values[role]
        if not self.is_region(role):
            return _typed(self.places.agreed(value, self.groups, role), self.types[role])
        where = self.places.of_region(value, self.groups)[:, 0]
        data = self.places.frame.buffer(value).data[where]
        return _typed(data, self.types[role]).reshape(-1, *self.shape(role))

    def write(self, values: Array) -> None:
        """Write the destination, copies too."""
        where = self.places.of_region(self.values["dst"], self.groups)
        buffer = self.places.frame.buffer(self.values["dst"])
        flat = values.reshape(values.shape[0], 1, -1)
        raw = np.ascontiguousarray(np.broadcast_to(flat, (where.shape[0], 1, where.shape[2]))).view(buffer.data.dtype)
        buffer.data[where] = np.broadcast_to(raw, where.shape)

    def rounded(self, values: Array) -> Array:
        """Results in the destination's type."""
        return _cast(_rounded(values, self.dst.epsilon if self.dst.is_float else 0), self.dst)

    @property
    def dst(self) -> TileType:
        return self.types["dst"]


def _typed(array: Array, type: TileType) -> Array:
    """Signless integers as their author declared them."""
    return (
        array.view(type.numpy)
        if array.dtype != type.numpy and array.dtype.itemsize == type.numpy.itemsize
        else array.astype(type.numpy)
    )


def _strings(op: Operation, name: str) -> list[str]:
    found = op.attributes[name]
    assert isinstance(found, at.ArrayAttr)
    return [each.value for each in found.items if isinstance(each, at.StringAttr)]


def _cast(values: Array, to: TileType) -> Array:
    with np.errstate(all="ignore"):
        if values.dtype == to.numpy:
            return values
        if to.is_integer and values.dtype.kind not in "iub":  # towards zero
            return np.trunc(values.astype(np.float64)).astype(np.int64).astype(to.numpy)
        return values.astype(to.numpy)


def _aligned(call: _Call, role: str) -> Array:
    """A source broadcast against the destination's shape."""
    values = call.read(role)
    wanted = call.shape("dst")
    if not call.is_region(role):
        return values.reshape(-1, *(1,) * len(wanted))
    own = values.shape[1:]
    if len(own) > len(wanted) or any(a not in (1, b) for a, b in zip(own[::-1], wanted[::-1], strict=False)):
        if squeezed(own) == squeezed(wanted):
            return values.reshape(-1, *wanted)
        raise SimulationError(f"{role} of shape {own} against {wanted}")
    return values.reshape(values.shape[0], *(1,) * (len(wanted) - len(own)), *own)


def _copy(places: Places, op: Operation) -> None:
    call = _Call(places, op)
    call.write(_cast(call.read("src"), call.dst))


def _converted(places: Places, op: Operation) -> None:
    call = _Call(places, op)
    values = np.broadcast_to(_aligned(call, "src"), (len(call.groups), *call.shape("dst")))
    call.write(_cast(values, call.dst))


def _elementwise(places: Places, op: Operation) -> None:
    call = _Call(places, op)
    row = TABLE[op.name.removeprefix("tile.")]
    roles = [role for role in row.sources if role in call.values]
    if row.kind == "fill":
        value = _cast(_aligned(call, roles[0]), call.dst) if roles else np.zeros((1,), call.dst.numpy)
        call.write(
            np.broadcast_to(
                value.reshape(value.shape[0], *(1,) * len(call.shape("dst"))), (len(call.groups), *call.shape("dst"))
            )
        )
        return
    if row.kind == "unary" and "src" not in roles:
        roles = ["dst", *roles]
    counted = [role for role in roles if call.is_region(role) and role != "condition"]
    kind = compute_type(call.dst, [call.types[role] for role in counted])
    values = {
        role: _rounded(_cast(_aligned(call, role), kind), kind.epsilon if kind.is_float else 0)
        for role in roles
        if role != "condition"
    }
    source = values.get("src", values.get("dst"))
    if source is not None:
        for role, function in (("scale", np.multiply), ("bias", np.add)):
            if role in values:
                source = _exact(function)(source, values[role])
        result = _exact(_FUNCTIONS[row.name])(source)
    elif row.name == "fma":
        result = _exact(np.add)(_exact(np.multiply)(values["a"], values["b"]), values["c"])
    elif row.name == "select":
        condition = _aligned(call, "condition")
        result = np.where(condition.astype(np.bool_), values["a"], values["b"])
    else:
        result = _exact(_FUNCTIONS[row.name])(values["a"], values["b"])
    call.write(np.broadcast_to(call.rounded(result), (len(call.groups), *call.shape("dst"))))


def _reduction(places: Places, op: Operation) -> None:
    call = _Call(places, op)
    given = call.config["axes"]
    assert isinstance(given, at.DenseArrayAttr)
    axes, name = given.values, op.name.removeprefix("tile.")
    type = accumulation_type(call.dst, call.types["src"])
    values = _rounded(_cast(call.read("src"), type), _PARTIAL if name == "sum" else 0)
    exact = np.dtype(np.float64) if type.is_float else type.numpy
    slots = has_slots(call.shape("dst"), call.shape("src"), axes)
    with np.errstate(all="ignore"):
        if slots and not _flag(call, "thread_reduce"):
            result = _by_thread(call, _REDUCE[name], values.astype(exact), axes)
        else:
            result = _REDUCE[name](values.astype(exact), axis=tuple(1 + axis for axis in axes), keepdims=True)
            result = np.broadcast_to(result, (result.shape[0], *call.shape("dst"))) if slots else result
        result = result.astype(exact).reshape(-1, *call.shape("dst"))
        if _flag(call, "accum"):
            result = _ACCUMULATE[name](result, _cast(call.read("dst"), type).astype(exact))
    result = _cast(result, type)
    call.write(call.rounded(result) if name == "sum" else _cast(result, call.dst))


_REDUCE: dict[str, Callable[..., Array]] = {"sum": np.sum, "max": np.max, "min": np.min}
_ACCUMULATE: dict[str, Callable[..., Array]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def _by_thread(call: _Call, function: Callable[..., Array], values: Array, axes: Sequence[int]) -> Array:
    """Each element of the destination from those of its row that lie in the thread that it lies in."""
    threads: dict[str, Array] = {}
    rows: dict[str, Array] = {}
    for role in ("dst", "src"):
        places = call.places.of_region(call.values[role], call.groups[:1])[0, 0]
        threads[role] = places // call.places.frame.buffer(call.values[role]).size
        shape = call.shape(role)
        kept = tuple(1 if d in axes else extent for d, extent in enumerate(shape))
        number = np.arange(math.prod(kept)).reshape(kept)
        rows[role] = np.broadcast_to(number, shape).reshape(-1)
    flat = values.reshape(values.shape[0], -1)
    found = [
        function(flat[:, (rows["src"] == row) & (threads["src"] == thread)], axis=1)
        for row, thread in zip(rows["dst"], threads["dst"], strict=True)
    ]
    return np.stack(found, axis=1)


def _gemm(places: Places, op: Operation) -> None:
    call = _Call(places, op)
    a, b = (_matrix(call, name) for name in ("a", "b"))
    with np.errstate(all="ignore"):
        result = np.matmul(a, b) * _number(call, "alpha", 1.0)
        if "c" in call.values:
            result = result + call.read("c").reshape(result.shape).astype(np.float64) * _number(call, "beta", 1.0)
        elif _number(call, "beta", 0.0):
            result = result + call.read("dst").reshape(result.shape).astype(np.float64) * _number(call, "beta", 0.0)
    call.write(call.rounded(result))


def _matrix(call: _Call, name: str) -> Array:
    values = _rounded(call.read(name).astype(np.float64), _PARTIAL)
    if values.ndim != 3:
        values = values.reshape(values.shape[0], *squeezed(values.shape[1:]))
    return values.swapaxes(1, 2) if _flag(call, f"transpose_{name}") else values


def _flag(call: _Call, name: str) -> bool:
    found = call.config.get(name)
    return isinstance(found, at.IntegerAttr) and bool(found.value)


def _number(call: _Call, name: str, default: float) -> float:
    found = call.config.get(name)
    return found.value if isinstance(found, at.FloatAttr) else default


MEANINGS: dict[str, Meaning] = {
    "copy": _copy,
    "copy_async": _copy,
    "permute_layout": _copy,
    "gemm": _gemm,
    **dict.fromkeys(("sum", "max", "min"), _reduction),
    **{name: _elementwise for name, row in TABLE.items() if row.kind in ("unary", "binary", "ternary", "fill")},
    "cast": _converted,
}
