"""A module in the llvm dialect in; textual LLVM IR out.

Nothing is decided here: each op prints as its instruction, block arguments as phis, constants in place.  LLVM reads the
text (llvmlite's builder would only be a slower way to write the same).  Reference: pipeline.md 7.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.errors import InternalError, LoweringError
from warpsmith.ir import attributes as at
from warpsmith.ir.core import Block, Operation, Trait, Value
from warpsmith.ir.dialects import arith
from warpsmith.ir.format_kinds import LLVM_ATOMICS, LLVM_ORDERINGS
from warpsmith.ir.types import (
    LLVMArrayType,
    LLVMFunctionType,
    PointerType,
)
from warpsmith.targets.llvm_debug import DebugLines, Metadata
from warpsmith.targets.llvm_literals import TypeSpeller, aggregate, constant, mangle

__all__ = ["llvm_text"]

_ICMP = list(arith.CMPI)
_FCMP = list(arith.CMPF)


def llvm_text(module: Operation, *, triple: str = "", layout: str = "", lines: bool = False) -> str:
    """LLVM IR for all functions and globals of `module`, which must be in the llvm dialect.

    With `lines`, instructions carry the HLO line that they come from, which PTX shows as `.loc`.
    """
    return _Printer(triple, layout, lines).module(module)


class _Printer:
    """One module's text.  Values are numbered within a function; constants have no number but their literal."""

    def __init__(self, triple: str, layout: str, with_lines: bool) -> None:
        self.type = TypeSpeller()
        self.lines: list[str] = []
        if layout:
            self.lines.append(f'target datalayout = "{layout}"')
        if triple:
            self.lines.append(f'target triple = "{triple}"')
        self.names: dict[Value, str] = {}
        self.count = 0
        self.labels: dict[Block, str] = {}
        self.declared: dict[str, str] = {}
        self.metadata = Metadata()
        self.debug = DebugLines(self.metadata) if with_lines else None
        self.attributes: list[str] = []

    # -- module
    def module(self, module: Operation) -> str:
        for op in module.body:
            if op.name == "llvm.mlir.global":
                self.global_(op)
        for op in module.body:
            if op.name == "llvm.func":
                self.function(op)
            elif op.name != "llvm.mlir.global":
                raise LoweringError(f"{op.name} is left at module level")
        self.lines += self.declared.values()
        self.lines += self.attributes
        if self.debug is not None:
            self.lines += self.debug.module_lines()
        self.lines += self.metadata.lines()
        return "\n".join(self.lines) + "\n"

    def global_(self, op: Operation) -> None:
        type = op.attributes["global_type"]
        assert isinstance(type, at.TypeAttr)
        space = op.int_attr("addr_space") if "addr_space" in op.attributes else 0
        name = op.str_attr("sym_name")
        kind = "constant" if "constant" in op.attributes else "global"
        prefix = f"addrspace({space}) " if space else ""
        value = op.attributes.get("value")
        align = op.int_attr("alignment") if "alignment" in op.attributes else 16
        if "tile.dynamic" in op.attributes and isinstance(type.type, LLVMArrayType):  # its size is given at launch
            unsized = f"[0 x {self.type(type.type.element)}]"
            self.lines.append(f"@{name} = external {prefix}{kind} {unsized}, align {align}")
            return
        if isinstance(value, at.DenseAttr):
            body = aggregate(self.type, value)
        else:
            body = "undef" if space else "zeroinitializer"
        self.lines.append(f"@{name} = internal {prefix}{kind} {self.type(type.type)} {body}, align {align}")

    # -- functions
    def function(self, op: Operation) -> None:
        type = op.attributes["function_type"]
        assert isinstance(type, at.TypeAttr)
        assert isinstance(type.type, LLVMFunctionType)
        self.names = {}
        self.count = 0
        blocks = op.regions[0].blocks
        if not blocks:
            self.declare(op.str_attr("sym_name"), self.type(type.type.result), list(map(self.type, type.type.inputs)))
            return
        self.labels = {block: f"b{i}" for i, block in enumerate(blocks)}
        arg_attrs = op.attributes.get("arg_attrs")
        per_argument = arg_attrs.items if isinstance(arg_attrs, at.ArrayAttr) else ()
        parameters: list[str] = []
        for i, argument in enumerate(blocks[0].args):
            extra = ""
            if i < len(per_argument):
                found = per_argument[i]
                assert isinstance(found, at.DictAttr)
                extra = "".join(f" {_parameter_attribute(k, v)}" for k, v in found.items)
            self.names[argument] = name = f"%arg{i}"
            parameters.append(f"{self.type(argument.type)}{extra} {name}")
        is_kernel = "nvvm.kernel" in op.attributes
        linkage = "internal " if _text(op.attributes.get("linkage")) == "#llvm.linkage<internal>" else ""
        convention = "ptx_kernel " if is_kernel else ""
        number = self._function_attributes(op) if is_kernel else ""
        debug = self.debug.subprogram(op) if self.debug is not None else ""
        self.lines.append(
            f"define {linkage}{convention}{self.type(type.type.result)} @{op.str_attr('sym_name')}"
            f"({', '.join(parameters)}){number}{debug} {{"
        )
        predecessors = _predecessors(blocks)
        for block in blocks[1:]:
            for argument in block.args:
                self.assign(argument)
        # Phis name values defined further down, so every result gets its name before anything prints.
        for block in blocks:
            for nested in block:
                for result in nested.results:
                    self.assign(result)
        for block in blocks:
            if block is not blocks[0]:
                self.lines.append(f"{self.labels[block]}:")
                self.phis(block, predecessors[block])
            elif len(blocks) > 1:
                self.lines.append(f"{self.labels[block]}:")
            for nested in block:
                self.placed_instruction(nested)
        self.lines.append("}")

    def _function_attributes(self, op: Operation) -> str:
        block = op.attributes["warpsmith.block"]
        assert isinstance(block, at.DenseArrayAttr)
        number = len(self.attributes)
        shape = ",".join(map(str, block.values))
        self.attributes.append(f'attributes #{number} = {{ "nvvm.reqntid"="{shape}" }}')
        return f" #{number}"

    def phis(self, block: Block, sources: list[tuple[Block, list[Value]]]) -> None:
        for i, argument in enumerate(block.args):
            incoming = ", ".join(f"[ {self.value(values[i])}, %{self.labels[source]} ]" for source, values in sources)
            self.lines.append(f"  {self.names[argument]} = phi {self.type(argument.type)} {incoming}")

    def assign(self, value: Value) -> None:
        op = value.defining_op
        if op is not None and (op.row.traits & Trait.CONSTANT or op.name in _IN_PLACE):
            self.names[value] = self._in_place(op)
            return
        self.names[value] = f"%v{self.count}"
        self.count += 1

    def _in_place(self, op: Operation) -> str:
        if op.name == "llvm.mlir.poison":
            return "poison"
        if op.name == "llvm.mlir.zero":
            return "null" if isinstance(op.result.type, PointerType) else "zeroinitializer"
        if op.name == "llvm.mlir.addressof":
            return f"@{op.str_attr('global_name')}"
        return constant(self.type, op.attributes["value"], op.result.type)

    def value(self, value: Value) -> str:
        return self.names[value]

    def typed(self, value: Value) -> str:
        return f"{self.type(value.type)} {self.names[value]}"

    # -- instructions
    def placed_instruction(self, op: Operation) -> None:
        before = len(self.lines)
        self.instruction(op)
        if self.debug is not None and len(self.lines) > before:
            self.lines[-1] += self.debug.place(op.location)

    def instruction(self, op: Operation) -> None:
        name = op.name
        if op.row.traits & Trait.CONSTANT or name in _IN_PLACE:
            return
        simple = _SIMPLE.get(name)
        if simple is not None:
            lhs = ", ".join(self.names[v] for v in op.operands)
            flags = op.attributes.get("warpsmith.flags")
            if isinstance(flags, at.OpaqueAttr):
                simple += " " + flags.text.removeprefix("#arith.fastmath<").rstrip(">").replace(",", "")
            self.lines.append(f"  {self.names[op.results[0]]} = {simple} {self.type(op.operands[0].type)} {lhs}")
            return
        cast = _CASTS.get(name)
        if cast is not None:
            self.lines.append(
                f"  {self.names[op.results[0]]} = {cast} "
                f"{self.typed(op.operands[0])} to {self.type(op.results[0].type)}"
            )
            return
        handler = _TABLE.get(name)
        if handler is not None:
            handler(self, op)
        elif name.startswith("llvm.intr."):
            self.intrinsic(op, "llvm." + name.removeprefix("llvm.intr."), op.operands)
        else:
            raise LoweringError(f"{name} has no LLVM text")

    def result(self, op: Operation, text: str) -> None:
        self.lines.append(f"  {self.names[op.results[0]]} = {text}")

    def declare(self, name: str, result: str, parameters: list[str]) -> None:
        if name not in self.declared:
            self.declared[name] = f"declare {result} @{name}({', '.join(parameters)})"

    def intrinsic(self, op: Operation, stem: str, operands: list[Value]) -> None:
        """A call of an intrinsic overloaded on its result's type."""
        type = op.results[0].type
        name = f"{stem}.{mangle(type)}"
        arguments = [self.typed(v) for v in operands]
        parameters = [self.type(v.type) for v in operands]
        if "is_zero_poison" in op.attributes:
            arguments.append(f"i1 {op.int_attr('is_zero_poison')}")
            parameters.append("i1")
        self.declare(name, self.type(type), parameters)
        self.result(op, f"call {self.type(type)} @{name}({', '.join(arguments)})")

    def getelementptr(self, op: Operation) -> None:
        element = op.attributes["elem_type"]
        constants = op.attributes["rawConstantIndices"]
        assert isinstance(element, at.TypeAttr)
        assert isinstance(constants, at.DenseArrayAttr)
        dynamic = iter(op.operands[1:])
        indices = [self.typed(next(dynamic)) if c == -(1 << 31) else f"i32 {c}" for c in constants.values]
        inbounds = "inbounds " if "noWrapFlags" in op.attributes else ""
        self.result(
            op, f"getelementptr {inbounds}{self.type(element.type)}, {self.typed(op.operands[0])}, {', '.join(indices)}"
        )

    def _access(self, op: Operation) -> str:
        text = f", align {op.int_attr('alignment')}"
        if "nontemporal" in op.attributes:
            text += f", !nontemporal {self.metadata.node('!{i32 1}')}"
        if "invariant" in op.attributes:
            text += f", !invariant.load {self.metadata.node('!{}')}"
        return text

    def load(self, op: Operation) -> None:
        self.result(op, f"load {self.type(op.results[0].type)}, {self.typed(op.operands[0])}{self._access(op)}")

    def store(self, op: Operation) -> None:
        self.lines.append(f"  store {self.typed(op.operands[0])}, {self.typed(op.operands[1])}{self._access(op)}")

    def alloca(self, op: Operation) -> None:
        element = op.attributes["elem_type"]
        assert isinstance(element, at.TypeAttr)
        self.result(op, f"alloca {self.type(element.type)}, {self.typed(op.operands[0])}{self._access(op)}")

    def prefetch(self, op: Operation) -> None:
        (address,) = op.operands
        name = f"llvm.prefetch.{mangle(address.type)}"
        self.declare(name, "void", [self.type(address.type), *["i32"] * 3])
        hints = ", ".join(f"i32 {op.int_attr(each)}" for each in ("rw", "hint", "cache"))
        self.lines.append(f"  call void @{name}({self.typed(address)}, {hints})")

    def icmp(self, op: Operation) -> None:
        lhs, rhs = op.operands
        self.result(op, f"icmp {_ICMP[op.int_attr('predicate')]} {self.typed(lhs)}, {self.value(rhs)}")

    def fcmp(self, op: Operation) -> None:
        lhs, rhs = op.operands
        self.result(op, f"fcmp {_FCMP[op.int_attr('predicate')]} {self.typed(lhs)}, {self.value(rhs)}")

    def select(self, op: Operation) -> None:
        self.result(op, f"select {', '.join(map(self.typed, op.operands))}")

    def extractelement(self, op: Operation) -> None:
        self.result(op, f"extractelement {self.typed(op.operands[0])}, {self.typed(op.operands[1])}")

    def insertelement(self, op: Operation) -> None:
        self.result(op, f"insertelement {', '.join(map(self.typed, op.operands))}")

    def shufflevector(self, op: Operation) -> None:
        mask = op.attributes["mask"]
        assert isinstance(mask, at.DenseArrayAttr)
        lanes = ", ".join(f"i32 {i}" for i in mask.values)
        a, b = op.operands
        self.result(op, f"shufflevector {self.typed(a)}, {self.typed(b)}, <{len(mask.values)} x i32> <{lanes}>")

    def extractvalue(self, op: Operation) -> None:
        self.result(op, f"extractvalue {self.typed(op.operands[0])}, {self._position(op)}")

    def insertvalue(self, op: Operation) -> None:
        self.result(op, f"insertvalue {self.typed(op.operands[0])}, {self.typed(op.operands[1])}, {self._position(op)}")

    def _position(self, op: Operation) -> str:
        found = op.attributes["position"]
        assert isinstance(found, at.DenseArrayAttr)
        return ", ".join(map(str, found.values))

    def masked_load(self, op: Operation) -> None:
        pointers, mask, fallback = op.operands
        stem = op.name.replace("llvm.intr.", "llvm.")
        align = op.int_attr("alignment")
        type = op.results[0].type
        name = f"{stem}.{mangle(type)}.{mangle(pointers.type)}"
        self.declare(name, self.type(type), [self.type(pointers.type), self.type(mask.type), self.type(type)])
        address = f"{self.type(pointers.type)} align {align} {self.value(pointers)}"
        arguments = f"{address}, {self.typed(mask)}, {self.typed(fallback)}"
        self.result(op, f"call {self.type(type)} @{name}({arguments})")

    def masked_store(self, op: Operation) -> None:
        value, pointer, mask = op.operands
        align = op.int_attr("alignment")
        name = f"llvm.masked.store.{mangle(value.type)}.{mangle(pointer.type)}"
        self.declare(name, "void", [self.type(value.type), self.type(pointer.type), self.type(mask.type)])
        self.lines.append(
            f"  call void @{name}({self.typed(value)}, {self.type(pointer.type)} align {align} {self.value(pointer)}, "
            f"{self.typed(mask)})"
        )

    def sreg(self, op: Operation) -> None:
        name = "llvm." + op.name
        self.declare(name, "i32", [])
        extent = op.attributes.get("xla.range")
        extra = ""
        if isinstance(extent, at.ArrayAttr):
            lower, upper = extent.items
            assert isinstance(lower, at.IntegerAttr)
            assert isinstance(upper, at.IntegerAttr)
            if upper.value + 1 < 1 << 31:
                extra = f", !range {self.metadata.node(f'!{{i32 {lower.value}, i32 {upper.value + 1}}}')}"
        self.result(op, f"call i32 @{name}(){extra}")

    def barrier(self, op: Operation) -> None:
        self.declare("llvm.nvvm.barrier.cta.sync.aligned.all", "void", ["i32"])
        self.lines.append("  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")

    def atomicrmw(self, op: Operation) -> None:
        pointer, value = op.operands
        kind = LLVM_ATOMICS[op.int_attr("bin_op")].lstrip("_")
        ordering = LLVM_ORDERINGS[op.int_attr("ordering")]
        self.result(op, f"atomicrmw {kind} {self.typed(pointer)}, {self.typed(value)} {ordering}")

    def cmpxchg(self, op: Operation) -> None:
        orderings = [LLVM_ORDERINGS[op.int_attr(name)] for name in ("success_ordering", "failure_ordering")]
        self.result(op, f"cmpxchg {', '.join(map(self.typed, op.operands))} {' '.join(orderings)}")

    def warp_shuffle(self, op: Operation) -> None:
        kind = _text(op.attributes.get("kind")).removeprefix("#nvvm<shfl_kind ").rstrip(">")
        type = op.results[0].type
        spelled = self.type(type)
        name = f"llvm.nvvm.shfl.sync.{kind}.{mangle(type)}"
        self.declare(name, spelled, ["i32", spelled, "i32", "i32"])
        self.result(op, f"call {spelled} @{name}({', '.join(map(self.typed, op.operands))})")

    def partial_barrier(self, op: Operation) -> None:
        """A warp's barrier, or a named one of so many threads."""
        name = f"llvm.{_BARRIERS[op.name]}"
        self.declare(name, "void", ["i32"] * len(op.operands))
        self.lines.append(f"  call void @{name}({', '.join(map(self.typed, op.operands))})")

    def elect(self, op: Operation) -> None:
        self.declare("llvm.nvvm.elect.sync", "{ i32, i1 }", ["i32"])
        pair = f"{self.names[op.results[0]]}.pair"
        self.lines.append(f"  {pair} = call {{ i32, i1 }} @llvm.nvvm.elect.sync(i32 -1)")
        self.result(op, f"extractvalue {{ i32, i1 }} {pair}, 1")

    def call(self, op: Operation) -> None:
        arguments = ", ".join(map(self.typed, op.operands))
        callee = op.str_attr("callee")
        if "warpsmith.library" in op.attributes:
            # Not a builtin: LLVM knows functions of these names, and would compute constants by its own host's library.
            self.result(op, f"call {self.type(op.results[0].type)} @{callee}({arguments}) nobuiltin")
        elif op.results:
            self.result(op, f"call {self.type(op.results[0].type)} @{callee}({arguments})")
        else:
            self.lines.append(f"  call void @{callee}({arguments})")

    def ret(self, op: Operation) -> None:
        self.lines.append(f"  ret {self.typed(op.operands[0])}" if op.operands else "  ret void")

    def br(self, op: Operation) -> None:
        self.lines.append(f"  br label %{self.labels[op.successors[0]]}")

    def cond_br(self, op: Operation) -> None:
        true, false = (self.labels[s] for s in op.successors)
        self.lines.append(f"  br {self.typed(op.operands[0])}, label %{true}, label %{false}")


