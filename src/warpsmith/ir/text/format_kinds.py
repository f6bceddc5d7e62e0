"""How attributes stand in pretty forms: as flags, names, numbers in brackets, symbols.

In: an attribute, or tokens.  Out: text, or the attribute.  The descriptions of `format.py` use the table `KINDS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.ssa import OpRow
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.attribute_text import attribute_text, quote, symbol_text
from warpsmith.ir.text.parser import Parser

__all__ = ["KINDS", "Kind", "parse_flags", "print_flags"]


@dataclass(frozen=True, slots=True)
class Kind:
    """How an attribute stands in a pretty form.  `print` gives the text, or None for another class of attribute."""

    print: Callable[[Attribute, OpRow], str | None]
    parse: Callable[[Parser, OpRow, str], Attribute | None]


# ------------------------------------------------------------------------------------------------------ attribute kinds
_FLAG_TEXT = re.compile(r"#arith\.(fastmath|overflow)<[a-z]+(, [a-z]+)*>")
_FLAGS = {"fastmath": "fastmath", "overflowFlags": "overflow"}
_OVERFLOW_BITS = {"nsw": 1, "nuw": 2}  # the llvm dialect holds these flags as bits of an i32


def print_flags(attribute: Attribute, row: OpRow) -> str | None:
    """` fastmath<contract>` of `#arith.fastmath<contract>`, ` overflow<nsw>` of the llvm dialect's 1."""
    if isinstance(attribute, at.IntegerAttr) and attribute.type is ty.I32 and 0 <= attribute.value < 4:
        words = [word for word, bit in _OVERFLOW_BITS.items() if attribute.value & bit]
        return f" overflow<{', '.join(words)}>" if words else None
    if isinstance(attribute, at.OpaqueAttr) and _FLAG_TEXT.fullmatch(attribute.text) and row.dialect != "llvm":
        return f" {attribute.text.removeprefix('#arith.')}"
    return None


def parse_flags(p: Parser, row: OpRow, name: str) -> Attribute | None:
    """Flags after a keyword (`fastmath<contract>`, `overflow<nsw>`); None where there are none."""
    keyword = _FLAGS[name]
    index = p.i
    if not p.accept(keyword):
        return None
    p.expect("<", f"after '{keyword}'")
    flags = p.comma_separated(">", lambda: p.word("a flag"))
    if row.dialect != "llvm":
        return at.opaque(f"#arith.{keyword}<{', '.join(flags)}>")
    if not all(flag in _OVERFLOW_BITS for flag in flags):
        raise p.error(f"unknown flags {', '.join(flags)}", index, f"known: {', '.join(_OVERFLOW_BITS)}")
    return at.integer_attr(sum(_OVERFLOW_BITS[f] for f in set(flags)), ty.I32)


def _inside(text: str) -> str:
    """The last word of an opaque attribute such as `#gpu<dim x>`."""
    return text[text.find("<") + 1 : -1].rpartition(" ")[2]


def _opaque_word(template: str) -> Kind:
    """An opaque attribute of which the form shows one word."""

    def show(attribute: Attribute, _: OpRow) -> str | None:
        word = _inside(attribute.text) if isinstance(attribute, at.OpaqueAttr) else ""
        return word if word.isidentifier() and attribute is at.opaque(template.format(word)) else None

    return Kind(show, lambda p, _row, name: at.opaque(template.format(p.word(name))))


def _int_list(element: Type) -> Kind:
    def show(attribute: Attribute, _: OpRow) -> str | None:
        if not isinstance(attribute, at.DenseArrayAttr) or attribute.element is not element:
            return None
        return f"[{', '.join(map(str, attribute.values))}]"

    def read(p: Parser, _: OpRow, name: str) -> Attribute:
        p.expect("[", f"of '{name}'")
        return at.dense_array(p.comma_separated("]", p.integer), element)

    return Kind(show, read)


def _print_symbol(attribute: Attribute, _: OpRow) -> str | None:
    return symbol_text(attribute.name) if isinstance(attribute, at.SymbolRefAttr) else None


def _print_word(attribute: Attribute, _: OpRow) -> str | None:
    return attribute.value if isinstance(attribute, at.StringAttr) and attribute.value.isidentifier() else None


