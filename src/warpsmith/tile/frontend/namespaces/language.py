"""`T`: what a kernel's author says about parameters, buffers, ids, scalars and synchronisation.

Each function acts on the kernel that is being read (`state.current()`); outside one it is an error.  Spelling is the
peer's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from warpsmith.errors import InvalidTileProgram, TileSyntaxError
from warpsmith.tile import layout as layouts
from warpsmith.tile.frontend import numbers, views
from warpsmith.tile.frontend.namespaces import cuda_functions, loops, ptx_functions
from warpsmith.tile.frontend.namespaces import scopes as scope_ids
from warpsmith.tile.frontend.namespaces.annotations import Buffer, Constexpr, DTypeName, Handle, Let
from warpsmith.tile.frontend.objects import META_CLASSES
from warpsmith.tile.frontend.state import current
from warpsmith.tile.frontend.subscripts import shape_values
from warpsmith.tile.frontend.values import Buffer as BufferValue
from warpsmith.tile.frontend.values import Inline, Parameter, Scalar
from warpsmith.tile.model import dtypes as dt
from warpsmith.tile.model.buffers import buffer_of
from warpsmith.tile.program import jit, prim_func

__all__ = [
    "Buffer",
    "ComposeLayout",
    "R",
    "S",
    "Select",
    "TileLayout",
    "abs",
    "alloc_buffer",
    "alloc_local",
    "alloc_shared",
    "bfloat16",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "cast",
    "ceil",
    "ceildiv",
    "cluster_id",
    "constexpr",
    "cos",
    "cta_id",
    "cta_id_in_cluster",
    "cta_id_in_pair",
    "cuda",
    "decl_buffer",
    "device_entry",
    "erf",
    "evaluate",
    "exp",
    "exp2",
    "filter",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "func_attr",
    "grid",
    "handle",
    "if_then_else",
    "infinity",
    "inline",
    "int8",
    "int16",
    "int32",
    "int64",
    "jit",
    "lane_id",
    "let",
    "log",
    "log1p",
    "log2",
    "log10",
    "match_buffer",
    "max",
    "max_value",
    "meta_class",
    "meta_var",
    "min",
    "min_value",
    "nan",
    "pow",
    "prim_func",
    "ptx",
    "reinterpret",
    "round",
    "rsqrt",
    "serial",
    "shape",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sin",
    "sqrt",
    "tan",
    "tanh",
    "thread_binding",
    "thread_id",
    "thread_id_in_wg",
    "trunc",
    "truncdiv",
    "truncmod",
    "tvm_warp_shuffle",
    "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_up",
    "tvm_warp_shuffle_xor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unroll",
    "vectorized",
    "warp_id",
    "warp_id_in_wg",
    "warpgroup_id",
]

_Class = TypeVar("_Class")
TileLayout, ComposeLayout, S, R = layouts.TileLayout, layouts.ComposeLayout, layouts.S, layouts.R
serial, unroll, vectorized, grid, thread_binding = (
    loops.serial,
    loops.unroll,
    loops.vectorized,
    loops.grid,
    loops.thread_binding,
)
cuda, ptx = cuda_functions.CudaFunctions(), ptx_functions.PtxFunctions()
tvm_warp_shuffle = cuda_functions.warp_shuffle
tvm_warp_shuffle_up = cuda_functions.warp_shuffle_up
tvm_warp_shuffle_down = cuda_functions.warp_shuffle_down
tvm_warp_shuffle_xor = cuda_functions.warp_shuffle_xor


# --------------------------------------------------------------------------------------------------- types, parameters
float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2 = (
    DTypeName(dt.BY_NAME[name])
    for name in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
)
int8, int16, int32, int64, uint8, uint16, uint32, uint64 = (
    DTypeName(dt.BY_NAME[f"{sign}int{bits}"]) for sign in ("", "u") for bits in (8, 16, 32, 64)
)
bool = DTypeName(dt.BOOL)


let, handle, constexpr = Let(), Handle(), Constexpr()


class _InlineDecorator:
    """`@T.inline`: a macro, expanded where it is called; its names are looked up where it stands."""

    is_inline_decorator = True

    def __call__(self, function: Callable[..., Any]) -> Inline:
        from warpsmith.tile.program import captured_names, source_of

        source = source_of(function)
        return Inline(source.node, captured_names(function, 2), source.file)


inline = _InlineDecorator()


def meta_class(made: type[_Class]) -> type[_Class]:
    """A class whose objects a kernel makes while it is read: fields hold buffers, `@T.inline` methods are macros."""
    META_CLASSES.add(made)
    return made


def meta_var(value: Any) -> Any:
    """The value itself: a Python value that is put in wherever its name stands."""
    return value


def func_attr(attributes: dict[str, Any]) -> None:
    """Attributes of the kernel: `launch_bounds_min_blocks_per_sm`; `global_symbol` names it."""
    state = current("T.func_attr")
    for key, value in attributes.items():
        if key == "launch_bounds_min_blocks_per_sm":
            state.options[key] = int(value)
        elif key == "global_symbol":
            state.rename(str(value))
        elif key not in ("tir.noalias", "tirx.noalias"):
            raise InvalidTileProgram(
                f"a kernel has no attribute '{key}'", help="launch_bounds_min_blocks_per_sm, global_symbol"
            )


# -------------------------------------------------------------------------------------------------------------- buffers
def match_buffer(
    param: Parameter,
    shape: Any,
    dtype: Any = "float32",
    *,
    strides: Sequence[int] | None = None,
    elem_offset: int = 0,
    scope: str = "global",
    align: int = 16,
    offset_factor: int = 1,
    layout: Any = "default",
) -> BufferValue:
    """Give a handle its shape, dtype and layout (default: row-major, dense)."""
    if type(param).__name__ != "Parameter":
        raise InvalidTileProgram("T.match_buffer binds a parameter that is a T.handle")
    if scope != "global":
        raise InvalidTileProgram(f"a parameter is in global memory, not in {scope}")
    if offset_factor < 1:
        raise InvalidTileProgram("offset_factor is at least 1")
    return views.match(current("T.match_buffer"), param, shape, dtype, strides, elem_offset, align, layout)


def alloc_buffer(
    shape: Any, dtype: Any = "float32", scope: str = "global", layout: Any = "default", align: int = 64, **options: Any
) -> BufferValue:
    """Memory of the kernel's own: scope "shared" (a block's), "shared.dyn", or "local" (a thread's registers)."""
    if options:
        raise InvalidTileProgram(f"T.alloc_buffer has no option '{next(iter(options))}'")
    return views.allocate(current("T.alloc_buffer"), shape, dtype, scope, layout, align)


def alloc_shared(shape: Any, dtype: Any = "float32", layout: Any = "default", align: int = 64) -> BufferValue:
    """`alloc_buffer` in the block's shared memory."""
    return alloc_buffer(shape, dtype, "shared", layout, align)


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Sequence[int] | None = None,
    elem_offset: int = 0,
    scope: str | None = None,
    align: int = 64,
    layout: Any = "default",
) -> BufferValue:
    """Another buffer over the memory that `data` (a buffer's `.data`) points at; without one, `alloc_buffer`."""
    state = current("T.decl_buffer")
    if data is None:
        return views.allocate(state, shape, dtype, scope or "global", layout, align)
    if not isinstance(data, BufferValue):
        raise InvalidTileProgram(f"data= is a buffer's .data, not {type(data).__name__}")
    where = buffer_of(data.value).scope
    if scope is not None and scope != where:
        raise InvalidTileProgram(f"the memory of '{data.value.name}' is {where}, not {scope}")
    return views.declare(state, data, shape, dtype, strides, elem_offset, layout)


