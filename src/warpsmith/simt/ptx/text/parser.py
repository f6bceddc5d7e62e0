"""PTX text in, `PtxModule` out: the language as LLVM's NVPTX back end prints it, inline assembly included.

Registers are resolved to slots here, scope by scope, so that an unknown name is an error at its place in the text.
Directives for debuggers are read over, `.file` and `.loc` kept.  What an instruction means isn't looked at.
"""

from __future__ import annotations

from warpsmith.errors import did_you_mean
from warpsmith.simt.ptx.text.declarations import DeclarationParser
from warpsmith.simt.ptx.text.module import (
    Address,
    Function,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    PtxModule,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)
from warpsmith.simt.ptx.text.tokens import Tokens, immediate, tokenize

__all__ = ["SPECIAL_REGISTERS", "parse_ptx"]

_AXES = "xyzw"
SPECIAL_REGISTERS = frozenset(
    [f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in _AXES]
    + "%laneid %warpid %nwarpid %lanemask_eq %lanemask_lt %lanemask_le %lanemask_gt %lanemask_ge".split()
    + "%smid %nsmid %gridid %clock %clock64 %globaltimer %dynamic_smem_size %total_smem_size".split()
)
"""The special registers that have a value here."""

_SPACES = frozenset({".global", ".shared", ".const", ".local", ".param"})
_LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})
_TO_END_OF_LINE = frozenset({".version", ".target", ".address_size", ".file", ".loc"})
_SKIPPED = frozenset({".pragma", ".alias", ".callprototype", ".calltargets"})


def parse_ptx(text: str, file: str = "<ptx>") -> PtxModule:
    """Parse PTX.  PtxSyntaxError, with file, line and column, for anything that isn't."""
    return _Parser(tokenize(text, file)).module()