def enumeration(names: tuple[str, ...], quoted: bool = False) -> Kind:
    """An i64 attribute that is printed as a name."""
    values = {name: at.integer_attr(i, ty.I64) for i, name in enumerate(names)}

    def show(attribute: Attribute, _: OpRow) -> str | None:
        if (
            not isinstance(attribute, at.IntegerAttr)
            or not 0 <= attribute.value < len(names)
            or attribute.type is not ty.I64
        ):
            return None
        return quote(names[attribute.value]) if quoted else names[attribute.value]

    def read(p: Parser, _: OpRow, name: str) -> Attribute:
        index = p.i
        word = p.string(f"a {name}") if quoted else p.word(f"a {name}")
        if word not in values:
            raise p.error(f"unknown {name} '{word}'", index, f"one of: {', '.join(names)}")
        return values[word]

    return Kind(show, read)


def _print_index(attribute: Attribute, _: OpRow) -> str | None:
    return (
        f" upper_bound {attribute.value}"
        if isinstance(attribute, at.IntegerAttr) and attribute.type is ty.INDEX
        else None
    )


def _parse_bound(p: Parser, _row: OpRow, _name: str) -> Attribute | None:
    return at.integer_attr(p.integer(), ty.INDEX) if p.accept("upper_bound") else None


def _integer(type: ty.IntegerType) -> Kind:
    def show(attribute: Attribute, _: OpRow) -> str | None:
        return str(attribute.value) if isinstance(attribute, at.IntegerAttr) and attribute.type is type else None

    return Kind(show, lambda p, _row, name: at.integer_attr(p.integer(name), type))


_WRAP_FLAGS = {0: "", 1 | 2: " inbounds", 2: " nusw", 4: " nuw", 3 | 4: " inbounds | nuw", 2 | 4: " nusw | nuw"}


def _print_wrap(attribute: Attribute, _: OpRow) -> str | None:
    if not isinstance(attribute, at.IntegerAttr) or attribute.type is not ty.I32:
        return None
    return _WRAP_FLAGS.get(attribute.value)


def _parse_wrap(p: Parser, _row: OpRow, _name: str) -> Attribute | None:
    start = p.i
    text = ""
    while p.tokens[p.i] in ("inbounds", "nusw", "nuw", "|"):
        text += f" {p.tokens[p.i]}"
        p.i += 1
    for bits, words in _WRAP_FLAGS.items():
        if words == text:
            return at.integer_attr(bits, ty.I32) if bits else None
    raise p.error(f"unknown flags '{text[1:]}'", start)


CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
ARITH_CMPF = tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())
LLVM_FCMP = tuple("_false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno _true".split())

# MLIR's numbering of what memref.atomic_rmw and llvm.atomicrmw do, and of memory orderings.
ATOMIC_KINDS = tuple(
    "addf addi andi assign maximumf maxnumf maxs maxu minimumf minnumf mins minu mulf muli ori xori".split()
)
LLVM_ATOMICS = tuple("xchg add sub _and nand _or _xor max min umax umin fadd fsub fmax fmin".split())
LLVM_ORDERINGS = tuple("not_atomic unordered monotonic consume acquire release acq_rel seq_cst".split())

KINDS: dict[str, Kind] = {
    "flags": Kind(print_flags, parse_flags),
    "cmpi": enumeration(CMPI),
    "cmpf": enumeration(ARITH_CMPF),
    "icmp": enumeration(CMPI, quoted=True),
    "fcmp": enumeration(LLVM_FCMP, quoted=True),
    "atomic_kind": enumeration(ATOMIC_KINDS),
    "atomic_op": enumeration(LLVM_ATOMICS),
    "ordering": enumeration(LLVM_ORDERINGS),
    "gpu_dim": _opaque_word("#gpu<dim {}>"),
    "gpu_shuffle": _opaque_word("#gpu<shuffle_mode {}>"),
    "shfl_kind": _opaque_word("#nvvm<shfl_kind {}>"),
    "ints": _int_list(ty.I64),
    "i32s": _int_list(ty.I32),
    "i32": _integer(ty.I32),
    "i64": _integer(ty.I64),
    "wrap": Kind(_print_wrap, _parse_wrap),
    "bound": Kind(_print_index, _parse_bound),
    "sym": Kind(_print_symbol, lambda p, _row, _name: at.symbol(p.symbol_name())),
    "word": Kind(_print_word, lambda p, _row, name: at.string(p.word(f"a {name}"))),
    "type": Kind(
        lambda a, _: a.type.text if isinstance(a, at.TypeAttr) else None,
        lambda p, _row, _name: at.type_attr(p.type()),
    ),
    "attr": Kind(lambda a, _: attribute_text(a), lambda p, _row, _name: p.attribute()),
    "unit": Kind(
        lambda a, _: None if not isinstance(a, at.UnitAttr) else "",
        lambda p, _row, name: at.UNIT if p.accept(name) else None,
    ),
}