def alloc_local(shape: Any, dtype: Any = "float32", layout: Any = "default", align: int = 64) -> BufferValue:
    """`alloc_buffer` in registers."""
    return alloc_buffer(shape, dtype, "local", layout, align)


def device_entry() -> None:
    """All that follows runs on the device."""
    state = current("T.device_entry")
    if state.in_device:
        raise TileSyntaxError("T.device_entry() stands once in a kernel")
    state.in_device = True
    state.b.create("tile.device_entry")


def _id(kind: str) -> Callable[..., Any]:
    def declare(extents: Any = None, *, preferred: Any = None, dtype: str = "int32") -> Any:
        return scope_ids.declare(current(f"T.{kind}"), kind, extents, preferred, dtype)

    declare.__name__ = kind
    declare.__doc__ = f"The {kind.replace('_', ' ')}, of so many; without extents their number is inferred."
    return declare


cluster_id, cta_id, cta_id_in_cluster, cta_id_in_pair = map(
    _id, ("cluster_id", "cta_id", "cta_id_in_cluster", "cta_id_in_pair")
)
warpgroup_id, warp_id, warp_id_in_wg = map(_id, ("warpgroup_id", "warp_id", "warp_id_in_wg"))
lane_id, thread_id, thread_id_in_wg = map(_id, ("lane_id", "thread_id", "thread_id_in_wg"))


