"""Ops of the llvm and nvvm dialects in; instructions of textual LLVM IR out.

`llvm_text` puts them into functions and blocks.  Each op prints as its instruction, or as a call of an intrinsic, which
is declared; constants are written in place.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.backends.llvm.debug import DebugLines, Metadata
from warpsmith.backends.llvm.literals import TypeSpeller, constant, mangle
from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Block, Operation, Trait, Value
from warpsmith.ir.core.types import PointerType
from warpsmith.ir.dialects import arith
from warpsmith.ir.text.format_kinds import LLVM_ATOMICS, LLVM_ORDERINGS

__all__ = ["InstructionPrinter", "opaque_text"]

_ICMP = list(arith.CMPI)
_FCMP = list(arith.CMPF)
_BARRIERS = {"nvvm.bar.warp.sync": "nvvm.bar.warp.sync", "nvvm.barrier": "nvvm.barrier.cta.sync.aligned.count"}


class InstructionPrinter:
    """Instructions of a module.  Values are numbered within a function; constants have no number but their literal."""

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

    def assign(self, value: Value) -> None:
        """Give a value its name: a number, or its literal."""
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
        """How a value is written."""
        return self.names[value]

    def typed(self, value: Value) -> str:
        """A value with its type in front."""
        return f"{self.type(value.type)} {self.names[value]}"

    # -- instructions
    def placed_instruction(self, op: Operation) -> None:
        """One op's line, with the place in the source that it comes from."""
        before = len(self.lines)
        self.instruction(op)
        if self.debug is not None and len(self.lines) > before:
            self.lines[-1] += self.debug.place(op.location)

    def instruction(self, op: Operation) -> None:
        """One op's line; LoweringError for an op that LLVM has no instruction for."""
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
        """A line that defines the op's result."""
        self.lines.append(f"  {self.names[op.results[0]]} = {text}")

    def declare(self, name: str, result: str, parameters: list[str]) -> None:
        """Declare a function, once a module."""
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
        """An address: constant indices and operands in turn."""
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
        """A load with its alignment and hints."""
        self.result(op, f"load {self.type(op.results[0].type)}, {self.typed(op.operands[0])}{self._access(op)}")

    def store(self, op: Operation) -> None:
        """A store with its alignment and hints."""
        self.lines.append(f"  store {self.typed(op.operands[0])}, {self.typed(op.operands[1])}{self._access(op)}")

    def alloca(self, op: Operation) -> None:
        """Memory of the function's own."""
        element = op.attributes["elem_type"]
        assert isinstance(element, at.TypeAttr)
        type = op.result.type
        space = f", addrspace({type.space})" if isinstance(type, PointerType) and type.space else ""
        self.result(op, f"alloca {self.type(element.type)}, {self.typed(op.operands[0])}{self._access(op)}{space}")

    def prefetch(self, op: Operation) -> None:
        """A prefetch into the caches."""
        (address,) = op.operands
        name = f"llvm.prefetch.{mangle(address.type)}"
        self.declare(name, "void", [self.type(address.type), *["i32"] * 3])
        hints = ", ".join(f"i32 {op.int_attr(each)}" for each in ("rw", "hint", "cache"))
        self.lines.append(f"  call void @{name}({self.typed(address)}, {hints})")

    def icmp(self, op: Operation) -> None:
        """A comparison of integers."""
        lhs, rhs = op.operands
        self.result(op, f"icmp {_ICMP[op.int_attr('predicate')]} {self.typed(lhs)}, {self.value(rhs)}")

    def fcmp(self, op: Operation) -> None:
        """A comparison of floats."""
        lhs, rhs = op.operands
        self.result(op, f"fcmp {_FCMP[op.int_attr('predicate')]} {self.typed(lhs)}, {self.value(rhs)}")

    def select(self, op: Operation) -> None:
        """A choice between two values."""
        self.result(op, f"select {', '.join(map(self.typed, op.operands))}")

    def extractelement(self, op: Operation) -> None:
        """One lane of a vector."""
        self.result(op, f"extractelement {self.typed(op.operands[0])}, {self.typed(op.operands[1])}")

    def insertelement(self, op: Operation) -> None:
        """A vector with one lane replaced."""
        self.result(op, f"insertelement {', '.join(map(self.typed, op.operands))}")

    def shufflevector(self, op: Operation) -> None:
        """Lanes of two vectors."""
        mask = op.attributes["mask"]
        assert isinstance(mask, at.DenseArrayAttr)
        lanes = ", ".join(f"i32 {i}" for i in mask.values)
        a, b = op.operands
        self.result(op, f"shufflevector {self.typed(a)}, {self.typed(b)}, <{len(mask.values)} x i32> <{lanes}>")

    def extractvalue(self, op: Operation) -> None:
        """One field of a struct."""
        self.result(op, f"extractvalue {self.typed(op.operands[0])}, {self._position(op)}")

    def insertvalue(self, op: Operation) -> None:
        """A struct with one field replaced."""
        self.result(op, f"insertvalue {self.typed(op.operands[0])}, {self.typed(op.operands[1])}, {self._position(op)}")

    def _position(self, op: Operation) -> str:
        found = op.attributes["position"]
        assert isinstance(found, at.DenseArrayAttr)
        return ", ".join(map(str, found.values))

    def masked_load(self, op: Operation) -> None:
        """A load, or gather, of the lanes that a mask has on."""
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
        """A store of the lanes that a mask has on."""
        value, pointer, mask = op.operands
        align = op.int_attr("alignment")
        name = f"llvm.masked.store.{mangle(value.type)}.{mangle(pointer.type)}"
        self.declare(name, "void", [self.type(value.type), self.type(pointer.type), self.type(mask.type)])
        self.lines.append(
            f"  call void @{name}({self.typed(value)}, {self.type(pointer.type)} align {align} {self.value(pointer)}, "
            f"{self.typed(mask)})"
        )

    def sreg(self, op: Operation) -> None:
        """A read of one of PTX's special registers, with the range that it is known to be in."""
        name = "llvm." + op.name
        self.declare(name, "i32", [])
        self.result(op, f"call i32 @{name}(){self._range(op)}")

    def _range(self, op: Operation) -> str:
        extent = op.attributes.get("xla.range")
        if isinstance(extent, at.ArrayAttr):
            lower, upper = extent.items
            assert isinstance(lower, at.IntegerAttr)
            assert isinstance(upper, at.IntegerAttr)
            if upper.value + 1 < 1 << 31:
                return f", !range {self.metadata.node(f'!{{i32 {lower.value}, i32 {upper.value + 1}}}')}"
        return ""

    def barrier(self, op: Operation) -> None:
        """The barrier of a block."""
        self.declare("llvm.nvvm.barrier.cta.sync.aligned.all", "void", ["i32"])
        self.lines.append("  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")

    def fence(self, op: Operation) -> None:
        """An order among the accesses of a thread, as some others see them."""
        ordering = LLVM_ORDERINGS[op.int_attr("ordering")]
        self.lines.append(f'  fence syncscope("{op.str_attr("syncscope")}") {ordering}')

    def atomicrmw(self, op: Operation) -> None:
        """An atomic update."""
        pointer, value = op.operands
        kind = LLVM_ATOMICS[op.int_attr("bin_op")].lstrip("_")
        ordering = LLVM_ORDERINGS[op.int_attr("ordering")]
        self.result(op, f"atomicrmw {kind} {self.typed(pointer)}, {self.typed(value)} {ordering}")

    def cmpxchg(self, op: Operation) -> None:
        """A compare-and-exchange."""
        orderings = [LLVM_ORDERINGS[op.int_attr(name)] for name in ("success_ordering", "failure_ordering")]
        self.result(op, f"cmpxchg {', '.join(map(self.typed, op.operands))} {' '.join(orderings)}")

    def warp_shuffle(self, op: Operation) -> None:
        """An exchange of values within a warp."""
        kind = opaque_text(op.attributes.get("kind")).removeprefix("#nvvm<shfl_kind ").rstrip(">")
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
        """Whether this thread is the one that a warp elects."""
        self.declare("llvm.nvvm.elect.sync", "{ i32, i1 }", ["i32"])
        pair = f"{self.names[op.results[0]]}.pair"
        self.lines.append(f"  {pair} = call {{ i32, i1 }} @llvm.nvvm.elect.sync(i32 -1)")
        self.result(op, f"extractvalue {{ i32, i1 }} {pair}, 1")

    def call(self, op: Operation) -> None:
        """A call of a function."""
        arguments = ", ".join(map(self.typed, op.operands))
        callee = op.str_attr("callee")
        if "warpsmith.library" in op.attributes:
            # Not a builtin: LLVM knows functions of these names, and would compute constants by its own host's library.
            self.result(op, f"call {self.type(op.results[0].type)} @{callee}({arguments}) nobuiltin")
        elif op.results:
            self.result(op, f"call {self.type(op.results[0].type)} @{callee}({arguments}){self._range(op)}")
        else:
            self.lines.append(f"  call void @{callee}({arguments})")

    def ret(self, op: Operation) -> None:
        """The function's return."""
        self.lines.append(f"  ret {self.typed(op.operands[0])}" if op.operands else "  ret void")

    def br(self, op: Operation) -> None:
        """A branch to one block."""
        self.lines.append(f"  br label %{self.labels[op.successors[0]]}")

    def cond_br(self, op: Operation) -> None:
        """A branch to one of two blocks."""
        true, false = (self.labels[s] for s in op.successors)
        self.lines.append(f"  br {self.typed(op.operands[0])}, label %{true}, label %{false}")


