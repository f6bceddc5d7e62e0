"""The engine of elemental emission: evaluates instructions at index values, each once, without recursion.

In: an instruction and indices.  Out: its scalars.  A handler is a generator: it yields (operand, indices) and is sent
the operand's scalars, so that a chain of any length needs no Python stack.  What has been emitted is remembered by
instruction and indices, one table a region: a value made inside an `scf.if` is not seen outside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

import numpy as np

from warpsmith.emitters.kernel.types import tensor_type
from warpsmith.errors import UnsupportedFusion
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.indexing import Const, Expr, IndexingMap, Interval, Var, Variable, dim, substitute
from warpsmith.indexing.rewire import remove_unused_vars, symbols_to_dims
from warpsmith.ir.core.attributes import Attribute, IntegerAttr, splat_or_scalar
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Location, Operation, Value, row
from warpsmith.ir.core.types import INDEX, Type
from warpsmith.ir.dialects import gpu, memory, scf

__all__ = ["ElementalEmitter", "Emission", "Handler", "Indices", "Values", "location_of"]

Values = tuple[Value, ...]
Indices = tuple[Value, ...]
Request = tuple[HloInstruction, Indices]
Emission = Generator[Request, Values, Values]
Handler = Callable[["ElementalEmitter", HloInstruction, Indices], Emission]
Provider = Callable[["ElementalEmitter", HloInstruction, Indices], Values | None]
Caller = Callable[["ElementalEmitter", HloComputation, Sequence[Values]], Values]


def location_of(instruction: HloInstruction) -> Location:
    """The instruction's name and where it was written."""
    span = instruction.span
    if span is None:
        return Location((instruction.name,))
    return Location((instruction.name,), span.file, span.line, span.column)