# -------------------------------------------------------------------------------------------------------------- scalars
def _number(value: Any) -> Any:
    """A scalar or Python number out of what an author may hand over."""
    return numbers.number(current(), value)


def cast(value: Any, dtype: Any) -> Scalar:
    """Convert a scalar."""
    return current("T.cast").scalars.cast(_number(value), views.type_of(dtype))


def _function(name: str) -> Callable[[Any], Any]:
    def apply(value: Any) -> Any:
        return current(f"T.{name}").scalars.function(name, _number(value))

    apply.__name__, apply.__doc__ = name, f"{name} of a scalar."
    return apply


def _operator(name: str, shown: str) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        return current(f"T.{shown}").scalars.binary(name, _number(a), _number(b))

    apply.__name__, apply.__doc__ = shown, f"{shown} of two scalars."
    return apply


sqrt, rsqrt, exp, exp2, log, log2, log10, log1p, tanh, sigmoid = map(
    _function, ("sqrt", "rsqrt", "exp", "exp2", "log", "log2", "log10", "log1p", "tanh", "sigmoid")
)
sin, cos, tan, erf, floor, ceil, trunc, round, abs = map(
    _function, ("sin", "cos", "tan", "erf", "floor", "ceil", "trunc", "round", "abs")
)
max, min, floordiv, floormod = (
    _operator("max", "max"),
    _operator("min", "min"),
    _operator("floordiv", "floordiv"),
    _operator("mod", "floormod"),
)
pow, truncdiv, truncmod = _operator("pow", "pow"), _operator("truncdiv", "truncdiv"), _operator("truncmod", "truncmod")
bitwise_and, bitwise_or, bitwise_xor, shift_left, shift_right = (
    _operator("and", "bitwise_and"),
    _operator("or", "bitwise_or"),
    _operator("xor", "bitwise_xor"),
    _operator("shl", "shift_left"),
    _operator("shr", "shift_right"),
)


def ceildiv(a: Any, b: Any) -> Any:
    """How many parts of `b` cover `a`, both not negative."""
    binary = current("T.ceildiv").scalars.binary
    return binary("floordiv", binary("sub", binary("add", _number(a), _number(b)), 1), _number(b))


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    return current("T.fma").scalars.fma(_number(a), _number(b), _number(c))


def if_then_else(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b; both are computed."""
    return current("T.if_then_else").scalars.select(_number(condition), _number(a), _number(b))


Select = if_then_else


def filter(var: Any, condition: Any) -> Any:
    """The condition itself: which threads it leaves is seen without this wrapper."""
    return condition


def evaluate(value: Any) -> None:
    """An expression as a statement."""


def reinterpret(dtype: Any, value: Any) -> Scalar:
    """The same bits as a scalar of another type that is as wide."""
    return current("T.reinterpret").scalars.reinterpret(_number(value), views.type_of(dtype))


def nan(dtype: Any = "float32") -> Scalar:
    """Not a number."""
    return current("T.nan").scalars.constant(float("nan"), views.type_of(dtype))


def infinity(dtype: Any = "float32") -> Scalar:
    """Positive infinity."""
    return current("T.infinity").scalars.constant(float("inf"), views.type_of(dtype))


def min_value(dtype: Any) -> Scalar:
    """The least finite value of a type."""
    return current("T.min_value").scalars.constant(_limits(dtype)[0], views.type_of(dtype))


def max_value(dtype: Any) -> Scalar:
    """The largest finite value of a type."""
    return current("T.max_value").scalars.constant(_limits(dtype)[1], views.type_of(dtype))


def _limits(dtype: Any) -> tuple[Any, Any]:
    return views.type_of(dtype).limits


def shape(buffer: BufferValue) -> tuple[int | Scalar, ...]:
    """The logical shape of a buffer, symbolic extents as scalars."""
    return shape_values(buffer)
