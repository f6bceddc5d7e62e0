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
from warpsmith.tile.frontend.namespaces.annotations import Buffer as Buffer
from warpsmith.tile.frontend.namespaces.annotations import Constexpr, DTypeName, Handle, Let
from warpsmith.tile.frontend.objects import META_CLASSES
from warpsmith.tile.frontend.state import current
from warpsmith.tile.frontend.subscripts import shape_values
from warpsmith.tile.frontend.values import Buffer as BufferValue
from warpsmith.tile.frontend.values import Inline, Parameter, Scalar
from warpsmith.tile.model import dtypes as dt
from warpsmith.tile.model.buffers import buffer_of
from warpsmith.tile.program import captured_names, source_of
from warpsmith.tile.program import jit as jit
from warpsmith.tile.program import prim_func as prim_func

_IMPORTED = frozenset(globals()) - {"Buffer", "jit", "prim_func"}  # what stands above is no name of `T`, but for these

_Class = TypeVar("_Class")
TileLayout, ComposeLayout, S, R = layouts.TileLayout, layouts.ComposeLayout, layouts.S, layouts.R
serial, unroll, vectorized = loops.serial, loops.unroll, loops.vectorized
grid, thread_binding = loops.grid, loops.thread_binding
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
    """Give a `T.handle` parameter its shape, element type and layout; stands before `T.device_entry()`.

    shape: an extent or a tuple of them: positive integers, `T.constexpr` constants, or symbolic ones (`n = T.int32()`,
        also in an expression: `n * 4`), which a run takes from the arrays' shapes.
    dtype: "float32", T.float32 ...: the array must have it; nothing is converted.
    strides: elements (not bytes) to the next index of each dim.  Without: row-major, dense.
    elem_offset: elements before the first one.
    align: bytes that the array's address is a multiple of, which widens vectors.
    layout: a TileLayout or ComposeLayout instead of strides: where the array's element [i, j] lies in memory.

    Gives the buffer.  InvalidTileProgram for a parameter that isn't a handle or is bound twice, a shape with an extent
    below 1, and a layout or strides of another size or together with symbolic extents.
    """
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
    """Memory of the kernel's own, whose contents are undefined at first; stands after `T.device_entry()`.

    shape: known extents, in elements.
    dtype: "float32", T.float32 ...
    scope: "shared", the block's (48 KB of all in a kernel); "shared.dyn", one array of the block's as large as the
        device allows; "local", registers: each thread's own, or with thread axes in the layout spread over threads.
    layout: a TileLayout or ComposeLayout of as many elements as the shape.  "default": row-major, dense.  Memory is
        as large as the layout reaches, padding included.
    align: bytes, a power of two.

    Gives the buffer.  InvalidTileProgram for another scope, symbolic extents, a layout of another size or that begins
    before its buffer, and a second array in "shared.dyn"; more shared memory than there is, when it is compiled.
    """
    if options:
        raise InvalidTileProgram(f"T.alloc_buffer has no option '{next(iter(options))}'")
    return views.allocate(current("T.alloc_buffer"), shape, dtype, scope, layout, align)


def alloc_shared(shape: Any, dtype: Any = "float32", layout: Any = "default", align: int = 64) -> BufferValue:
    """`alloc_buffer` with scope "shared": memory of the block, of known extents in elements, `align` in bytes."""
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
    """Another buffer over the memory that `data` (a buffer's `.data`) points at; without one, `alloc_buffer`.

    shape, dtype, strides, layout: as `match_buffer`, of known extents.
    elem_offset: elements of `dtype` before its first one, from where the memory of `data` begins.
    scope: that of `data`, if given.

    InvalidTileProgram where it reaches out of that memory, or sees bool as another type.
    """
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
    """`alloc_buffer` with scope "local": registers, each thread's own or by `layout` spread over threads."""
    return alloc_buffer(shape, dtype, "local", layout, align)


def device_entry() -> None:
    """All that follows runs on the device, in every thread.  TileSyntaxError where it stands a second time."""
    state = current("T.device_entry")
    if state.in_device:
        raise TileSyntaxError("T.device_entry() stands once in a kernel")
    state.in_device = True
    state.b.create("tile.device_entry")


