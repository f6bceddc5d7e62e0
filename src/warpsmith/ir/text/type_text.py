"""Types from their MLIR spelling.  Printing needs nothing here: `str(type)` is the spelling.

In: the text of one type (one token of the lexer).  Out: the interned type.  Errors: IrSyntaxError with no place; the
parser, which knows the token, adds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from warpsmith.errors import IrSyntaxError, did_you_mean
from warpsmith.ir.core import llvm_types as lt
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.types import Type

__all__ = ["KNOWN", "parse_type_text"]

KNOWN: dict[str, Type] = {
    t.text: t for t in (ty.INDEX, ty.NONE, ty.I1, ty.I8, ty.I16, ty.I32, ty.I64, ty.F16, ty.BF16, ty.F32, ty.F64)
}
"""Types by spelling: those met so far.  The parser looks here first."""

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_DIM = re.compile(r"\s*(\d+)\s*x")
_NUMBER = re.compile(r"\s*(\d+)")
_SPACE = re.compile(r"\s*")
_LAYOUT = re.compile(r",\s*dense<\s*(?:\[([\d,\s]*)\]|(\d+))\s*>\s*:\s*tensor<\s*\d+\s*x\s*i64\s*>")
_SPACE_NAMES = {"global": 1, "workgroup": 3, "private": 5}
_MEMORY_SPACE = re.compile(r",\s*(?:(\d+)(?:\s*:\s*i\d+)?|#gpu\.address_space<(\w+)>)")
_INTEGER = re.compile(r"i([1-9]\d{0,7})")
_WIDEST = 1 << 12


class _Cursor:
    """The text of a type and how far it has been read."""

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, cause: str, help: str | None = None) -> IrSyntaxError:
        return IrSyntaxError(f"{cause} in type '{self.text}'", help=help)

    def accept(self, literal: str) -> bool:
        found = _SPACE.match(self.text, self.at)
        start = found.end() if found else self.at
        if self.text.startswith(literal, start):
            self.at = start + len(literal)
            return True
        return False

    def expect(self, literal: str) -> None:
        if not self.accept(literal):
            raise self.fail(f"expected '{literal}' at '{self.text[self.at :][:20]}'")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def dims(self) -> list[int]:
        shape: list[int] = []
        while (found := self.match(_DIM)) is not None:
            shape.append(int(found[1]))
        if self.accept("?") or self.accept("*"):
            raise self.fail("a dynamic dimension", "every shape is static here, as HLO's are")
        if self.accept("["):
            raise self.fail("a scalable dimension", "vectors have a fixed length here")
        return shape

    # -- types
    def type(self) -> Type:
        self.match(_SPACE)
        if self.accept("!"):
            return self.dialect_type()
        if self.accept("("):
            return self.function_type()
        word = self.match(_WORD)
        if word is None:
            raise self.fail("expected a type")
        shaped = _SHAPED.get(word[0])
        if shaped is not None and self.accept("<"):
            return shaped(self)
        return self.scalar(word[0])

    def scalar(self, word: str) -> Type:
        known = KNOWN.get(word)
        if known is not None:
            return known
        if ty.is_float_name(word):
            return ty.float_type(word)
        found = _INTEGER.fullmatch(word)
        if found is not None and int(found[1]) <= _WIDEST:
            return ty.integer(int(found[1]))
        if re.fullmatch(r"[su]i\d+", word):
            raise IrSyntaxError(
                f"'{word}' has a sign", help=f"integers are signless here: write {word[1:]}; the op says the sign"
            )
        names = [*KNOWN, "f8E4M3FN", "f8E5M2", "tensor", "vector", "memref", "complex"]
        raise IrSyntaxError(f"unknown type '{word}'", help=did_you_mean(word, names))

    def complex_type(self) -> Type:
        element = self.type()
        self.expect(">")
        if not isinstance(element, ty.FloatType) or element.width < 32:
            raise self.fail(f"complex of {element}", "complex numbers are of f32 or f64")
        return ty.complex_of(element)

    def vector_type(self) -> Type:
        shape = self.dims()
        element = self.type()
        self.expect(">")
        return ty.vector(shape, element)

    def tensor_type(self) -> Type:
        shape = self.dims()
        element = self.type()
        layout: list[int] | None = None
        found = self.match(_LAYOUT)
        if found is not None:
            layout = [int(d) for d in (found[1] or found[2] or "").split(",") if d.strip()]
            if sorted(layout) != list(range(len(shape))):
                raise self.fail("a layout that is no permutation of the dimensions")
        elif self.accept(","):
            raise self.fail(
                "an encoding that is no layout",
                "only a dense minor-to-major list is understood, such as dense<[0, 1]> : tensor<2xi64>",
            )
        self.expect(">")
        return ty.tensor(shape, element, layout)

    def memref_type(self) -> Type:
        shape = self.dims()
        element = self.type()
        space = 0
        found = self.match(_MEMORY_SPACE)
        if found is not None:
            if found[2] is not None and found[2] not in _SPACE_NAMES:
                raise self.fail(f"unknown memory space '{found[2]}'")
            space = int(found[1]) if found[1] is not None else _SPACE_NAMES[found[2]]
        elif self.accept(","):
            raise self.fail(
                "a memref layout", "memrefs are contiguous and row-major here; only a memory space may follow"
            )
        self.expect(">")
        return ty.memref(shape, element, space)

    def type_list(self, close: str) -> list[Type]:
        found: list[Type] = []
        if self.accept(close):
            return found
        while True:
            found.append(self.type())
            if self.accept(close):
                return found
            self.expect(",")

    def function_type(self) -> Type:
        inputs = self.type_list(")")
        self.expect("->")
        results = self.type_list(")") if self.accept("(") else [self.type()]
        return ty.function(inputs, results)

    def dialect_type(self) -> Type:
        word = self.match(_WORD)
        name = word[0] if word is not None else ""
        if not name.startswith("llvm."):
            raise IrSyntaxError(
                f"unknown dialect type '!{name}'",
                help="the dialect types here are !llvm.ptr, array, struct, func and void",
            )
        return self.llvm_body(name.removeprefix("llvm."))

    def inside_llvm(self) -> Type:
        """A type within an LLVM type, where `!llvm.` may be left out."""
        self.match(_SPACE)
        if self.accept("!llvm."):
            word = self.match(_WORD)
            return self.llvm_body(word[0] if word is not None else "")
        start = self.at
        word = self.match(_WORD)
        if word is not None and word[0] in _LLVM:
            return self.llvm_body(word[0])
        self.at = start
        return self.type()

    def llvm_body(self, name: str) -> Type:
        parse = _LLVM.get(name)
        if parse is None:
            raise IrSyntaxError(f"unknown type '!llvm.{name}'", help=did_you_mean(name, _LLVM))
        return parse(self)

    def llvm_pointer(self) -> Type:
        if not self.accept("<"):
            return ty.pointer()
        found = self.match(_NUMBER)
        if found is None:
            raise self.fail("expected an address space")
        self.expect(">")
        return ty.pointer(int(found[1]))

    def llvm_array(self) -> Type:
        self.expect("<")
        found = self.match(_DIM)
        if found is None:
            raise self.fail("expected a number of elements and 'x'")
        element = self.inside_llvm()
        self.expect(">")
        return lt.llvm_array(int(found[1]), element)

    def llvm_struct(self) -> Type:
        self.expect("<")
        self.expect("(")
        fields: list[Type] = []
        while not self.accept(")"):
            if fields:
                self.expect(",")
            fields.append(self.inside_llvm())
        self.expect(">")
        return lt.llvm_struct(fields)

    def llvm_function(self) -> Type:
        self.expect("<")
        result = self.inside_llvm()
        self.expect("(")
        inputs: list[Type] = []
        while not self.accept(")"):
            if inputs:
                self.expect(",")
            inputs.append(self.inside_llvm())
        self.expect(">")
        return lt.llvm_function(result, inputs)


_SHAPED: dict[str, Callable[[_Cursor], Type]] = {
    "complex": _Cursor.complex_type,
    "memref": _Cursor.memref_type,
    "tensor": _Cursor.tensor_type,
    "vector": _Cursor.vector_type,
}
_LLVM: dict[str, Callable[[_Cursor], Type]] = {
    "array": _Cursor.llvm_array,
    "func": _Cursor.llvm_function,
    "ptr": _Cursor.llvm_pointer,
    "struct": _Cursor.llvm_struct,
    "void": lambda _: lt.VOID,
}


def parse_type_text(text: str) -> Type:
    """The type spelled `text`; IrSyntaxError, without a place, if there is none."""
    found = KNOWN.get(text)
    if found is None:
        cursor = _Cursor(text)
        found = cursor.type()
        cursor.match(_SPACE)
        if cursor.at != len(text):
            raise cursor.fail(f"'{text[cursor.at :][:20]}' left over")
        if found.text == text:  # other spellings of a type aren't kept, so the table stays as small as the set of types
            KNOWN[text] = found
    return found