class ElementalEmitter:
    """Emits into one function.

    `b` is the insertion point.  `tensors` holds the parameters' buffers by number.  `provider` gives the values of
    instructions that are computed elsewhere (other functions, injected heroes), or None.  `caller` emits a called
    computation.  `strict` is the numerics mode.
    """

    __slots__ = (
        "_computed",
        "_constants",
        "_entry",
        "_handlers",
        "_last_constant",
        "_scopes",
        "b",
        "caller",
        "provider",
        "strict",
        "tensors",
    )

    def __init__(
        self,
        block: Block,
        handlers: Mapping[str, Handler],
        *,
        tensors: Sequence[Value] = (),
        provider: Provider | None = None,
        caller: Caller | None = None,
        strict: bool = True,
    ) -> None:
        self.b = Builder.at_end(block)
        self.tensors = tensors
        self.provider = provider
        self.caller = caller
        self.strict = strict
        self._handlers = handlers
        self._entry = block
        self._last_constant: Operation | None = None
        self._constants: dict[Attribute, Value] = {}
        self._scopes: list[dict[object, Values]] = [{}]
        self._computed: dict[Value, tuple[IndexingMap, Indices]] = {}  # what an apply_indexing result was made of

    # -- constants
    def constant(self, value: float | int | np.generic, type: Type) -> Value:
        """A constant, made once at the top of the function."""
        return self.constant_attribute(splat_or_scalar(value, type), type)

    def constant_attribute(self, attribute: Attribute, type: Type) -> Value:
        """A constant of an attribute's value, made once a function, in its entry block."""
        found = self._constants.get(attribute)
        if found is not None:
            return found
        op = Operation(row("arith.constant"), (), (type,), {"value": attribute}, location=self.b.location)
        if self._last_constant is None:
            self._entry.prepend(op)
        else:
            self._entry.insert_after(self._last_constant, op)
        self._last_constant = op
        result = op.results[0]
        result.name = (
            f"c{attribute.value}_{type}" if isinstance(attribute, IntegerAttr) and attribute.value >= 0 else "cst"
        )
        self._constants[attribute] = result
        return result

    def index(self, value: int) -> Value:
        """An index constant."""
        result = self.constant(value, INDEX)
        result.name = f"c{value}" if value >= 0 else f"c_{-value}"
        return result

    # -- regions
    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Emit at the end of `block`; what is emitted there is forgotten afterwards."""
        outer = self.b
        self.b = Builder.at_end(block, outer.location)
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()
            self.b = outer

    def if_(self, condition: Value, types: Sequence[Type]) -> Operation:
        """An scf.if with an empty then and else block."""
        return scf.if_(self.b, condition, types, with_else=True)

    def only_if(self, condition: Value, values: Sequence[Value], then: Callable[[], Sequence[Value]]) -> list[Value]:
        """What `then` makes of the values where the condition holds; elsewhere the values."""
        branch = self.if_(condition, [each.type for each in values])
        with self.inside(branch.regions[0].blocks[0]):
            scf.yield_(self.b, then())
        with self.inside(branch.regions[1].blocks[0]):
            scf.yield_(self.b, values)
        return list(branch.results)

    def remember(self, key: object, values: Values) -> None:
        """Keep values for `recall` in this scope and those inside it."""
        self._scopes[-1][key] = values

    def recall(self, key: object) -> Values | None:
        """What `remember` was given under a key, in this scope or one around it; None if nothing."""
        for scope in reversed(self._scopes):
            found = scope.get(key)
            if found is not None:
                return found
        return None

    # -- indices
    def apply(self, map: IndexingMap, indices: Sequence[Value]) -> Indices:
        """The map's results at `indices` (its dimensions, then its symbols); constraints aside."""
        return tuple(self._apply_one(part, indices) for part in _parts(map))

    def apply_expr(self, map: IndexingMap, expr: Expr, indices: Sequence[Value]) -> Value:
        """Another expression over the map's variables."""
        return self._apply_one(_part(map.clear_constraints().with_results([expr])), indices)

    def _apply_one(self, part: _Part, indices: Sequence[Value]) -> Value:
        if part.map is None:
            return self.index(part.constant) if part.variable is None else indices[part.variable]
        operands = tuple(indices[i] for i in part.used)
        known = self._computed
        if any(operand in known for operand in operands):
            return self._apply_composed(part.map, operands)
        key = (part.map, operands)
        found = self.recall(key)
        if found is None:
            found = tuple(gpu.apply_indexing(self.b, part.map, operands))
            known[found[0]] = (part.map, operands)
            self.remember(key, found)
        return found[0]

    def _apply_composed(self, map: IndexingMap, operands: Indices) -> Value:
        """As above, of values that maps gave themselves: one map of what those were given.

        So two ways to one index give one value, as the partitioner takes for granted.
        """
        base: dict[Value, int] = {}
        sources: list[tuple[IndexingMap | None, tuple[int, ...]]] = []
        for operand in operands:
            producer, inputs = self._computed.get(operand, (None, (operand,)))
            sources.append((producer, tuple(base.setdefault(each, len(base)) for each in inputs)))
        return self._apply_one(_composed(map, tuple(sources)), tuple(base))

    def drop_unused(self) -> None:
        """Erase index computations and constants that composing maps has left without users."""
        for value in (*reversed(self._computed), *self._constants.values()):
            op = value.defining_op
            if op is not None and not value.users:
                op.erase()

    # -- evaluation
    def evaluate(self, instruction: HloInstruction, indices: Indices) -> Values:
        """The scalars of `instruction` at `indices`: one a leaf (two for a complex leaf)."""
        found = self._known(instruction, indices)
        if found is not None:
            return found
        stack: list[tuple[Request, Emission, Location]] = [self._start(instruction, indices)]
        sent: Values | None = None
        while True:
            request, emission, location = stack[-1]
            self.b.location = location
            try:
                wanted = next(emission) if sent is None else emission.send(sent)
            except StopIteration as done:
                values: Values = done.value
                self._scopes[-1][request] = values
                stack.pop()
                if not stack:
                    return values
                sent = values
                continue
            sent = self._known(*wanted)
            if sent is None:
                stack.append(self._start(*wanted))

    def _start(self, instruction: HloInstruction, indices: Indices) -> tuple[Request, Emission, Location]:
        handler = self._handlers.get(instruction.opcode)
        if handler is None:
            raise UnsupportedFusion(
                f"no emitter takes '{instruction.opcode}' inside a fusion ('{instruction.name}')",
                span=instruction.span,
                help=f"move '{instruction.opcode}' out of the fusion: it then runs as a step of its own",
            )
        return (instruction, indices), handler(self, instruction, indices), location_of(instruction)

    def _known(self, instruction: HloInstruction, indices: Indices) -> Values | None:
        """Values that need no handler: emitted before, a parameter's element, or provided from elsewhere."""
        found = self.recall((instruction, indices))
        if found is not None:
            return found
        if instruction.opcode == "parameter":
            found = self._parameter(instruction, indices)
        elif self.provider is not None:
            found = self.provider(self, instruction, indices)
        if found is not None:
            self._scopes[-1][(instruction, indices)] = found
        return found

    def _parameter(self, instruction: HloInstruction, indices: Indices) -> Values:
        number = instruction.parameter_number
        if number is None or number >= len(self.tensors):
            raise UnsupportedFusion(f"parameter '{instruction.name}' has no buffer", span=instruction.span)
        tensor = self.tensors[number]
        shape = instruction.array_shape
        assert tensor.type is tensor_type(shape)
        outer, self.b.location = self.b.location, location_of(instruction)
        if shape.dtype.is_complex:
            found = tuple(memory.extract(self.b, tensor, (*indices, self.index(part))) for part in (0, 1))
        else:
            found = (memory.extract(self.b, tensor, indices),)
        self.b.location = outer
        return found


