"""The functions of a kernel: the entry with its ABI, one private function a subgraph, one a large called computation.

In: an analysis and its partition.  Out: a builtin.module under construction, and calls into its functions.  An emitter
opens the entry, writes its loops there, and closes it; `finish` then emits the functions that it has called.
XLA: `xla/backends/gpu/codegen/emitters/emitter_base.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpsmith.emitters.elemental import HANDLERS, ElementalEmitter, Values
from warpsmith.emitters.elemental.calls import inline_computation
from warpsmith.emitters.elemental.emitter import Indices, location_of
from warpsmith.emitters.elemental.structural import literal_scalars
from warpsmith.emitters.kernel.index_width import index_bits
from warpsmith.emitters.kernel.types import element_types, leaf_types, tensor_type
from warpsmith.errors import UnsupportedFusion
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import PartitionedComputation, Subgraph
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import Shape, TupleShape
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import INDEX
from warpsmith.ir.dialects import func, gpu, memory
from warpsmith.kernel import Launch

__all__ = ["KernelFunctions", "insert_element", "plain_name"]

GPU_ALIGNMENT = 16
INLINE_LIMIT = 16  # called computations of up to so many instructions are emitted where they are called
_INDEX_NAMES = ("i", "j", "k", "l", "m", "n")


def plain_name(name: str) -> str:
    """A name with nothing but letters, digits and underscores."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _index_name(number: int) -> str:
    return _INDEX_NAMES[number] if number < len(_INDEX_NAMES) else f"i{number}"


def _argument_names(stem: str, count: int) -> list[str]:
    return [stem] if count == 1 else [f"{stem}{i}" for i in range(count)]


