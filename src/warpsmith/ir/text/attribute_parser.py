"""Reading types, attributes and locations from tokens.

In: a token stream.  Out: interned attributes.  The op parser extends this class.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from warpsmith.errors import WarpsmithError, did_you_mean
from warpsmith.indexing import parse_map
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.base_parser import DEEPEST, BaseParser, is_number, is_whole
from warpsmith.ir.text.type_text import KNOWN

__all__ = ["AttributeParser"]

_MAP = re.compile(r"#(?:xla_gpu|xla)\.indexing_map<")
_COMMA = re.compile(r" ?, ?")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_HEX_DATA = re.compile(r"0x(?:[0-9A-Fa-f]{2})*")
_TYPE_WORD = re.compile(r"[su]?i\d+|b?f\d\w*|(?:tensor|vector|memref|complex)<.*", re.DOTALL)


class AttributeParser(BaseParser):
    """A token stream that reads attributes, too."""

    __slots__ = ()

    # -- attributes
    def attribute(self) -> Attribute:
        """One attribute value."""
        token = self.tokens[self.i]
        first = token[:1]
        if is_number(token):
            return self.number()
        parse = _BY_FIRST.get(first)
        if parse is not None:
            self.enter()
            found = parse(self)
            self.leave()
            return found
        parse = _BY_WORD.get(token)
        if parse is not None:
            self.i += 1
            return parse(self)
        if token[:10] in ("affine_map", "affine_set"):
            self.i += 1
            return opaque_attribute(token)
        if token in KNOWN or _TYPE_WORD.fullmatch(token):
            return at.type_attr(self.type())
        raise self.error(f"expected an attribute value, found {self.shown()}", help=did_you_mean(token, _BY_WORD))

    def number(self) -> Attribute:
        """An integer (i64 by default) or a float (f64 by default)."""
        index = self.i
        token = self.tokens[index]
        self.i += 1
        type: Type | None = self.type() if self.accept(":") else None
        if type is None:
            type = ty.I64 if is_whole(token) else ty.F64
        return self._scalar(token, type, index)

    def _scalar(self, token: str, type: Type, index: int) -> at.IntegerAttr | at.FloatAttr:
        """A number token as a scalar of `type`; `index` is its place for errors."""
        if isinstance(type, ty.FloatType):
            if token[:2] == "0x":
                bits = int(token, 16)
                if bits >> type.width:
                    raise self.error(f"{self.shown(index)} has more bits than {type}", index)
                return at.float_bits(bits, type)
            if is_whole(token):
                raise self.error(
                    f"{self.shown(index)} is an integer, but the type is {type}", index, f"write {token}.0"
                )
            with np.errstate(over="ignore", under="ignore"):
                return at.float_attr(float(token), type)
        if not isinstance(type, (ty.IntegerType, ty.IndexType)):
            raise self.error(f"a number of type {type}", index, "numbers are integers, index, or floats")
        if token in ("true", "false"):
            if type is not ty.I1:
                raise self.error(f"'{token}' is an i1, but the type is {type}", index)
            return at.boolean(token == "true")
        if not is_whole(token):
            raise self.error(f"{self.shown(index)} is a float, but the type is {type}", index)
        here, self.i = self.i, index + 1
        value = self._whole(token)
        self.i = here
        width = ty.bit_width(type)
        if not -(1 << (width - 1)) <= value < 1 << width:
            raise self.error(f"{token} doesn't fit {type}", index)
        return at.integer_attr(value, type)

    def attribute_dict(self) -> dict[str, Attribute]:
        """`{a = 1 : i32, b}`; the cursor is at the brace."""
        self.expect("{")
        found: dict[str, Attribute] = {}
        if self.accept("}"):
            return found
        while True:
            index = self.i
            name = self.string() if self.tokens[index][:1] == '"' else self.word("an attribute's name")
            if name in found:
                raise self.error(f"attribute '{name}' is given twice", index)
            found[name] = self.attribute() if self.accept("=") else at.UNIT
            if self.accept("}"):
                return found
            self.expect(",", "or '}'")

    def optional_dict(self) -> dict[str, Attribute]:
        """`{name = attribute, ...}`, or nothing, which is the empty one."""
        return self.attribute_dict() if self.tokens[self.i] == "{" else {}

    def array_attribute(self) -> Attribute:
        """`[a, b]`."""
        self.i += 1
        return at.array(self.comma_separated("]", self.attribute))

    def hash_attribute(self) -> Attribute:
        """An attribute that begins with `#`: an alias, or one of a dialect."""
        token = self.tokens[self.i]
        self.i += 1
        if _MAP.match(token):
            return self._indexing_map(token)
        if "<" not in token and "." not in token:
            found = self._alias(token, "attribute", self.attribute)
            assert isinstance(found, Attribute)
            return found
        return opaque_attribute(token)

    def _indexing_map(self, token: str) -> Attribute:
        index = self.i - 1
        body = token[token.index("<") + 1 : -1].strip()
        payload = "".join(self._unquoted(s) for s in _STRING.findall(body)) if body[:1] == '"' else body
        try:
            map = parse_map(payload)
        except WarpsmithError as bad:
            raise self.error(f"bad indexing map: {bad.cause}", index, bad.help) from None
        if map is None:
            raise self.error("no indexing map", index)
        if map.rt_vars:
            raise self.error("an indexing map with runtime variables", index, "in IR a runtime value is a dimension")
        return at.indexing_map(map)

    def dense_array(self) -> Attribute:
        """`array<i64: 1, 2>`, from its `<` on."""
        self.expect("<", "after 'array'")
        element = self.type()
        if not isinstance(element, ty.IntegerType):
            raise self.error(f"an array of {element}", self.i - 1, "arrays hold integers here: array<i64: 1, 2>")
        if self.accept(">"):
            return at.dense_array((), element)
        self.expect(":", "or '>'")
        values: list[int] = []
        while True:
            index = self.i
            self.i += 1
            scalar = self._scalar(self._number_token(index), element, index)
            assert isinstance(scalar, at.IntegerAttr)
            values.append(scalar.value)
            if self.accept(">"):
                return at.dense_array(values, element)
            self.expect(",", "or '>'")

    def _number_token(self, index: int) -> str:
        token = self.tokens[index]
        if not is_number(token) and token not in ("true", "false"):
            raise self.error(f"expected a number, found {self.shown(index)}", index)
        return token

    # -- dense elements
    def dense_of(self, type: ty.ShapedType) -> Attribute:
        """`dense<...>` whose type is known from elsewhere."""
        self.expect("dense")
        return self.dense_elements(type)

    def dense_elements(self, type: Type | None = None) -> Attribute:
        """`dense<...> : type`, from its `<` on; `type` if it stands elsewhere."""
        start = self.i
        self.expect("<", "after 'dense'")
        tokens: list[int] = []
        shape: list[int] | None = None
        if self.tokens[self.i] != ">":
            shape = self._dense_list(tokens, 0)
        self.expect(">", "after the elements")
        type_index = self.i
        if type is None:
            self.expect(":", "and the type of the elements")
            type_index = self.i
            type = self.type()
        if not isinstance(type, (ty.TensorType, ty.VectorType)):
            raise self.error(f"dense elements of {type}", type_index, "dense elements are a tensor's or a vector's")
        if not tokens and type.elements:
            raise self.error(f"no elements for {type}", start)
        if shape and shape != list(type.shape):
            raise self.error(f"elements of shape {shape} for {type}", start)
        if type.elements > 1 << 28:
            raise self.error(f"{type.elements} elements", type_index, "the limit is 2^28")
        if tokens and self.tokens[tokens[0]][:1] == '"':
            return self._dense_bytes(tokens[0], type)
        values = self._dense_values(tokens, type)
        return at.dense(values.reshape(type.shape) if shape or not tokens else values[0], type)

    def _dense_list(self, tokens: list[int], depth: int) -> list[int]:
        """Collect the element tokens' indices; the list's shape ([] for one bare element)."""
        if depth > DEEPEST:
            raise self.error(f"nested more than {DEEPEST} levels deep")
        if self.accept("("):
            tokens.append(self.i)
            self.i += 1
            self.expect(",", "between the parts of a complex number")
            self.i += 1
            self.expect(")", "after a complex number")
            return []
        if not self.accept("["):
            tokens.append(self.i)
            self.i += 1
            return []
        if self.accept("]"):
            return [0]
        first: list[int] | None = None
        count = 0
        while True:
            index = self.i
            inner = self._dense_list(tokens, depth + 1)
            if first is None:
                first = inner
            elif inner != first:
                raise self.error(f"an element of shape {inner} after one of shape {first}", index)
            count += 1
            if self.accept("]"):
                return [count, *first]
            self.expect(",", "or ']'")

    def _dense_bytes(self, index: int, type: ty.ShapedType) -> Attribute:
        digits = self._unquoted_at(index)
        size = ty.numpy_dtype(type).itemsize
        raw = bytes.fromhex(digits[2:]) if _HEX_DATA.fullmatch(digits) else None
        if raw is None or ty.bit_width(type.element) % 8 or len(raw) not in (size, size * type.elements):
            raise self.error(
                f"the bytes given aren't those of {type}",
                index,
                f"'0x', then two digits a byte, {size} bytes an element",
            )
        array = np.frombuffer(raw, ty.numpy_dtype(type))
        return at.dense(array[0] if len(array) == 1 else array.reshape(type.shape), type)

    def _unquoted_at(self, index: int) -> str:
        token = self.tokens[index]
        return self._unquoted(token)

    def _dense_values(self, tokens: list[int], type: ty.ShapedType) -> np.ndarray:
        dtype = ty.numpy_dtype(type)
        element = type.element
        if isinstance(element, ty.ComplexType):
            part = element.element
            pairs = [(self._part(i, part), self._part(i + 2, part)) for i in tokens]
            return np.array([complex(a, b) for a, b in pairs]).astype(dtype)
        found = [self._scalar(self._number_token(i), element, i) for i in tokens]
        if isinstance(element, ty.FloatType):
            bits = [s.bits for s in found if isinstance(s, at.FloatAttr)]
            return np.array(bits, dtype=f"u{dtype.itemsize}").view(dtype)
        return np.array([s.value for s in found if isinstance(s, at.IntegerAttr)]).astype(dtype)

    def _part(self, index: int, type: Type) -> float:
        scalar = self._scalar(self._number_token(index), type, index)
        if not isinstance(scalar, at.FloatAttr):
            raise self.error(f"expected a float, found {self.shown(index)}", index)
        return scalar.value


def opaque_attribute(token: str) -> Attribute:
    """A token kept as text, with blanks made regular so that equal attributes are one."""
    return at.opaque(token if '"' in token else _COMMA.sub(", ", " ".join(token.split())))


def _typed_string(p: AttributeParser) -> Attribute:
    return at.string(p.string())


def _dictionary(p: AttributeParser) -> Attribute:
    return at.dictionary(p.attribute_dict())


def _type(p: AttributeParser) -> Attribute:
    return at.type_attr(p.type())


_BY_FIRST: dict[str, Callable[[AttributeParser], Attribute]] = {
    '"': _typed_string,
    "#": AttributeParser.hash_attribute,
    "(": _type,
    "!": _type,
    "@": lambda p: at.symbol(p.symbol_name()),
    "[": AttributeParser.array_attribute,
    "{": _dictionary,
}
_BY_WORD: dict[str, Callable[[AttributeParser], Attribute]] = {
    "array": AttributeParser.dense_array,
    "dense": lambda p: p.dense_elements(),
    "false": lambda _: at.boolean(False),
    "true": lambda _: at.boolean(True),
    "unit": lambda _: at.UNIT,
}