_IN_PLACE = {"llvm.mlir.poison", "llvm.mlir.zero", "llvm.mlir.addressof"}
_SIMPLE = {
    f"llvm.{n}": n
    for n in "add sub mul sdiv udiv srem urem and or xor shl lshr ashr fadd fsub fmul fdiv frem fneg".split()
}
_CASTS = {
    f"llvm.{n}": n
    for n in "fpext fptrunc sext zext trunc sitofp uitofp fptosi fptoui bitcast ptrtoint inttoptr addrspacecast".split()
}
_TABLE: dict[str, Callable[[_Printer, Operation], None]] = {
    "llvm.getelementptr": _Printer.getelementptr,
    "llvm.load": _Printer.load,
    "llvm.alloca": _Printer.alloca,
    "llvm.intr.prefetch": _Printer.prefetch,
    "llvm.store": _Printer.store,
    "llvm.atomicrmw": _Printer.atomicrmw,
    "llvm.cmpxchg": _Printer.cmpxchg,
    "llvm.icmp": _Printer.icmp,
    "llvm.fcmp": _Printer.fcmp,
    "llvm.select": _Printer.select,
    "llvm.extractelement": _Printer.extractelement,
    "llvm.insertelement": _Printer.insertelement,
    "llvm.shufflevector": _Printer.shufflevector,
    "llvm.extractvalue": _Printer.extractvalue,
    "llvm.insertvalue": _Printer.insertvalue,
    "llvm.intr.masked.load": _Printer.masked_load,
    "llvm.intr.masked.gather": _Printer.masked_load,
    "llvm.intr.masked.store": _Printer.masked_store,
    "llvm.call": _Printer.call,
    "llvm.return": _Printer.ret,
    "llvm.br": _Printer.br,
    "llvm.cond_br": _Printer.cond_br,
    "nvvm.barrier0": _Printer.barrier,
    "nvvm.shfl.sync": _Printer.warp_shuffle,
    "nvvm.bar.warp.sync": _Printer.partial_barrier,
    "nvvm.barrier": _Printer.partial_barrier,
    "nvvm.elect.sync": _Printer.elect,
    "nvvm.read.ptx.sreg.laneid": _Printer.sreg,
    **{f"nvvm.read.ptx.sreg.{r}.{d}": _Printer.sreg for r in ("tid", "ctaid", "ntid", "nctaid") for d in "xyz"},
}