class _Parser(DeclarationParser):
    def __init__(self, tokens: Tokens) -> None:
        super().__init__(tokens)
        self.result = PtxModule(tokens.file, tokens.lines)
        self.function = Function("", False)
        self.scopes: list[dict[str, Register]] = []
        self.ranges: list[dict[str, tuple[int, str]]] = []
        self.source: tuple[int, int, int] | None = None

    # -- module level
    def module(self) -> PtxModule:
        while self.kinds[self.at] != "end":
            if self.take(";"):
                continue
            linkage: list[str] = []
            while self.texts[self.at] in _LINKAGE:
                linkage.append(self.texts[self.at])
                self.at += 1
            word = self.word("a directive")
            if word in _TO_END_OF_LINE:
                self.line_directive(word)
            elif word in (".entry", ".func"):
                self.parse_function(word == ".entry")
            elif word in _SPACES:
                self.result.variables += self.variables(word[1:], ".extern" in linkage)
            elif word == ".section":
                self.section()
            elif word in _SKIPPED:
                self.skip_statement()
            else:
                self.fail(f"'{word}' can't stand outside a function", at=self.at - 1)
        if not self.result.version:
            self.fail("no .version directive", "PTX text begins with .version, .target and .address_size", at=0)
        return self.result

    def line_directive(self, word: str) -> None:
        rest = self.rest_of_line()
        if word == ".version" and rest:
            self.result.version = rest[0]
        elif word == ".target" and rest:
            self.result.target = rest[0]
        elif word == ".address_size" and rest != ["64"]:
            self.fail("only 64-bit addresses are known", at=self.at - 1)
        elif word == ".file" and len(rest) >= 2 and rest[0].isdigit():
            self.result.files[int(rest[0])] = rest[1].strip('"')
        elif word == ".loc" and len(rest) >= 3 and all(r.isdigit() for r in rest[:3]):
            self.source = (int(rest[0]), int(rest[1]), int(rest[2]))

    def section(self) -> None:
        while not self.take("{"):
            self.at += 1
            if self.kinds[self.at] == "end":
                self.fail("'{' expected after .section")
        while not self.take("}"):
            if self.kinds[self.at] == "end":
                self.fail("a section isn't closed")
            self.at += 1

    # -- functions
    def parse_function(self, kernel: bool) -> None:
        function = Function("", kernel, text_line=self.tokens.rows[self.at - 1])
        if not kernel and self.peek("("):
            function.results = self.parameter_list()
        function.name = self.word("a function name")
        if self.peek("("):
            function.parameters = self.parameter_list()
        while not self.peek("{") and not self.take(";"):
            self.performance_directive(function)
        if self.peek("{"):
            function.has_body = True
            self.function = function
            self.source = None
            self.body()
        previous = self.result.functions.get(function.name)
        if previous is None or not previous.has_body:
            self.result.functions[function.name] = function

    def parameter_list(self) -> list[Variable]:
        self.expect("(")
        found: list[Variable] = []
        while not self.take(")"):
            space = self.word("a parameter")
            if space not in (".param", ".reg"):
                self.fail(f"'.param' expected, found '{space}'", at=self.at - 1)
            type, align, width, pointer = self.declared_type()
            found.append(self.declarator("param", type, align, width, False, pointer))
            self.take(",")
        return found

    def performance_directive(self, function: Function) -> None:
        word = self.word("'{' or a directive")
        numbers: list[int] = []
        while self.kinds[self.at] == "number":
            numbers.append(self.integer("a number"))
            if not self.take(","):
                break
        if word == ".reqntid":
            function.exact_threads = tuple([*numbers, 1, 1][:3])
        elif word == ".maxntid":
            product = 1
            for number in numbers:
                product *= number
            function.most_threads = product
        elif not word.startswith("."):
            self.fail(f"'{{' expected, found '{word}'", at=self.at - 1)

    def body(self) -> None:
        self.expect("{")
        self.scopes, self.ranges = [{}], [{}]
        while self.scopes:
            self.statement()

    def statement(self) -> None:
        text = self.texts[self.at]
        if text == "{":
            self.at += 1
            self.scopes.append({})
            self.ranges.append({})
        elif text == "}":
            self.at += 1
            self.scopes.pop()
            self.ranges.pop()
        elif text == ";":
            self.at += 1
        elif text == "@":
            self.at += 1
            negated = self.take("!")
            predicate = self.register(self.word("a predicate register"))
            self.instruction(predicate, negated)
        elif self.kinds[self.at] == "end":
            self.fail(f"the body of '{self.function.name}' isn't closed")
        elif self.texts[self.at + 1] == ":":
            self.at += 2
            self.label(text)
        elif text.startswith("."):
            self.at += 1
            self.directive(text)
        else:
            self.instruction(None, False)

    def label(self, name: str) -> None:
        if self.peek(".branchtargets") or self.peek(".calltargets") or self.peek(".callprototype"):
            self.at += 1
            names: list[str] = []
            while not self.take(";"):
                names.append(self.word("a label"))
                self.take(",")
            self.function.targets[name] = tuple(names)
            return
        if name in self.function.labels:
            self.fail(f"label '{name}' is there twice", at=self.at - 2)
        self.function.labels[name] = len(self.function.instructions)

    def directive(self, word: str) -> None:
        if word == ".reg":
            self.registers()
        elif word in _SPACES:
            self.function.variables += self.variables(word[1:])
        elif word in _TO_END_OF_LINE:
            self.line_directive(word)
        elif word == ".extern":
            self.directive(self.word("a state space"))
        elif word in _SKIPPED:
            self.skip_statement()
        else:
            self.fail(f"'{word}' can't stand in a function", at=self.at - 1)

    def registers(self) -> None:
        type, _, _, _ = self.declared_type()
        while True:
            name = self.word("a register name")
            if self.take("<"):
                self.ranges[-1][name] = (self.integer("a number of registers"), type)
                self.expect(">")
            else:
                self.scopes[-1][name] = self.new_register(name, type)
            if not self.take(","):
                break
        self.expect(";")

    def new_register(self, name: str, type: str) -> Register:
        register = Register(len(self.function.registers), type, name)
        self.function.registers.append(register)
        return register

    def find_register(self, name: str) -> Register | None:
        stem = name.rstrip("0123456789")
        number = name[len(stem) :]
        for scope, ranges in zip(reversed(self.scopes), reversed(self.ranges), strict=True):
            found = scope.get(name)
            if found is not None:
                return found
            if number and stem in ranges and int(number) < ranges[stem][0]:
                scope[name] = self.new_register(name, ranges[stem][1])
                return scope[name]
        return None

    def register(self, name: str) -> Register:
        found = self.find_register(name)
        if found is None:
            known = [key for scope in self.scopes for key in scope]
            self.fail(f"register '{name}' isn't declared", did_you_mean(name, known), at=self.at - 1)
        return found

    # -- instructions
    def instruction(self, predicate: Register | None, negated: bool) -> None:
        row = self.tokens.rows[self.at]
        opcode = self.word("an instruction")
        if opcode[0] in ".%$_":
            self.fail(f"an instruction expected, found '{opcode}'", at=self.at - 1)
        operands: list[Operand] = []
        arguments: list[tuple[Operand, ...]] = []
        while not self.take(";"):
            if self.peek("("):
                arguments.append(self.argument_list())
                operands.append(Sink())
            else:
                operands.append(self.operand())
            if not self.peek(";"):
                self.expect(",")
        self.function.instructions.append(
            Instruction(
                opcode,
                tuple(opcode.split(".")),
                tuple(operands),
                row,
                predicate,
                negated,
                self.source,
                tuple(arguments),
            )
        )

    def argument_list(self) -> tuple[Operand, ...]:
        self.expect("(")
        found: list[Operand] = []
        while not self.take(")"):
            found.append(self.operand())
            self.take(",")
        return tuple(found)

    def operand(self) -> Operand:
        if self.take("{"):
            elements: list[Operand] = []
            while not self.take("}"):
                elements.append(self.operand())
                if not self.peek("}"):
                    self.expect(",")
            return Vector(tuple(elements))
        if self.take("["):
            return self.address()
        first = self.simple_operand()
        return Pair(first, self.simple_operand()) if self.take("|") else first

    def address(self) -> Address:
        base = self.simple_operand()
        if not isinstance(base, (Register, Symbol, Immediate)):
            self.fail("an address is a register, a name or a number", at=self.at - 1)
        offset = 0
        while self.peek("+") or self.peek("-"):
            self.take("+")
            offset += self.integer("an offset")
        self.expect("]")
        return Address(base, offset)

    def simple_operand(self) -> Operand:
        if self.take("!"):
            return Negated(self.register(self.word("a predicate register")))
        negative = self.take("-")
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind == "number":
            self.at += 1
            return immediate(text, negative)
        if kind != "word" or negative:
            self.fail(f"an operand expected, found '{text}'")
        self.at += 1
        if text == "_":
            return Sink()
        if text in SPECIAL_REGISTERS:
            return Special(text)
        found = self.find_register(text)
        if found is not None:
            return found
        if text.startswith("%"):
            return self.register(text)
        if self.peek("+") and self.kinds[self.at + 1] == "number" and not self.peek("]"):
            self.at += 1
            return Symbol(text, self.integer("an offset"))
        return Symbol(text)
