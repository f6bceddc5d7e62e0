"""Integer, bit, comparison and move instructions against values worked out by hand, and against Python's integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simt.ptx_runner import apply

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
Column = tuple[str, Sequence[int]]

# instruction, operands (register type, one value a case), result type, expected bits
ROWS: list[tuple[str, list[Column], str, list[int]]] = [
    ("add.s32 %d, %a, %b;", [("b32", [M32, 5]), ("b32", [1, -7])], "b32", [0, M32 - 1]),
    ("add.sat.s32 %d, %a, %b;", [("b32", [0x7FFFFFFF, -(2**31)]), ("b32", [1, -1])], "b32", [0x7FFFFFFF, 0x80000000]),
    ("sub.s64 %d, %a, %b;", [("b64", [0, 5]), ("b64", [1, 7])], "b64", [M64, M64 - 1]),
    ("mul.lo.s32 %d, %a, %b;", [("b32", [0x10000, 3]), ("b32", [0x10001, -4])], "b32", [0x10000, M32 - 11]),
    ("mul.hi.u32 %d, %a, %b;", [("b32", [M32]), ("b32", [M32])], "b32", [M32 - 1]),
    ("mul.hi.s32 %d, %a, %b;", [("b32", [-1, 1 << 30]), ("b32", [5, 8])], "b32", [M32, 2]),
    ("mul.hi.u64 %d, %a, %b;", [("b64", [M64, 1 << 63]), ("b64", [M64, 6])], "b64", [M64 - 1, 3]),
    ("mul.hi.s64 %d, %a, %b;", [("b64", [-1, -(2**63)]), ("b64", [1, -(2**63)])], "b64", [M64, 1 << 62]),
    ("mul.wide.s16 %d, %a, %b;", [("b16", [-3]), ("b16", [1000])], "b32", [M32 - 2999]),
    ("mul.wide.u32 %d, %a, %b;", [("b32", [M32]), ("b32", [M32])], "b64", [M32 * M32]),
    ("mad.lo.s32 %d, %a, %b, %c;", [("b32", [7]), ("b32", [6]), ("b32", [-2])], "b32", [40]),
    ("mad.wide.s32 %d, %a, %b, %c;", [("b32", [-7]), ("b32", [6]), ("b64", [2])], "b64", [M64 - 39]),
    ("mad.hi.u32 %d, %a, %b, %c;", [("b32", [M32]), ("b32", [2]), ("b32", [9])], "b32", [10]),
    ("mul24.lo.s32 %d, %a, %b;", [("b32", [0xFF000003]), ("b32", [0x00FFFFFF])], "b32", [M32 - 2]),
    ("mad24.lo.u32 %d, %a, %b, %c;", [("b32", [0xFF000003]), ("b32", [5]), ("b32", [1])], "b32", [16]),
    ("sad.s32 %d, %a, %b, %c;", [("b32", [-3]), ("b32", [4]), ("b32", [10])], "b32", [17]),
    (
        "div.s32 %d, %a, %b;",
        [("b32", [-7, 7, -(2**31), 9]), ("b32", [2, -2, -1, 0])],
        "b32",
        [M32 - 2, M32 - 2, 1 << 31, M32],
    ),
    ("div.u64 %d, %a, %b;", [("b64", [M64]), ("b64", [10])], "b64", [M64 // 10]),
    ("rem.s32 %d, %a, %b;", [("b32", [-7, 7]), ("b32", [3, -3])], "b32", [M32, 1]),
    ("rem.u16 %d, %a, %b;", [("b16", [65535]), ("b16", [7])], "b16", [1]),
    ("abs.s16 %d, %a;", [("b16", [-5, -32768])], "b16", [5, 32768]),
    ("neg.s64 %d, %a;", [("b64", [1, 0])], "b64", [M64, 0]),
    ("min.s32 %d, %a, %b;", [("b32", [-1]), ("b32", [1])], "b32", [M32]),
    ("min.u32 %d, %a, %b;", [("b32", [-1]), ("b32", [1])], "b32", [1]),
    ("max.s16x2 %d, %a, %b;", [("b32", [0xFFFF0001]), ("b32", [0x0002FFFF])], "b32", [0x00020001]),
    ("add.u16x2 %d, %a, %b;", [("b32", [0xFFFFFFFF]), ("b32", [0x00010002])], "b32", [0x00000001]),
    ("popc.b32 %d, %a;", [("b32", [0, M32, 0xF0])], "b32", [0, 32, 4]),
    ("popc.b64 %d, %a;", [("b64", [M64])], "b32", [64]),
    ("clz.b32 %d, %a;", [("b32", [0, 1, M32])], "b32", [32, 31, 0]),
    ("clz.b64 %d, %a;", [("b64", [0, 1 << 40])], "b32", [64, 23]),
    ("bfind.u32 %d, %a;", [("b32", [0, 1, 1 << 31])], "b32", [M32, 0, 31]),
    ("bfind.s32 %d, %a;", [("b32", [-1, -2, 5])], "b32", [M32, 0, 2]),
    ("bfind.shiftamt.u32 %d, %a;", [("b32", [1])], "b32", [31]),
    ("brev.b32 %d, %a;", [("b32", [1, 0x12345678])], "b32", [1 << 31, 0x1E6A2C48]),
    ("bfe.u32 %d, %a, 4, 8;", [("b32", [0xABCDE])], "b32", [0xCD]),
    ("bfe.s32 %d, %a, 4, 8;", [("b32", [0xABCDE])], "b32", [M32 - 0x32]),
    ("bfe.s32 %d, %a, 40, 8;", [("b32", [1 << 31, 5])], "b32", [M32, 0]),
    ("bfe.u32 %d, %a, 0, 0;", [("b32", [5])], "b32", [0]),
    ("bfi.b32 %d, %a, %b, 8, 4;", [("b32", [0xFA]), ("b32", [0x1111])], "b32", [0x1A11]),
    ("bfi.b64 %d, %a, %b, 0, 64;", [("b64", [7]), ("b64", [1])], "b64", [7]),
    ("and.b16 %d, %a, %b;", [("b16", [0xF0F0]), ("b16", [0xFF00])], "b16", [0xF000]),
    ("not.b64 %d, %a;", [("b64", [0])], "b64", [M64]),
    ("cnot.b32 %d, %a;", [("b32", [0, 9])], "b32", [1, 0]),
    ("lop3.b32 %d, %a, %b, %c, 0xE8;", [("b32", [0b1100]), ("b32", [0b1010]), ("b32", [0b1001])], "b32", [0b1000]),
    ("shl.b32 %d, %a, %b;", [("b32", [3, 3, 3]), ("b32", [4, 32, 1000])], "b32", [48, 0, 0]),
    ("shl.b64 %d, %a, %b;", [("b64", [1, 1]), ("b32", [63, 64])], "b64", [1 << 63, 0]),
    ("shr.u16 %d, %a, %b;", [("b16", [0x8000, 0x8000]), ("b32", [15, 16])], "b16", [1, 0]),
    ("shr.s32 %d, %a, %b;", [("b32", [-8, -8]), ("b32", [1, 99])], "b32", [M32 - 3, M32]),
    ("shf.l.wrap.b32 %d, %a, %b, 36;", [("b32", [0xF0000000]), ("b32", [0x1])], "b32", [0x1F]),
    ("shf.l.clamp.b32 %d, %a, %b, 36;", [("b32", [0xF0000000]), ("b32", [0x1])], "b32", [0xF0000000]),
    ("shf.r.wrap.b32 %d, %a, %b, 4;", [("b32", [0x1F]), ("b32", [0x2])], "b32", [0x20000001]),
    ("shf.r.clamp.b32 %d, %a, %b, 32;", [("b32", [0x1F]), ("b32", [0x2])], "b32", [2]),
    ("prmt.b32 %d, %a, %b, 0x6420;", [("b32", [0x33221100]), ("b32", [0x77665544])], "b32", [0x66442200]),
    ("prmt.b32 %d, %a, %b, 0x8F00;", [("b32", [0x80]), ("b32", [0x7F000000])], "b32", [0xFF008080]),
    ("prmt.b32.f4e %d, %a, %b, 1;", [("b32", [0x33221100]), ("b32", [0x77665544])], "b32", [0x44332211]),
    ("prmt.b32.rc16 %d, %a, %b, 1;", [("b32", [0x33221100]), ("b32", [0])], "b32", [0x33223322]),
    ("dp4a.s32.s32 %d, %a, %b, %c;", [("b32", [0xFF020304]), ("b32", [0x05060708]), ("b32", [1])], "b32", [61]),
    ("dp4a.u32.u32 %d, %a, %b, %c;", [("b32", [0xFF020304]), ("b32", [0x05060708]), ("b32", [0])], "b32", [1340]),
    ("dp2a.lo.s32.s32 %d, %a, %b, %c;", [("b32", [0x00020003]), ("b32", [0x0706FE05]), ("b32", [0])], "b32", [11]),
    ("setp.lt.s32 %d, %a, %b;", [("b32", [-1, 1]), ("b32", [1, -1])], "pred", [1, 0]),
    ("setp.lo.u32 %d, %a, %b;", [("b32", [-1, 1]), ("b32", [1, -1])], "pred", [0, 1]),
    ("setp.hs.u16 %d, %a, %b;", [("b16", [5, 4]), ("b16", [5, 5])], "pred", [1, 0]),
    ("setp.ge.and.s32 %d, %a, %b, %c;", [("b32", [2, 2]), ("b32", [1, 1]), ("pred", [1, 0])], "pred", [1, 0]),
    ("setp.eq.xor.b32 %d, %a, %b, !%c;", [("b32", [2, 2]), ("b32", [2, 1]), ("pred", [1, 1])], "pred", [1, 0]),
    ("setp.eq.b32 %q|%d, %a, %b;", [("b32", [2, 2]), ("b32", [2, 1])], "pred", [0, 1]),
    ("set.gt.u32.s32 %d, %a, %b;", [("b32", [2, -2]), ("b32", [1, 1])], "b32", [M32, 0]),
    ("set.gt.f32.u32 %d, %a, %b;", [("b32", [2, 0]), ("b32", [1, 1])], "b32", [0x3F800000, 0]),
    ("selp.b64 %d, %a, %b, %c;", [("b64", [1, 1]), ("b64", [2, 2]), ("pred", [1, 0])], "b64", [1, 2]),
    ("slct.b32.s32 %d, %a, %b, %c;", [("b32", [1, 1]), ("b32", [2, 2]), ("b32", [0, -1])], "b32", [1, 2]),
    ("xor.pred %d, %a, %b;", [("pred", [1, 1, 0]), ("pred", [1, 0, 0])], "pred", [0, 1, 0]),
    ("not.pred %d, %a;", [("pred", [1, 0])], "pred", [0, 1]),
    ("mov.pred %q, -1; and.pred %d, %q, %a;", [("pred", [1, 0])], "pred", [1, 0]),
    ("mov.b32 %d, {%a, %b};", [("b16", [0x1234]), ("b16", [0xABCD])], "b32", [0xABCD1234]),
    ("{ .reg .b16 %u; mov.b32 {_, %u}, %a; mov.b16 %d, %u; }", [("b32", [0xABCD1234])], "b16", [0xABCD]),
    ("{ .reg .b32 %u; mov.b64 {%d, %u}, %a; }", [("b64", [0x1111222233334444])], "b32", [0x33334444]),
    ("mov.b32 %d, 7; @%a mov.b32 %d, 8;", [("pred", [1, 0])], "b32", [8, 7]),
    ("mov.b32 %d, 7; @!%a mov.b32 %d, 8;", [("pred", [1, 0])], "b32", [7, 8]),
    ("add.cc.u32 %d, %a, %b; addc.u32 %d, 0, 0;", [("b32", [M32, 1]), ("b32", [1, 1])], "b32", [1, 0]),
    ("sub.cc.u32 %d, %a, %b; subc.u32 %d, 9, 0;", [("b32", [0, 1]), ("b32", [1, 1])], "b32", [8, 9]),
    ("mad.lo.cc.u32 %d, %a, %b, 1; madc.hi.u32 %d, %a, %b, 0;", [("b32", [M32]), ("b32", [M32])], "b32", [M32 - 1]),
]


@pytest.mark.parametrize(("instruction", "operands", "result", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_instruction(instruction: str, operands: list[Column], result: str, expected: list[int]) -> None:
    """A wrong bit here is a wrong model of the machine."""
    assert apply(instruction, operands, result) == expected


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


PROPERTIES: dict[str, Callable[[int, int, int], int]] = {
    "mul.hi.s64 %d, %a, %b;": lambda a, b, c: _signed(a, 64) * _signed(b, 64) >> 64,
    "mul.hi.u64 %d, %a, %b;": lambda a, b, c: a * b >> 64,
    "mad.lo.s64 %d, %a, %b, %c;": lambda a, b, c: a * b + c,
    "mad.lo.cc.u64 %d, %a, %b, %c; madc.hi.u64 %d, %a, %b, %c;": lambda a, b, c: (
        (a * b >> 64) + c + (((a * b & M64) + c) >> 64)
    ),
    "add.cc.u64 %d, %a, %b; addc.u64 %d, %c, %a;": lambda a, b, c: c + a + (a + b >> 64),
    "sub.cc.u64 %d, %a, %b; subc.u64 %d, %c, %a;": lambda a, b, c: c - a - (a < b),
    "brev.b64 %d, %a;": lambda a, b, c: int(f"{a:064b}"[::-1], 2),
    "div.s64 %d, %a, %b;": lambda a, b, c: (
        -1 if b == 0 else abs(_signed(a, 64)) // abs(_signed(b, 64)) * (1 if (a ^ b) >> 63 == 0 else -1)
    ),
    "rem.u64 %d, %a, %b;": lambda a, b, c: a % b if b else a,
    "xor.b64 %d, %a, %b; and.b64 %d, %d, %c;": lambda a, b, c: (a ^ b) & c,
}
_WORD = st.one_of(st.integers(0, M64), st.sampled_from([0, 1, M64, 1 << 63, (1 << 63) - 1, M32, 1 << 32]))


@settings(max_examples=25)
@given(st.lists(st.tuples(_WORD, _WORD, _WORD), min_size=1, max_size=40))
def test_64_bit_arithmetic_is_that_of_the_integers(cases: list[tuple[int, int, int]]) -> None:
    """Products, carries and quotients agree with Python's unbounded integers, cut to 64 bits."""
    columns = [("b64", list(column)) for column in zip(*cases, strict=True)]
    for instruction, expected in PROPERTIES.items():
        assert apply(instruction, columns, "b64") == [expected(*case) & M64 for case in cases], instruction


