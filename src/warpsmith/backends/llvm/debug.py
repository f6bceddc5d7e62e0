"""Metadata of LLVM's text, and the part of it that ties instructions to lines of HLO.

In: functions and the locations of their ops.  Out: the `!dbg` suffixes and the nodes that they refer to; PTX shows them
as `.loc`.
"""

from __future__ import annotations

from warpsmith.ir.core.ssa import Location, Operation

__all__ = ["DebugLines", "Metadata"]

_UNIT = (
    "distinct !DICompileUnit(language: DW_LANG_C, file: {file}, isOptimized: true, runtimeVersion: 0, "
    "emissionKind: DebugDirectivesOnly)"
)


class Metadata:
    """The numbered nodes of a module, each text once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def node(self, text: str) -> str:
        """A metadata node's reference."""
        return f"!{self._numbers.setdefault(text, len(self._numbers))}"

    def lines(self) -> list[str]:
        """The nodes' definitions, for the end of the module."""
        return [f"!{number} = {text}" for text, number in self._numbers.items()]


class DebugLines:
    """The places of one module's instructions; `subprogram` begins a function."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.unit = ""
        self.scope = ""

    def module_lines(self) -> list[str]:
        """What the module must say when any function has a place."""
        if not self.unit:
            return []
        version = self.metadata.node('!{i32 2, !"Debug Info Version", i32 3}')
        return [f"!llvm.dbg.cu = !{{{self.unit}}}", f"!llvm.module.flags = !{{{version}}}"]

    def subprogram(self, op: Operation) -> str:
        """The debug scope of a function, as its line in the text refers to it; nothing without a known place."""
        self.scope = ""
        if not op.location.line:
            return ""
        name = op.location.file.replace("\\", "/").replace('"', "'")
        file = self.metadata.node(f'!DIFile(filename: "{name}", directory: "")')
        self.unit = self.unit or self.metadata.node(_UNIT.format(file=file))
        types = self.metadata.node(f"!DISubroutineType(types: {self.metadata.node('!{}')})")
        self.scope = self.metadata.node(
            f'distinct !DISubprogram(name: "{op.str_attr("sym_name")}", file: {file}, line: {op.location.line}, '
            f"type: {types}, unit: {self.unit}, spFlags: DISPFlagDefinition)"
        )
        return f" !dbg {self.scope}"

    def place(self, location: Location) -> str:
        """What ties an instruction to its HLO line, or nothing.

        LLVM wants a place for every call in such a function.
        """
        if not self.scope:
            return ""
        where = f"!DILocation(line: {location.line}, column: {location.column}, scope: {self.scope})"
        return f", !dbg {self.metadata.node(where)}"