class _Part:
    """One result of a map: a constant, a variable (an operand's position), or a map of its own and its operands."""

    __slots__ = ("constant", "map", "used", "variable")

    def __init__(self, map: IndexingMap | None, used: tuple[int, ...], variable: int | None, constant: int) -> None:
        self.map = map
        self.used = used
        self.variable = variable
        self.constant = constant


@lru_cache(maxsize=4096)
def _parts(map: IndexingMap) -> tuple[_Part, ...]:
    bare = map.clear_constraints()
    return tuple(_part(bare.with_results([expr])) for expr in bare.results)


def _part(map: IndexingMap) -> _Part:
    expr = map.results[0]
    if isinstance(expr, Const):
        return _Part(None, (), None, expr.value)
    if isinstance(expr, Var):
        return _Part(None, (), expr.id + (map.num_dims if expr.is_symbol else 0), 0)
    kept, unused = remove_unused_vars(map)
    return _Part(kept, tuple(i for i, gone in enumerate(unused) if not gone), None, 0)


@lru_cache(maxsize=4096)
def _composed(map: IndexingMap, sources: tuple[tuple[IndexingMap | None, tuple[int, ...]], ...]) -> _Part:
    """`map` of operands that are themselves maps (or base values, None) of base values given by position."""
    bounds: dict[int, Interval] = {}
    results: list[Expr] = []
    second = symbols_to_dims(map)
    for variable, (producer, positions) in zip(second.dim_vars, sources, strict=True):
        if producer is None:
            own = (variable.bounds,)
            results.append(dim(positions[0]))
        else:
            flat = symbols_to_dims(producer)
            own = tuple(each.bounds for each in flat.dim_vars)
            results.append(substitute(flat.results[0], {dim(i): dim(at) for i, at in enumerate(positions)}))
        for at, interval in zip(positions, own, strict=True):
            bounds[at] = bounds[at].intersect(interval) if at in bounds else interval
    first = IndexingMap.make([Variable("", bounds[i]) for i in range(len(bounds))], results)
    composed = first.then(second).simplify()
    return _part((first.then(second.clear_constraints()) if composed.known_empty else composed).clear_constraints())