CONVERSIONS: list[tuple[str, str, list[int], str, list[int]]] = [
    ("cvt.u32.u16", "b16", [0xFFFF], "b32", [0xFFFF]),
    ("cvt.s32.s16", "b16", [0xFFFF], "b32", [M32]),
    ("cvt.s16.s8", "b16", [0x0180, 0x7F], "b16", [0xFF80, 0x7F]),
    ("cvt.s64.s32", "b32", [1 << 31], "b64", [M64 - (1 << 31) + 1]),
    ("cvt.u16.u64", "b64", [0x123456789], "b16", [0x6789]),
    ("cvt.s8.s32", "b32", [0x180], "b32", [M32 - 0x7F]),
    ("cvt.u8.u32", "b32", [0x180], "b16", [0x80]),
    ("cvt.sat.u8.s32", "b32", [-5, 300, 7], "b32", [0, 255, 7]),
    ("cvt.sat.s16.u32", "b32", [M32], "b32", [0x7FFF]),
    ("cvt.u64.u32", "b32", [M32], "b64", [M32]),
]


@pytest.mark.parametrize(("name", "source", "values", "target", "expected"), CONVERSIONS)
def test_integer_conversions(name: str, source: str, values: list[int], target: str, expected: list[int]) -> None:
    """Sign and zero extension follow the instruction's types, not the registers'."""
    assert apply(f"{name} %d, %a;", [(source, values)], target) == expected