class KernelFunctions:
    """Builds the module of one kernel.

    `b` inserts into the entry; `inputs` and `outputs` are its tensor arguments.  `aliases`: the outputs that share the
    buffer of an input, by number; whoever launches the kernel has put the input's contents there.
    """

    def __init__(
        self,
        analysis: FusionAnalysis,
        partition: PartitionedComputation,
        *,
        numerics: str,
        name: str,
        aliases: Mapping[int, int] | None = None,
    ) -> None:
        self.analysis = analysis
        self.partition = partition
        self.aliases = dict(aliases or {})
        self.numerics = numerics
        self.index_bits = index_bits(analysis)
        self.input_shapes = tuple(_array(each) for each in analysis.parameters)
        self.module = func.module()
        self._input_types = [tensor_type(shape) for shape in self.input_shapes]
        self._output_types = [tensor_type(shape) for shape in analysis.root_shapes]
        self._taken: dict[str, None] = {}
        self._called: dict[Subgraph, None] = {}
        self._computations: dict[HloComputation, str] = {}
        self._top = Builder.at_end(self.module.body)
        self.name = self._unique(plain_name(name))
        self._names = self._function_names()
        self.entry = self._open_entry()
        self.b = Builder.at_end(self.entry.body)
        args = self.entry.body.args
        self.inputs: list[Value] = list(args[: len(self._input_types)])
        self.outputs: list[Value] = list(args[len(self._input_types) :])

    # -- names
    def _unique(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self._taken:
            candidate, count = f"{name}_{count}", count + 1
        self._taken[candidate] = None
        return candidate

    def _function_names(self) -> dict[Subgraph, str]:
        subgraphs = self.partition.subgraphs
        if len(subgraphs) == 1:
            return {subgraphs[0]: self._unique(plain_name(self.partition.computation.name))}
        return {each: self._unique(each.name) for each in subgraphs}

    # -- the entry
    def _open_entry(self) -> Operation:
        shapes = (*self.input_shapes, *self.analysis.root_shapes)
        count = len(self.input_shapes)
        names = _argument_names("input", count) + _argument_names("output", len(shapes) - count)
        attributes = [self._argument_attributes(i, shape, i < count) for i, shape in enumerate(shapes)]
        self._top.location = location_of(self.partition.computation.root)
        return func.build(
            *(self._top, self.name, [*self._input_types, *self._output_types], self._output_types),
            arg_names=names,
            arg_attributes=attributes,
            attributes={"xla.entry": at.UNIT},
        )

    def _argument_attributes(self, number: int, shape: Shape, is_input: bool) -> dict[str, at.Attribute]:
        device = self.analysis.device
        align = GPU_ALIGNMENT if device.is_gpu else max(1, min(8, shape.dtype.bits // 8))
        found: dict[str, at.Attribute] = {
            "xla.slice_index": at.integer_attr(number if is_input else self._slice_of_output(number)),
            "llvm.align": at.integer_attr(align),
        }
        if shape.byte_size:
            found["llvm.dereferenceable"] = at.integer_attr(shape.byte_size)
        if is_input and number not in self.aliases.values():  # other inputs are never written
            found["xla.invariant"] = at.UNIT
        return found

    def _slice_of_output(self, number: int) -> int:
        """The buffer that argument `number`, an output, lies in: its own, or an input's."""
        return self.aliases.get(number - len(self.input_shapes), number)

    def close_entry(self, results: Sequence[Value], launch: Launch, emitter: str, variant: str = "") -> None:
        """Return `results` and write down how the kernel is launched."""
        device = self.analysis.device
        self.b.location = self._top.location
        func.ret(self.b, results)
        attributes: dict[str, at.Attribute] = {
            "warpsmith.target": at.string(device.name),
            "warpsmith.numerics": at.string(self.numerics),
            "warpsmith.emitter": at.string(f"{emitter}.{variant}" if variant else emitter),
        }
        if self.aliases:
            attributes["warpsmith.aliases"] = at.dense_array([i for pair in self.aliases.items() for i in pair])
        self.entry.attributes.update(attributes)
        replace(launch, index_bits=self.index_bits).write(self.entry, on_gpu=device.is_gpu)

    # -- calls
    def call(
        self, b: Builder, subgraph: Subgraph, tensors: Sequence[Value], indices: Indices, injected: Sequence[Value] = ()
    ) -> Values:
        """Call a subgraph's function: the scalars of its roots, one after the other."""
        self._called[subgraph] = None
        types = [type for root in subgraph.roots for type in leaf_types(root.shape)]
        return tuple(gpu.pure_call(b, self._names[subgraph], [*tensors, *indices, *injected], types))

    def call_computation(self, e: ElementalEmitter, computation: HloComputation, args: Sequence[Values]) -> Values:
        """Emit a called computation in place, or call its function when it is large."""
        if len(computation) <= INLINE_LIMIT:
            return inline_computation(e, computation, args)
        name = self.function_of(computation)
        return tuple(gpu.pure_call(e.b, name, [v for each in args for v in each], leaf_types(computation.root.shape)))

    def function_of(self, computation: HloComputation) -> str:
        """The name of a called computation's function of scalars."""
        name = self._computations.get(computation)
        if name is None:
            name = self._computations[computation] = self._unique(plain_name(computation.name))
        return name

    # -- the private functions
    def finish(self) -> Operation:
        """Emit every function that is called, and those that they call; the finished module."""
        done: set[Subgraph] = set()
        emitted: dict[Subgraph, Operation] = {}
        while len(done) < len(self._called):
            for subgraph in list(self._called):
                if subgraph not in done:
                    done.add(subgraph)
                    emitted[subgraph] = self._emit_subgraph(subgraph)
        for subgraph in self.partition.subgraphs:  # text order: users before producers
            if subgraph in emitted:
                self._top.insert(emitted[subgraph])
        written: set[HloComputation] = set()
        while len(written) < len(self._computations):
            for computation, name in list(self._computations.items()):
                if computation not in written:
                    written.add(computation)
                    self._emit_computation(computation, name)
        return self.module

    def _emit_subgraph(self, subgraph: Subgraph) -> Operation:
        count = len(self._input_types)
        extra = [type for hero in subgraph.injected for type in leaf_types(hero.shape)]
        types = [*self._input_types, *[INDEX] * len(subgraph.index_sizes), *extra]
        arguments: list[dict[str, at.Attribute]] = [{} for _ in types]
        for i, size in enumerate(subgraph.index_sizes):
            arguments[count + i]["xla.range"] = at.int_range(0, size - 1)
        names = [f"arg{i}" for i in range(count)]
        names += [_index_name(i) for i in range(len(subgraph.index_sizes))]
        names += [f"hero{i}" for i in range(len(extra))]
        results = [type for root in subgraph.roots for type in leaf_types(root.shape)]
        detached = Builder.at_end(Block(), location_of(subgraph.roots[0]))
        op = func.build(
            *(detached, self._names[subgraph], types, results),
            arg_names=names,
            arg_attributes=arguments,
            attributes={"no_compute": at.UNIT} if subgraph.no_compute else None,
            private=True,
        )
        op.unlink()
        args = op.body.args
        indices = tuple(args[count : count + len(subgraph.index_sizes)])
        emitter = ElementalEmitter(
            *(op.body, HANDLERS),
            tensors=args[:count],
            provider=_Provider(self, subgraph, args[count + len(indices) :]),
            caller=self.call_computation,
            strict=self.numerics == "strict",
        )
        _constants_first(emitter, subgraph)
        values: list[Value] = []
        for root, map in zip(subgraph.roots, subgraph.root_maps, strict=True):
            values += emitter.evaluate(root, indices if map is None else emitter.apply(map, indices))
        emitter.b.location = detached.location
        func.ret(emitter.b, values)
        emitter.drop_unused()
        return op

    def _emit_computation(self, computation: HloComputation, name: str) -> None:
        dtypes = [_array(each).dtype for each in computation.parameters]
        types = [type for dtype in dtypes for type in element_types(dtype)]
        results = leaf_types(computation.root.shape)
        names = [f"arg{i}" for i in range(len(types))]
        self._top.location = location_of(computation.root)
        op = func.build(self._top, name, types, results, arg_names=names, private=True)
        left: list[Value] = list(op.body.args)
        args: list[Values] = []
        for dtype in dtypes:
            width = len(element_types(dtype))
            args.append(tuple(left[:width]))
            left = left[width:]
        strict = self.numerics == "strict"
        emitter = ElementalEmitter(op.body, HANDLERS, caller=self.call_computation, strict=strict)
        func.ret(emitter.b, inline_computation(emitter, computation, args))


def _array(instruction: HloInstruction) -> Shape:
    if isinstance(instruction.shape, TupleShape) or not instruction.shape.is_array:
        raise UnsupportedFusion(
            f"parameter '{instruction.name}' of a fusion is a {instruction.shape}",
            span=instruction.span,
            help="take the tuple apart with get-tuple-element outside the fusion",
        )
    return instruction.shape


class _Provider:
    """Where a subgraph's function gets values that it doesn't compute: injected heroes, and other functions."""

    __slots__ = ("_functions", "_injected", "_subgraph")

    def __init__(self, functions: KernelFunctions, subgraph: Subgraph, extra: Sequence[Value]) -> None:
        self._functions = functions
        self._subgraph = subgraph
        self._injected: dict[HloInstruction, Values] = {}
        left = list(extra)
        for hero in subgraph.injected:
            width = len(leaf_types(hero.shape))
            self._injected[hero] = tuple(left[:width])
            left = left[width:]

    def __call__(self, e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Values | None:
        found = self._injected.get(instruction)
        if found is not None or instruction in self._subgraph.instructions:
            return found
        owner = self._functions.partition.owners[instruction]
        return self._functions.call(e.b, owner, e.tensors, indices)


def _constants_first(e: ElementalEmitter, subgraph: Subgraph) -> None:
    """Constants of one value stand at the top of the function, in the order of the HLO text."""
    for instruction in reversed(subgraph.instructions):
        literal = instruction.literal
        if instruction.opcode == "constant" and literal is not None and literal.is_splat:
            e.b.location = location_of(instruction)
            literal_scalars(e, literal)


def insert_element(
    b: Builder, constants: ElementalEmitter, parts: Sequence[Value], dest: Value, indices: Sequence[Value]
) -> Value:
    """Insert one element (two parts when it is complex) into an output tensor; the new tensor."""
    if len(parts) == 1:
        return memory.insert(b, parts[0], dest, indices)
    for number, part in enumerate(parts):
        dest = memory.insert(b, part, dest, (*indices, constants.index(number)))
    return dest
