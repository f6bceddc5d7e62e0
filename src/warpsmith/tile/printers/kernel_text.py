"""A kernel as Python text: `tirx_text` as it was read, `dispatched_text` after each primitive got its lowering.

What `tirx_text` prints is a kernel again: it can be put into a file behind the usual imports and read.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import MemRefType, VectorType
from warpsmith.ir.dialects import func, gpu, tile
from warpsmith.tile.dispatch.dispatcher import Dispatched
from warpsmith.tile.layout import TileLayout, row_major
from warpsmith.tile.model.buffers import AnyLayout, buffer_of, layout_of
from warpsmith.tile.model.dtypes import BY_NAME
from warpsmith.tile.model.extents import Extent
from warpsmith.tile.printers.expressions import Names, Printer, dtype_name
from warpsmith.tile.printers.python_text import attribute_python, layout_python
from warpsmith.tile.program import Kernel

__all__ = ["dispatched_text", "tirx_text"]


def tirx_text(kernel: Kernel) -> str:
    """The kernel in the language it was written in."""
    return _Text(kernel, kernel.module, reuses_names=False).run(_parameters(kernel))


def dispatched_text(dispatched: Dispatched) -> str:
    """The kernel below its primitives, before index arithmetic is lowered."""
    program = dispatched.origin.program
    return _Text(program, dispatched.module, reuses_names=True).run(_parameters(program))


def _parameters(kernel: Kernel) -> list[str]:
    return [f"T.{p.type}" if p.shape is None else "T.handle" for p in kernel.parameters]


_PLAIN_TYPES = ("int32", "float32", "bool")  # what a name gets that is assigned a number or a condition


class _Text:
    """The lines of one function.

    `reuses_names`: what is named in a block gives its name free at its end.  Text that is read again mustn't: a name
    that is assigned in two blocks is one variable, of one type.
    """

    def __init__(self, kernel: Kernel, module: Operation, *, reuses_names: bool) -> None:
        self.kernel = kernel
        self.reuses_names = reuses_names
        self.module = module
        self.function = func.entry(module)
        self.names = Names()
        self.printer = Printer(self.names)
        self.declared: set[Value] = set()
        self.lines: list[str] = []
        self.depth = 1
        self.symbolic = {p.name for p in kernel.parameters if p.shape is None}

    def run(self, types: list[str]) -> str:
        names = [self.names.of(argument) for argument in self.function.body.args]
        shown = [
            f"{name}: {type}"
            for name, type, parameter in zip(names, types, self.kernel.parameters, strict=True)
            if not self._is_extent(parameter.name)
        ]
        head = ["@T.prim_func", f"def {self.kernel.name}({', '.join(shown)}):"]
        for name, parameter in zip(names, self.kernel.parameters, strict=True):
            if self._is_extent(parameter.name):
                self.line(f"{name} = T.{parameter.type}()")
        self.block(self.function.body)
        return "\n".join([*head, *(self.lines or ["    pass"])])

    def _is_extent(self, name: str) -> bool:
        extents = [extent for p in self.kernel.parameters for extent in p.shape or ()]
        return any(name in each.symbols if isinstance(each, Extent) else name == each for each in extents)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, block: Block) -> None:
        before = len(self.lines)
        for op in block:
            self.op(op)
        if len(self.lines) == before and block is not self.function.body:
            self.line("pass")

    def declaration(self, memory: Value) -> str:
        """The type of a variable, where its first value is written and doesn't show it."""
        holder = memory.defining_op
        type = holder.attributes.get("tile.variable") if holder is not None else None
        if not isinstance(type, at.StringAttr) or memory in self.declared:
            return ""
        self.declared.add(memory)
        return "" if self.reuses_names or type.value in _PLAIN_TYPES else f": T.{type.value}"

    def nested(self, head: str, block: Block) -> None:
        self.line(head)
        self.depth += 1
        taken = set(self.names.taken)
        self.block(block)
        if self.reuses_names:
            self.names.taken = taken  # what is named inside isn't seen outside
        self.depth -= 1

    def op(self, op: Operation) -> None:
        comment = op.attributes.get("tile.comment")
        if isinstance(comment, at.StringAttr):
            self.line(f"# {comment.value}")
        handler = _STATEMENTS.get(op.name)
        if handler is not None:
            handler(self, op)
        elif tile.is_primitive(op):
            self.line(self.primitive(op))
        elif self.printer.folds(op):
            return
        elif op.results:
            text, _ = self.printer.operation(op)
            self.printer.kept.update(op.results)
            self.line(f"{self.names.of(op.results[0])} = {text}")
        else:
            self.line(f"T.{op.name.replace('.', '_')}({', '.join(self.printer.text(v) for v in op.operands)})")

    def primitive(self, op: Operation) -> str:
        """`Tx.warp.copy(A_smem[0:32, 0:8], A[0:32, 0:8])`."""
        scope = op.str_attr("scope")
        roles = op.attributes["roles"]
        assert isinstance(roles, at.ArrayAttr)
        parts: list[str] = []
        skipped = False
        for role, value in zip(roles.items, op.operands, strict=True):
            assert isinstance(role, at.StringAttr)
            text = self.operand(value)
            skipped = skipped or role.value in ("bias", "scale", "c")
            parts.append(f"{role.value}={text}" if skipped else text)
        config = op.attributes.get("config")
        if isinstance(config, at.DictAttr):
            parts += [f"{key}={attribute_python(value)}" for key, value in config.items]
        if "dispatch" in op.attributes:
            parts.append(f'dispatch="{op.str_attr("dispatch")}"')
        prefix = "Tx" if scope == "thread" else f"Tx.{scope}"
        return f"{prefix}.{op.name.removeprefix('tile.')}({', '.join(parts)})"

    def operand(self, value: Value) -> str:
        op = value.defining_op
        if op is None or op.name != "tile.region":
            return self.printer.text(value)
        extents = op.attributes["extents"]
        assert isinstance(extents, at.DenseArrayAttr)
        parts: list[str] = []
        for start, extent in zip(op.operands[1:], extents.values, strict=True):
            known = constant_of(start)
            text = self.printer.text(start)
            parts.append(
                f"{known.value}:{known.value + extent}" if known is not None else f"{text} : {text} + {extent}"
            )
        return f"{self.names.of(op.operands[0])}[{', '.join(parts)}]"