def _id(kind: str, what: str) -> Callable[..., Any]:
    def declare(extents: Any = None, *, preferred: Any = None, dtype: str = "int32") -> Any:
        return scope_ids.declare(current(f"T.{kind}"), kind, extents, preferred, dtype)

    declare.__name__ = kind
    declare.__doc__ = f"""{what}

    extents: how many there are: an integer, or a list of up to three (x first) for as many ids.  Without, what follows
        from the other ids and from 32 lanes in a warp and 128 threads in a warpgroup is inferred.
    dtype: "int32" or "uint32".

    Gives a scalar, or a tuple of them.  InvalidTileProgram for an extent that isn't a positive integer known while the
    kernel is read, or that contradicts another id.
    """
    return declare


cta_id = _id("cta_id", "The number of this block (CTA) in the grid: blockIdx.")
warpgroup_id = _id("warpgroup_id", "The number of this thread's warpgroup, 128 threads, in its block.")
warp_id = _id("warp_id", "The number of this thread's warp, 32 threads, in its block.")
warp_id_in_wg = _id("warp_id_in_wg", "The number of this thread's warp in its warpgroup: 0 to 3.")
lane_id = _id("lane_id", "The number of this thread in its warp: 0 to 31.")
thread_id = _id("thread_id", "The number of this thread in its block: threadIdx, or all in one for a single id.")
thread_id_in_wg = _id("thread_id_in_wg", "The number of this thread in its warpgroup: 0 to 127.")
cluster_id = _id("cluster_id", "The number of this block's cluster.  No lowering here uses clusters: refused.")
cta_id_in_cluster = _id("cta_id_in_cluster", "The number of this block in its cluster.  Refused, as cluster_id is.")
cta_id_in_pair = _id("cta_id_in_pair", "The number of this block in its pair.  Refused: no lowering here uses pairs.")


# -------------------------------------------------------------------------------------------------------------- scalars
def _number(value: Any) -> Any:
    """A scalar or Python number out of what an author may hand over."""
    return numbers.number(current(), value)


def cast(value: Any, dtype: Any) -> Scalar:
    """A scalar in another type ("float32", T.float32 ...): floats to integers towards zero, to floats by rounding."""
    return current("T.cast").scalars.cast(_number(value), views.type_of(dtype))


def _function(name: str) -> Callable[[Any], Any]:
    def apply(value: Any) -> Any:
        return current(f"T.{name}").scalars.function(name, _number(value))

    apply.__name__ = name
    apply.__doc__ = f"{name} of a scalar, of a float type but for abs, in that type; of a Python number a number."
    return apply


def _operator(name: str, meaning: str, shown: str = "") -> Callable[[Any, Any], Any]:
    shown = shown or name

    def apply(a: Any, b: Any) -> Any:
        return current(f"T.{shown}").scalars.binary(name, _number(a), _number(b))

    apply.__name__ = shown
    apply.__doc__ = f"{meaning[0].upper()}{meaning[1:]}, for two scalars, in the type in which theirs meet."
    return apply


sqrt, rsqrt, exp, exp2, log, log2, log10, log1p, tanh, sigmoid = map(
    _function, ("sqrt", "rsqrt", "exp", "exp2", "log", "log2", "log10", "log1p", "tanh", "sigmoid")
)
sin, cos, tan, erf, floor, ceil, trunc, round, abs = map(
    _function, ("sin", "cos", "tan", "erf", "floor", "ceil", "trunc", "round", "abs")
)
max, min, pow = _operator("max", "the larger"), _operator("min", "the smaller"), _operator("pow", "a to the power b")
floordiv = _operator("floordiv", "a / b, rounded down, as Python's a // b")
floormod = _operator("mod", "what floordiv leaves, as Python's a % b", "floormod")
truncdiv = _operator("truncdiv", "a / b, rounded towards zero, as in C")
truncmod = _operator("truncmod", "what truncdiv leaves, as in C: it has the sign of a")
bitwise_and, bitwise_or = _operator("and", "a & b", "bitwise_and"), _operator("or", "a | b", "bitwise_or")
bitwise_xor = _operator("xor", "a ^ b", "bitwise_xor")
shift_left, shift_right = _operator("shl", "a << b", "shift_left"), _operator("shr", "a >> b", "shift_right")


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


def __dir__() -> list[str]:
    return sorted(name for name in globals() if not name.startswith("_") and name not in _IMPORTED)