_BARRIERS = {"nvvm.bar.warp.sync": "nvvm.bar.warp.sync", "nvvm.barrier": "nvvm.barrier.cta.sync.aligned.count"}


def _text(attribute: at.Attribute | None) -> str:
    return attribute.text if isinstance(attribute, at.OpaqueAttr) else ""


def _parameter_attribute(name: str, value: at.Attribute) -> str:
    """`llvm.align = 16` -> `align 16`; `llvm.noalias` -> `noalias`."""
    short = name.removeprefix("llvm.")
    if isinstance(value, at.IntegerAttr):
        return f"{short} {value.value}" if short == "align" else f"{short}({value.value})"
    return short


def _predecessors(blocks: list[Block]) -> dict[Block, list[tuple[Block, list[Value]]]]:
    """For each block, who branches to it and with which values."""
    result: dict[Block, list[tuple[Block, list[Value]]]] = {block: [] for block in blocks}
    for block in blocks:
        last = block.last
        if last is None or not last.successors:
            continue
        if len(last.successors) == 1:
            result[last.successors[0]].append((block, list(last.operands)))
            continue
        sizes = last.attributes["operandSegmentSizes"]
        assert isinstance(sizes, at.DenseArrayAttr)
        split = 1 + sizes.values[1]
        groups = (list(last.operands[1:split]), list(last.operands[split:]))
        if last.successors[0] is last.successors[1]:
            raise InternalError("both ways of a branch go to one block")
        for successor, values in zip(last.successors, groups, strict=True):
            result[successor].append((block, values))
    return result
