"""Kernels: `@T.prim_func` reads one at once, `@T.jit` when its constants are given.

In: a Python function, whose text is read and whose body never runs.  Out: a `Kernel`: a module of the tile dialect, its
parameters and launch.  Names that the text uses are looked up where the function was defined.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError, did_you_mean
from warpsmith.ir.core.ssa import Operation
from warpsmith.tile.frontend import views
from warpsmith.tile.frontend.assignments import variables_of
from warpsmith.tile.frontend.names import Names
from warpsmith.tile.frontend.namespaces.annotations import Buffer, Constexpr, DTypeName, Handle
from warpsmith.tile.frontend.source import Source, source_of
from warpsmith.tile.frontend.state import KernelState, reading_kernel
from warpsmith.tile.frontend.statements import Statements
from warpsmith.tile.frontend.values import ParameterInfo
from warpsmith.tile.model.scopes import Launch

__all__ = ["JitKernel", "Kernel", "ParameterInfo", "captured_names", "jit", "prim_func", "source_of"]


@dataclass(eq=False, slots=True, repr=False)
class Kernel:
    """A kernel as it was read.  `module` holds one function in the tile dialect and isn't changed by compiling."""

    name: str
    source: Source
    module: Operation
    parameters: tuple[ParameterInfo, ...]
    launch: Launch
    options: Mapping[str, int] = field(default_factory=dict[str, int])

    def __repr__(self) -> str:
        return f"<kernel {self.name}: grid {self.launch.grid}, block {self.launch.block}>"

    def __call__(self, *arguments: Any) -> Any:
        raise TileSyntaxError(
            f"kernel '{self.name}' is compiled, not called",
            help='ws.tile.run(kernel, arrays), or ws.tile.compile(kernel, target="cpu"), which can be called',
        )


def captured_names(function: Callable[..., Any], depth: int) -> dict[str, Any]:
    """The names that a function's text can use: its globals, the locals around its definition, and its closure.

    `depth` is how many frames up the function is being defined.
    """
    names = dict(function.__globals__)
    frame = inspect.currentframe()
    for _ in range(depth):
        frame = frame.f_back if frame is not None else None
    if frame is not None and frame.f_globals is function.__globals__:
        names.update(frame.f_locals)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet: an error only if it is used
            names.pop(name, None)
    return names


def prim_func(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Read a kernel.  TileSyntaxError and InvalidTileProgram say what in its text is wrong, and where."""
    if function is None:

        def decorate(found: Callable[..., Any]) -> Kernel:
            return _read(found, captured_names(found, 2), {})

        return decorate
    if options:
        raise TileSyntaxError(f"T.prim_func has no option '{next(iter(options))}'")
    return _read(function, captured_names(function, 2), {})


@dataclass(eq=False, slots=True, repr=False)
class JitKernel:
    """A kernel with constants to be given; `defaults` are those that its text gives."""

    function: Callable[..., Any]
    names: Mapping[str, Any]
    constants: tuple[str, ...]
    defaults: Mapping[str, Any]
    read: dict[tuple[Any, ...], Kernel] = field(default_factory=dict[tuple[Any, ...], Kernel])

    def __repr__(self) -> str:
        return f"<kernel {self.function.__name__} with constants {', '.join(self.constants) or 'none'}>"

    def specialize(self, **constants: Any) -> Kernel:
        """The kernel for these constants.  TileSyntaxError when one is missing or unknown."""
        unknown = set(constants) - set(self.constants)
        if unknown:
            name = min(unknown)
            raise TileSyntaxError(
                f"kernel '{self.function.__name__}' has no constant '{name}'",
                help=did_you_mean(name, self.constants) or f"it has {', '.join(self.constants) or 'none'}",
            )
        constants = {**self.defaults, **constants}
        missing = [name for name in self.constants if name not in constants]
        if missing:
            raise TileSyntaxError(
                f"kernel '{self.function.__name__}' lacks {', '.join(missing)}",
                help=f".specialize({missing[0]}=...), on the command line --set {missing[0]}=...",
            )
        key = tuple(part for name in self.constants for part in (constants[name].__class__.__name__, constants[name]))
        try:
            known = self.read.get(key)
        except TypeError:  # a list or an array: what it holds may change
            return _read(self.function, self.names, constants)
        if known is None:
            known = self.read[key] = _read(self.function, self.names, constants)
        return known


def jit(function: Callable[..., Any]) -> JitKernel:
    """A kernel whose `T.constexpr` parameters are given later, to `.specialize(...)`."""
    source = source_of(function)
    names = captured_names(function, 2)
    every = (*source.node.args.args, *source.node.args.kwonlyargs)
    constants = tuple(each.arg for each in every if _is_constant(function, each, names))
    defaults = function.__defaults__ or ()
    given = dict(zip([each.arg for each in source.node.args.args][-len(defaults) :], defaults, strict=False))
    given |= function.__kwdefaults__ or {}
    return JitKernel(function, names, constants, {name: given[name] for name in constants if name in given})


def _is_constant(function: Callable[..., Any], node: ast.arg, names: Mapping[str, Any]) -> bool:
    annotation = function.__annotations__.get(node.arg)
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "constexpr"
    return isinstance(annotation, Constexpr)


def _read(function: Callable[..., Any], names: Mapping[str, Any], constants: Mapping[str, Any]) -> Kernel:
    source = source_of(function)
    state = KernelState(function.__name__, source)
    node = source.node
    scope = Names(None, {**names, **constants})
    with reading_kernel(state):
        reader = Statements(state, scope, variables_of(node))
        with state.reading(node.args):
            _parameters(function, reader, constants)
        reader.body(node.body)
        with state.reading(node):
            launch = state.close()
    return Kernel(state.name, source, state.module, tuple(state.infos()), launch, state.options)


def _parameters(function: Callable[..., Any], reader: Statements, constants: Mapping[str, Any]) -> None:
    """Declare the parameters by their annotations."""
    arguments = reader.state.source.node.args
    named = any(each.arg not in constants for each in arguments.kwonlyargs)
    if arguments.vararg or arguments.kwarg or named or arguments.posonlyargs:
        raise TileSyntaxError("a kernel's parameters are plain: name: T.handle")
    defaulted = {each.arg for each in arguments.args[len(arguments.args) - len(arguments.defaults) :]}
    for each in arguments.args:
        name = each.arg
        if name in defaulted and name not in constants:
            with reader.state.reading(each):
                raise TileSyntaxError(f"parameter '{name}' has a default", help="only a T.constexpr can have one")
        if name in constants:
            reader.names.own[name] = constants[name]
            continue
        annotation: Any = function.__annotations__.get(name)
        if isinstance(annotation, str) and each.annotation is not None:
            annotation = reader.evaluate(each.annotation)
        with reader.state.reading(each):
            if isinstance(annotation, Handle):
                reader.names.own[name] = reader.state.add_parameter(name, "handle")
            elif isinstance(annotation, Buffer):
                parameter = reader.state.add_parameter(name, "buffer")
                reader.state.target = name
                reader.names.own[name] = views.match(
                    reader.state, parameter, annotation.shape, annotation.dtype, **annotation.options
                )
            elif isinstance(annotation, DTypeName):
                reader.names.own[name] = reader.state.add_scalar_parameter(name, annotation.type)
            elif isinstance(annotation, Constexpr):
                raise InvalidTileProgram(f"parameter '{name}' is a constant", help="decorate the kernel with @T.jit")
            else:
                raise TileSyntaxError(
                    f"parameter '{name}' has no type of the kernel language",
                    help=f"{name}: T.handle, T.Buffer(...) or T.int32",
                )
