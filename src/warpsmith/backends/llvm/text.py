"""A module in the llvm dialect in; textual LLVM IR out.

Nothing is decided here: each op prints as its instruction, block arguments as phis, constants in place.  LLVM reads the
text (llvmlite's builder would only be a slower way to write the same).
"""

from __future__ import annotations

import math

from warpsmith.backends.llvm.instructions import InstructionPrinter, opaque_text
from warpsmith.backends.llvm.literals import aggregate
from warpsmith.errors import InternalError, LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.llvm_types import LLVMArrayType, LLVMFunctionType
from warpsmith.ir.core.ssa import Block, Operation, Value

__all__ = ["llvm_text"]


_CONVENTIONS = {"nvvm.kernel": "ptx_kernel ", "rocdl.kernel": "amdgpu_kernel "}
"""A kernel's attribute -> its calling convention."""


def llvm_text(module: Operation, *, triple: str = "", layout: str = "", lines: bool = False) -> str:
    """LLVM IR for all functions and globals of `module`, which must be in the llvm dialect.

    With `lines`, instructions carry the HLO line that they come from, which PTX shows as `.loc`.
    """
    return _Printer(triple, layout, lines).module(module)


class _Printer(InstructionPrinter):
    """A module's text: its globals, its functions with their blocks, and what these declare."""

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
        kind = next((each for each in _CONVENTIONS if each in op.attributes), "")
        linkage = "internal " if opaque_text(op.attributes.get("linkage")) == "#llvm.linkage<internal>" else ""
        convention = _CONVENTIONS.get(kind, "")
        number = self._function_attributes(op, kind) if kind else ""
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

    def _function_attributes(self, op: Operation, kind: str) -> str:
        block = op.attributes["warpsmith.block"]
        assert isinstance(block, at.DenseArrayAttr)
        number = len(self.attributes)
        if kind == "rocdl.kernel":
            threads = math.prod(block.values)
            self.attributes.append(f'attributes #{number} = {{ "amdgpu-flat-work-group-size"="{threads},{threads}" }}')
            return f" #{number}"
        shape = ",".join(map(str, block.values))
        least = op.attributes.get("warpsmith.min_blocks")
        more = f' "nvvm.minctasm"="{least.value}"' if isinstance(least, at.IntegerAttr) else ""
        self.attributes.append(f'attributes #{number} = {{ "nvvm.reqntid"="{shape}"{more} }}')
        return f" #{number}"

    def phis(self, block: Block, sources: list[tuple[Block, list[Value]]]) -> None:
        for i, argument in enumerate(block.args):
            incoming = ", ".join(f"[ {self.value(values[i])}, %{self.labels[source]} ]" for source, values in sources)
            self.lines.append(f"  {self.names[argument]} = phi {self.type(argument.type)} {incoming}")


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
