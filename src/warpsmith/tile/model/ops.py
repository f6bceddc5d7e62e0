"""The table of tile primitives: what each is called with, what it computes, and on which types.

In: a primitive's name.  Out: its `Primitive`, which the front end checks calls with, dispatch gets formulas from, and
the documentation is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpsmith.errors import InternalError
from warpsmith.tile.frontend.scalars import Operand, Scalars
from warpsmith.tile.model.dtypes import TileType, common

__all__ = ["SCOPES", "TABLE", "Primitive", "compute_type"]

SCOPES = ("thread", "warp", "warpgroup", "cta", "cluster")

Formula = Callable[[Scalars, Sequence[Operand]], Operand]


@dataclass(frozen=True, slots=True)
class Primitive:
    """One primitive.  `parameters` in the order of the call, dst first; a `?` marks one that may be left out, a `=`
    one that is a Python value.  `sources` names the operands that the formula takes.  `types` says which element types
    it computes in: "float", "number" (floats and integers) or "any"."""

    name: str
    kind: str
    parameters: tuple[str, ...]
    summary: str
    sources: tuple[str, ...] = ()
    types: str = "any"
    formula: Formula | None = None
    config: frozenset[str] = frozenset()
    needs: str = ""

    def takes(self, type: TileType) -> bool:
        """Whether it computes in an element type."""
        if self.types == "float":
            return type.is_float
        return self.types == "any" or type.is_float or type.is_integer

    @property
    def legal(self) -> str:
        """The types it computes in, in words."""
        return {"float": "float types", "number": "float and integer types", "any": "all types"}[self.types]

    def evaluate(self, scalars: Scalars, operands: Sequence[Operand]) -> Operand:
        """The formula at one element's operands, all of one type."""
        if self.formula is None:
            raise InternalError(f"primitive {self.name} has no formula")
        return self.formula(scalars, operands)


def _function(name: str) -> Formula:
    return lambda s, v: s.function(name, v[0])


def _operator(name: str) -> Formula:
    return lambda s, v: s.binary(name, v[0], v[1])


def _reciprocal(s: Scalars, v: Sequence[Operand]) -> Operand:
    return s.binary("div", 1.0, v[0])


def _silu(s: Scalars, v: Sequence[Operand]) -> Operand:
    x = v[0]
    return s.binary("div", x, s.binary("add", 1.0, s.function("exp", s.binary("sub", 0.0, x))))


def _relu(s: Scalars, v: Sequence[Operand]) -> Operand:
    return s.binary("max", v[0], 0)


def _scaled(name: str) -> Formula:
    """f(src * scale + bias); operands that weren't given are left out by whoever calls."""
    return lambda s, v: s.function(name, v[0])


_ROUNDING = frozenset(("rounding_mode", "ftz"))
_CACHE = frozenset(("cache", "l1_evict", "l2_evict", "prefetch_size"))


def _unary(name: str, formula: Formula, types: str = "float", summary: str = "") -> Primitive:
    return Primitive(name, "unary", ("dst", "src?"), summary or f"dst = {name}(src)", ("src",), types, formula)


def _scaled_unary(name: str) -> Primitive:
    summary = f"dst = {name}(src * scale + bias)"
    return Primitive(
        name, "unary", ("dst", "src?", "bias?", "scale?"), summary, ("src", "bias", "scale"), "float", _scaled(name)
    )


def _binary(name: str, op: str, types: str = "number", config: frozenset[str] = _ROUNDING) -> Primitive:
    sign = {"add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b"}.get(op, f"{op}(a, b)")
    return Primitive(name, "binary", ("dst", "a", "b"), f"dst = {sign}", ("a", "b"), types, _operator(op), config)


def _reduction(name: str, op: str, words: str) -> Primitive:
    return Primitive(
        name,
        "reduce",
        ("dst", "src", "axes=", "accum="),
        f"dst = {words} of src over axes",
        ("src",),
        "number",
        _operator(op),
        frozenset(("thread_reduce",)),
    )


def _known(name: str, parameters: tuple[str, ...], needs: str) -> Primitive:
    return Primitive(name, "known", parameters, "", needs=needs)