def _is_dense(layout: AnyLayout | None, shape: tuple[int, ...]) -> bool:
    return isinstance(layout, TileLayout) and layout == row_major(tuple(max(extent, 1) for extent in shape))


def _shape(t: _Text, op: Operation, symbols: list[Value]) -> str:
    type = op.result.type
    assert isinstance(type, MemRefType)
    rest = iter(symbols)
    parts = [t.printer.text(next(rest)) if extent < 0 else str(extent) for extent in type.shape]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _layout_argument(op: Operation, shape: tuple[int, ...]) -> str:
    layout = layout_of(op.attributes["layout"])
    if layout is None:
        return ", layout=None"
    return "" if _is_dense(layout, shape) else f", layout={layout_python(layout)}"


# ----------------------------------------------------------------------------------------------------------- statements
def _match_buffer(t: _Text, op: Operation) -> None:
    type = op.result.type
    assert isinstance(type, MemRefType)
    shape = _shape(t, op, op.operands[1:])
    source = t.names.of(op.operands[0])
    extra = _layout_argument(op, type.shape)
    t.line(f'{t.names.of(op.result)} = T.match_buffer({source}, {shape}, "{op.str_attr("dtype")}"{extra})')


def _alloc(t: _Text, op: Operation) -> None:
    type = op.result.type
    assert isinstance(type, MemRefType)
    extra = _layout_argument(op, type.shape)
    name, dtype, scope = t.names.of(op.result), op.str_attr("dtype"), op.str_attr("scope")
    t.line(f'{name} = T.alloc_buffer({_shape(t, op, [])}, "{dtype}", scope="{scope}"{extra})')


