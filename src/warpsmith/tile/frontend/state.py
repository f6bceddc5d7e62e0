"""The kernel that is being read: its module so far, the place where the next op goes, and its parameters.

The functions of `T` and `Tx` find it through `current()`; outside a kernel they have nothing to do and say so.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError, WarpsmithError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import I8, Type, memref
from warpsmith.ir.dialects import func, memory, tile
from warpsmith.tile.frontend.scalars import Scalars
from warpsmith.tile.frontend.source import Source
from warpsmith.tile.frontend.values import Parameter, ParameterInfo, Scalar, Variable
from warpsmith.tile.model.buffers import AnyLayout
from warpsmith.tile.model.dtypes import BY_NAME, INDEX, TileType
from warpsmith.tile.model.extents import Extent, extent_of
from warpsmith.tile.model.scopes import Launch, infer, scope_ids_of

__all__ = ["KernelState", "current"]

_UNBOUND: Type = memref((0,), I8)


class KernelState:
    """One kernel's module under construction.

    `target` names the assignment's left side while its right side is evaluated, so that what it makes is called so.
    """

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.source = source
        self.module = func.module(source.location(source.node))
        top = Builder.at_end(self.module.body, source.location(source.node))
        self.function = func.build(top, name, (), (), attributes={"xla.entry": at.UNIT, "tile.kernel": at.UNIT})
        self.b = Builder.at_end(self.function.body, top.location)
        self.scalars = Scalars(self.b)
        self.parameters: list[Parameter] = []
        self.in_device = False
        self.has_dynamic = False  # whether it allocates dynamic shared memory
        self.target = ""
        self.nodes: list[ast.AST] = [source.node]
        self.options: dict[str, int] = {}
        self._variables: list[Operation] = []
        self._notes: dict[Parameter, tuple[tuple[int | str | Extent, ...], TileType, int, AnyLayout | None]] = {}

    # -- places
    def at(self, node: ast.AST) -> None:
        """What is made from now on comes from this part of the source."""
        self.b.location = self.source.location(node)

    @contextmanager
    def reading(self, node: ast.AST) -> Generator[None]:
        """Evaluate a part of the source: its errors get its place, unless they have one further inside."""
        outer = self.b.location
        self.at(node)
        try:
            yield
        except WarpsmithError as error:
            if error.span is None:
                error.span = self.source.span(node)
            raise
        finally:
            self.b.location = outer

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Put ops at the end of another block."""
        with self.b.inside(block):
            yield

    # -- parameters
    def add_parameter(self, name: str, kind: str) -> Parameter:
        """A parameter of the kernel; its memory's type is known when it is bound."""
        value = self.function.body.add_arg(_UNBOUND, name)
        parameter = Parameter(name, kind, value)
        self.parameters.append(parameter)
        return parameter

    def add_scalar_parameter(self, name: str, type: TileType) -> Scalar:
        """A scalar parameter."""
        value = self.function.body.add_arg(type.ir, name)
        self.parameters.append(Parameter(name, type.name, value))
        return Scalar(value, type)

    def add_extent(self, name: str, type: TileType) -> Scalar:
        """A symbolic extent: a parameter that is no negative number, as a coordinate."""
        given = self.add_scalar_parameter(name, type)
        limits = at.array(at.integer_attr(int(limit), INDEX.ir) for limit in (0, type.limits[1]))
        return Scalar(self.b.op1("arith.index_cast", (given.value,), INDEX.ir, {"xla.range": limits}, name), INDEX)

    def bind_parameter(self, parameter: Parameter, elements: int, type: TileType) -> Value:
        """Give a handle its memory."""
        value = parameter.value
        if value is None or value.type is not _UNBOUND:
            raise InvalidTileProgram(
                f"parameter '{parameter.name}' is bound twice", help="match_buffer each handle once"
            )
        value.type = memref((elements,), type.ir)
        return value

    def note_parameter(
        self, parameter: Parameter, shape: Sequence[Any], type: TileType, alignment: int, layout: AnyLayout | None
    ) -> None:
        """Remember what a handle was bound to: symbolic extents by their names."""
        named = tuple(part if isinstance(part, int) else extent_of(part.value) for part in shape)
        self._notes[parameter] = (named, type, alignment, layout)

    def infos(self) -> Iterator[ParameterInfo]:
        """The parameters, in the order of the kernel's arguments."""
        for parameter in self.parameters:
            if parameter.kind in BY_NAME:
                yield ParameterInfo(parameter.name, BY_NAME[parameter.kind], None)
            else:
                shape, type, alignment, layout = self._notes[parameter]
                yield ParameterInfo(parameter.name, type, shape, alignment, layout)

    def rename(self, name: str) -> None:
        """Call the kernel otherwise."""
        self.name = name
        self.function.attributes["sym_name"] = at.string(name)

    def close(self) -> Launch:
        """Check the parameters and ids, and write the function's type; the launch."""
        for parameter in self.parameters:
            if parameter.value is not None and parameter.value.type is _UNBOUND:
                raise InvalidTileProgram(
                    f"parameter '{parameter.name}' is never bound",
                    help=f"{parameter.name.removesuffix('_ptr')} = T.match_buffer({parameter.name}, shape, dtype)",
                )
        func.set_function_type(self.function, [a.type for a in self.function.body.args], ())
        if not self.in_device:
            raise TileSyntaxError(
                f"kernel '{self.name}' has no T.device_entry()",
                help="put T.device_entry() after the match_buffer lines",
            )
        func.ret(self.b, ())
        return infer(scope_ids_of(self.function))

    # -- variables
    def new_variable(self, name: str, type: TileType) -> Variable:
        """A private memory of one scalar, at the top of the kernel."""
        body = self.function.body
        top = Builder.at_end(body, self.b.location)
        anchor = self._variables[-1].next if self._variables else body.first
        if anchor is not None:
            top = Builder(body, anchor, self.b.location)
        marked = {"tile.variable": at.string(type.name)}
        held = memory.alloca(top, memref((1,), type.ir, tile.PRIVATE), max(type.bytes, 1), name, marked)
        assert held.defining_op is not None
        self._variables.append(held.defining_op)
        return Variable(held, type)

    def read(self, variable: Variable) -> Scalar:
        """A variable's value now."""
        zero = self.scalars.index(0)
        loaded = self.b.op1("memref.load", (variable.memory, zero), variable.type.ir, None, variable.memory.name)
        return Scalar(loaded, variable.type)

    def write(self, variable: Variable, value: Scalar) -> None:
        """Give a variable a value, converted to its type."""
        converted = self.scalars.cast(value, variable.type)
        self.b.create("memref.store", (converted.value, variable.memory, self.scalars.index(0)))

    def need_device(self, what: str) -> None:
        """TileSyntaxError for device code before T.device_entry()."""
        if not self.in_device:
            raise TileSyntaxError(f"{what} before T.device_entry()", help="device code begins there")


_CURRENT: ContextVar[KernelState | None] = ContextVar("kernel", default=None)


def current(what: str = "this") -> KernelState:
    """The kernel that is being read.  TileSyntaxError outside one."""
    found = _CURRENT.get()
    if found is None:
        raise TileSyntaxError(f"{what} has a meaning only inside a kernel", help="a function under @T.prim_func")
    return found


@contextmanager
def reading_kernel(state: KernelState) -> Generator[KernelState]:
    """Make a kernel the current one."""
    token = _CURRENT.set(state)
    try:
        yield state
    finally:
        _CURRENT.reset(token)