_ROWS = (
    Primitive("copy", "copy", ("dst", "src"), "dst = src", ("src",), config=_CACHE),
    Primitive("copy_async", "copy", ("dst", "src"), "dst = src, not awaited", ("src",), config=_CACHE | {"mbar"}),
    Primitive("cast", "cast", ("dst", "src"), "dst = src in dst's type", ("src",)),
    Primitive("fill", "fill", ("dst", "value"), "dst = value", ("value",), formula=lambda s, v: v[0]),
    Primitive("memset", "fill", ("dst", "value"), "dst = value", ("value",), formula=lambda s, v: v[0]),
    Primitive("zero", "fill", ("dst", "src?"), "dst = 0", (), formula=lambda s, v: 0),
    *(_scaled_unary(name) for name in ("sqrt", "exp", "exp2", "log2")),
    *(
        _unary(name, _function(name))
        for name in ("log", "rsqrt", "tanh", "sin", "cos", "erf", "floor", "ceil", "sigmoid")
    ),
    _unary("abs", _function("abs"), "number"),
    _unary("neg", lambda s, v: s.negate(v[0]), "number", "dst = -src"),
    _unary("relu", _relu, "number", "dst = max(src, 0)"),
    _unary("square", lambda s, v: s.binary("mul", v[0], v[0]), "number", "dst = src * src"),
    _unary("reciprocal", _reciprocal, "float", "dst = 1 / src"),
    _unary("silu", _silu, "float", "dst = src / (1 + exp(0 - src))"),
    _binary("add", "add"),
    _binary("sub", "sub"),
    _binary("mul", "mul"),
    _binary("fdiv", "div", types="float", config=frozenset()),
    _binary("maximum", "max", config=frozenset()),
    _binary("minimum", "min", config=frozenset()),
    Primitive(
        *("fma", "ternary", ("dst", "a", "b", "c"), "dst = a * b + c, rounded twice", ("a", "b", "c"), "number"),
        formula=lambda s, v: s.binary("add", s.binary("mul", v[0], v[1]), v[2]),
        config=_ROUNDING,
    ),
    Primitive(
        *("select", "ternary", ("dst", "condition", "a", "b"), "dst = a where condition, else b"),
        ("condition", "a", "b"),
        formula=lambda s, v: s.select(v[0], v[1], v[2]),
    ),
    _reduction("sum", "add", "the sum"),
    _reduction("max", "max", "the largest"),
    _reduction("min", "min", "the least"),
    Primitive(
        "gemm",
        "gemm",
        ("dst", "a", "b", "c?", "transpose_a=", "transpose_b=", "alpha=", "beta="),
        "dst = alpha * a b + beta * c",
        ("a", "b", "c"),
        "float",
    ),
    _known("gemm_async", ("dst", "a", "b"), "tcgen05 matrix units (compute capability 10)"),
    Primitive("permute_layout", "copy", ("dst", "src"), "dst = src, in dst's layout", ("src",)),
    _known("binary_reduce", ("dst", "reduced", "a", "b", "op=", "reduce_op=", "axes="), "a Trainium core"),
    _known("unary_reduce", ("dst", "reduced", "src", "op=", "reduce_op=", "axes="), "a Trainium core"),
    _known("binary_chain", ("dst", "a", "b", "c", "op0=", "op1="), "a Trainium core"),
    _known("reduce_negate", ("dst", "src", "axes="), "a Trainium core"),
    _known("compose_op", ("dst",), "a Trainium core"),
)

TABLE: dict[str, Primitive] = {row.name: row for row in _ROWS}


def compute_type(dst: TileType, sources: Sequence[TileType]) -> TileType:
    """The type an elementwise primitive computes in: that in which its sources meet, and dst's where that is wider."""
    if not sources:
        return dst
    found = sources[0]
    for each in sources[1:]:
        found = common(found, each)
    if dst.is_float and (not found.is_float or dst.bits > found.bits):
        return dst
    return dst if dst.kind == found.kind and dst.bits > found.bits else found