def _view(t: _Text, op: Operation) -> None:
    type = op.result.type
    assert isinstance(type, MemRefType)
    source, kind = op.operands[0], op.attributes.get("kind")
    name = t.names.of(op.result)
    if isinstance(kind, at.StringAttr) and kind.value == "local":
        t.line(f"{name} = {t.names.of(source)}.local({', '.join(map(str, type.shape))})")
        return
    if isinstance(kind, at.StringAttr) and kind.value == "dtype":
        t.line(f'{name} = {t.names.of(source)}.view("{op.str_attr("dtype")}")')
        return
    layout = layout_of(op.attributes["layout"])
    if isinstance(kind, at.StringAttr) and kind.value == "decl":
        extra = ", layout=" + ("None" if layout is None else layout_python(layout))
        shape, dtype = _shape(t, op, []), op.str_attr("dtype")
        t.line(f'{name} = T.decl_buffer({shape}, "{dtype}", data={t.names.of(source)}.data{extra})')
        return
    same = layout == buffer_of(source).layout
    extra = "" if same or layout is None else f", layout={layout_python(layout)}"
    t.line(f"{name} = {t.names.of(source)}.view({', '.join(map(str, type.shape))}{extra})")


def _device_entry(t: _Text, op: Operation) -> None:
    t.line("T.device_entry()")


def _scope_id(t: _Text, op: Operation) -> None:
    extents = op.attributes.get("extents")
    given = f"[{', '.join(map(str, extents.values))}]" if isinstance(extents, at.DenseArrayAttr) else ""
    call = f"T.{op.str_attr('kind')}({given})"
    if len(op.results) == 1 and not op.results[0].users and not op.results[0].name:
        t.line(call)
        return
    t.line(f"{', '.join(t.names.of(r, 'id') for r in op.results)} = {call}")


def _hardware_id(t: _Text, op: Operation) -> None:
    kind = "thread_id" if op.name == "gpu.thread_id" else "cta_id"
    dims = t.kernel.launch.block if kind == "thread_id" else t.kernel.launch.grid
    axis = "xyz".index(gpu.dimension(op))
    name = t.names.of(op.result)
    if dims[1:] == (1, 1):
        t.line(f"{name} = T.{kind}([{dims[0]}])")
    else:
        t.line(f"{name} = T.{kind}([{', '.join(map(str, dims))}])[{axis}]")


def _for(t: _Text, op: Operation) -> None:
    lower, upper, step = op.operands[:3]
    start, by = constant_of(lower), constant_of(step)
    bounds = [t.printer.text(upper)]
    if start is None or start.value or by is None or by.value != 1:
        bounds.insert(0, t.printer.text(lower))
    if by is None or by.value != 1:
        bounds.append(t.printer.text(step))
    kind = op.attributes.get("tile.loop")
    word = "range"
    if "tile.unroll" in op.attributes:
        word = "T.vectorized" if isinstance(kind, at.StringAttr) and kind.value == "vectorized" else "T.unroll"
    carried = op.body.args[1:]
    for argument, result, start in zip(carried, op.results, op.operands[3:], strict=True):
        name = t.names.of(argument)
        t.names.names[result] = name
        t.line(f"{name} = {t.printer.text(start)}")
    variable = t.names.of(op.body.args[0])
    t.nested(f"for {variable} in {word}({', '.join(bounds)}):", op.body)
    t.names.taken.discard(variable)


def _if(t: _Text, op: Operation) -> None:
    for result in op.results:
        t.names.of(result)
    t.nested(f"if {t.printer.text(op.operands[0])}:", op.regions[0].blocks[0])
    if op.regions[1].blocks:
        t.nested("else:", op.regions[1].blocks[0])


def _while(t: _Text, op: Operation) -> None:
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    t.nested(f"while {t.printer.text(before.terminator.operands[0])}:", after)


def _yield(t: _Text, op: Operation) -> None:
    parent = op.parent
    if parent is not None and parent.name == "scf.for" and op.operands:
        names = [t.names.of(argument) for argument in parent.body.args[1:]]
        t.line(f"{', '.join(names)} = {', '.join(t.printer.text(value) for value in op.operands)}")
    if parent is not None and parent.name == "scf.if":
        for result, value in zip(parent.results, op.operands, strict=True):
            t.line(f"{t.names.of(result)} = {t.printer.text(value)}")