def opaque_text(attribute: at.Attribute | None) -> str:
    """The text of an opaque attribute; "" if it's none."""
    return attribute.text if isinstance(attribute, at.OpaqueAttr) else ""


_IN_PLACE = {"llvm.mlir.poison", "llvm.mlir.zero", "llvm.mlir.addressof"}
_SIMPLE = {
    f"llvm.{n}": n
    for n in "add sub mul sdiv udiv srem urem and or xor shl lshr ashr fadd fsub fmul fdiv frem fneg".split()
}
_CASTS = {
    f"llvm.{n}": n
    for n in "fpext fptrunc sext zext trunc sitofp uitofp fptosi fptoui bitcast ptrtoint inttoptr addrspacecast".split()
}
_TABLE: dict[str, Callable[[InstructionPrinter, Operation], None]] = {
    "llvm.getelementptr": InstructionPrinter.getelementptr,
    "llvm.load": InstructionPrinter.load,
    "llvm.alloca": InstructionPrinter.alloca,
    "llvm.intr.prefetch": InstructionPrinter.prefetch,
    "llvm.store": InstructionPrinter.store,
    "llvm.atomicrmw": InstructionPrinter.atomicrmw,
    "llvm.cmpxchg": InstructionPrinter.cmpxchg,
    "llvm.fence": InstructionPrinter.fence,
    "llvm.icmp": InstructionPrinter.icmp,
    "llvm.fcmp": InstructionPrinter.fcmp,
    "llvm.select": InstructionPrinter.select,
    "llvm.extractelement": InstructionPrinter.extractelement,
    "llvm.insertelement": InstructionPrinter.insertelement,
    "llvm.shufflevector": InstructionPrinter.shufflevector,
    "llvm.extractvalue": InstructionPrinter.extractvalue,
    "llvm.insertvalue": InstructionPrinter.insertvalue,
    "llvm.intr.masked.load": InstructionPrinter.masked_load,
    "llvm.intr.masked.gather": InstructionPrinter.masked_load,
    "llvm.intr.masked.store": InstructionPrinter.masked_store,
    "llvm.call": InstructionPrinter.call,
    "llvm.return": InstructionPrinter.ret,
    "llvm.br": InstructionPrinter.br,
    "llvm.cond_br": InstructionPrinter.cond_br,
    "nvvm.barrier0": InstructionPrinter.barrier,
    "nvvm.shfl.sync": InstructionPrinter.warp_shuffle,
    "nvvm.bar.warp.sync": InstructionPrinter.partial_barrier,
    "nvvm.barrier": InstructionPrinter.partial_barrier,
    "nvvm.elect.sync": InstructionPrinter.elect,
    "nvvm.read.ptx.sreg.laneid": InstructionPrinter.sreg,
    **{
        f"nvvm.read.ptx.sreg.{r}.{d}": InstructionPrinter.sreg
        for r in ("tid", "ctaid", "ntid", "nctaid")
        for d in "xyz"
    },
}