def _store(t: _Text, op: Operation) -> None:
    value, memory, *indices = op.operands
    lanes = value.type.elements if isinstance(value.type, VectorType) else 1
    declared = t.declaration(memory)
    t.line(f"{t.printer.element(memory, indices, lanes)}{declared} = {_stored(t, value, memory)}")


def _stored(t: _Text, value: Value, memory: Value) -> str:
    """What is assigned: a constant as its variable's type has it, where that has no sign."""
    holder, constant = memory.defining_op, constant_of(value)
    type = holder.attributes.get("tile.variable") if holder is not None else None
    if isinstance(constant, at.IntegerAttr) and isinstance(type, at.StringAttr) and type.value.startswith("uint"):
        return str(constant.value & (1 << BY_NAME[type.value].bits) - 1)
    return t.printer.text(value)


def _alloca(t: _Text, op: Operation) -> None:
    type = op.result.type
    assert isinstance(type, MemRefType)
    name = t.names.of(op.result)
    if "tile.variable" in op.attributes:
        return
    t.line(f'{name} = T.alloc_local(({type.elements},), "{dtype_name(type.element)}")')


def _get_global(t: _Text, op: Operation) -> None:
    type = op.result.type
    assert isinstance(type, MemRefType)
    t.line(f'{t.names.of(op.result)} = T.alloc_shared(({type.elements},), "{dtype_name(type.element)}")')


def _barrier(t: _Text, op: Operation) -> None:
    t.line("T.cuda.cta_sync()")


def _warp_barrier(t: _Text, op: Operation) -> None:
    t.line("T.cuda.warp_sync()")


def _named_barrier(t: _Text, op: Operation) -> None:
    t.line(f"T.cuda.warpgroup_sync({t.printer.text(op.operands[0])})")


def _wait_group(t: _Text, op: Operation) -> None:
    t.line(f"T.ptx.cp_async.wait_group({op.int_attr('n')})")


def _async_copy(t: _Text, op: Operation) -> None:
    target, i, source, j = op.operands
    places = f"{t.printer.pointer(target, i)}, {t.printer.pointer(source, j)}"
    t.line(f"T.ptx.cp_async({places}, {op.int_attr('bytes')})")


def _store_matrix(t: _Text, op: Operation) -> None:
    value, base, index = op.operands
    t.line(f"{t.printer.matrix('stmatrix', op)}({t.printer.pointer(base, index)}, {t.printer.text(value)})")


def _silent(t: _Text, op: Operation) -> None:
    """Nothing of its own in the text."""


def _word(word: str) -> Callable[[_Text, Operation], None]:
    return lambda t, op: t.line(word)


_STATEMENTS: dict[str, Callable[[_Text, Operation], None]] = {
    "tile.match_buffer": _match_buffer,
    "tile.alloc": _alloc,
    "tile.view": _view,
    "tile.device_entry": _device_entry,
    "tile.scope_id": _scope_id,
    "tile.store": _store,
    "tile.break": _word("break"),
    "tile.continue": _word("continue"),
    "gpu.thread_id": _hardware_id,
    "gpu.block_id": _hardware_id,
    "gpu.barrier": _barrier,
    "nvvm.bar.warp.sync": _warp_barrier,
    "nvvm.barrier": _named_barrier,
    "nvvm.cp.async.commit.group": _word("T.ptx.cp_async.commit_group()"),
    "nvvm.cp.async.wait.group": _wait_group,
    "nvgpu.device_async_copy": _async_copy,
    "nvgpu.stmatrix": _store_matrix,
    "memref.store": _store,
    "vector.store": _store,
    "memref.alloca": _alloca,
    "memref.get_global": _get_global,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.yield": _yield,
    "scf.condition": _silent,
    "func.return": _silent,
    "tile.region": _silent,
}
