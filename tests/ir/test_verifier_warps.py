"""The verifier refuses each way to break the rules of a warp's ops, and says which rule it was."""

from __future__ import annotations

import pytest

import warpsmith.ir.dialects  # registers the ops
from warpsmith.errors import InvalidIr
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.types import BF16, F16, F32, INDEX, Type, memref, vector
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.dialects import func, nvgpu
from warpsmith.ir.text.parser import parse_module

assert warpsmith.ir.dialects.nvgpu

_TYPES = {
    "s": "memref<256xf16, 3>",
    "g": "memref<256xf16>",
    "g32": "memref<256xf32>",
    "s32": "memref<256xf32, 3>",
    "square": "memref<16x16xf16, 3>",
    "i": "index",
    "k": "i32",
    "l": "i64",
    "a": "vector<8xf16>",
    "b": "vector<4xf16>",
    "b16": "vector<4xbf16>",
    "c": "vector<4xf32>",
    "c16": "vector<4xf16>",
    "a32": "vector<8xf32>",
}


def op(name: str, operands: str, attributes: str = "", result: str = "") -> str:
    """An op in generic form; operands by their names above."""
    values = operands.split()
    types = ", ".join(_TYPES[each] for each in values)
    left = "%0 = " if result else ""
    given = ", ".join(f"%{each}" for each in values)
    return f'{left}"{name}"({given}) {{{attributes}}} : ({types}) -> {result or "()"}'


def copy(operands: str = "s i g i", size: object = 16) -> str:
    return op("nvgpu.device_async_copy", operands, f"bytes = {size} : i64")


def load(operands: str = "s i", tiles: int = 4, result: str = "vector<8xf16>", flag: str = "false") -> str:
    return op("nvgpu.ldmatrix", operands, f"num_tiles = {tiles} : i64, transpose = {flag}", result)


def store(operands: str = "b s i", tiles: int = 2) -> str:
    return op("nvgpu.stmatrix", operands, f"num_tiles = {tiles} : i64, transpose = true")


def product(operands: str = "a b c", result: str = "vector<4xf32>", shape: str = "16, 8, 16") -> str:
    return op("nvgpu.mma.sync", operands, f"shape = array<i64: {shape}>", result)


# Body, and a part of the cause or of the rule.
CASES = {
    "copy within global memory": (copy("g i g i"), "a memref of rank 1 in shared memory (space 3) is needed"),
    "copy out of shared memory": (copy("s i s i"), "a memref of rank 1 in global memory is needed"),
    "copy to a place that is no index": (copy("s k g i"), "an operand of type i32 where an index is needed"),
    "copy of another type": (copy("s i g32 i"), "one element type"),
    "copy of 2 bytes": (copy(size=2), "a thread copies 4, 8 or 16 bytes at a time"),
    "copy of 12 bytes": (copy(size=12), "a copy of 12 bytes"),
    "copy of no size": (op("nvgpu.device_async_copy", "s i g i"), "attribute 'bytes' is missing"),
    "copy of a word for a size": (copy(size='"16"').replace(" : i64", ""), "attribute 'bytes' is no integer"),
    "wait for fewer than none": (op("nvvm.cp.async.wait.group", "", "n = -1 : i32"), "0 or more"),
    "wait for nothing said": (op("nvvm.cp.async.wait.group", ""), "attribute 'n' is missing"),
    "tiles of global memory": (load("g i"), "a memref of rank 1 in shared memory (space 3) is needed"),
    "tiles of a square": (load("square i"), "a memref of rank 1"),
    "three tiles": (load(tiles=3, result="vector<6xf16>"), "a warp moves 1, 2 or 4 tiles at a time"),
    "tiles of f32": (load("s32 i", result="vector<8xf32>"), "their elements have 16 bits"),
    "too few elements": (load(result="vector<4xf16>"), "a lane holds two elements a tile: vector<8xf16>"),
    "elements of another type": (load(result="vector<8xbf16>"), "two elements a tile: vector<8xf16>"),
    "transpose by a number": (load(flag="1 : i32"), "it is true or false"),
    "store to global memory": (store("b g i"), "shared memory (space 3) is needed"),
    "store of another count": (store(tiles=4), "vector<4xf16> for 4 tiles"),
    "store of another type": (store("b16 s i"), "vector<4xbf16> for 2 tiles"),
    "another shape": (product(shape="16, 8, 8"), "the shape is [16, 8, 16]: m, n, k"),
    "shape of two": (product(shape="16, 8"), "a product of shape [16, 8]"),
    "factors of two types": (product("a b16 c"), "(vector<8xf16>, vector<4xf16>, vector<4xf32>) is needed"),
    "factors of f32": (product("a32 b c"), "the factors are f16 or bf16, both alike"),
    "a sum in f16": (product("a b c16", "vector<4xf16>"), "a lane's fragments of a, b and c"),
    "a result of another type": (product(result="vector<4xf16>"), "the results are (vector<4xf16>)"),
    "a mask of 64 bits": (op("nvvm.bar.warp.sync", "l"), "an operand of type i64 where an i32 is needed"),
    "a barrier of index": (op("nvvm.barrier", "k i"), "where an i32 is needed"),
    "an elected number": (op("nvvm.elect.sync", "", "", "i32"), "(i1) is needed"),
}


def within(body: str) -> str:
    arguments = ", ".join(f"%{name}: {type}" for name, type in _TYPES.items())
    return f"func.func @f({arguments}) {{\n{body}\nreturn\n}}"


@pytest.mark.parametrize(("body", "words"), CASES.values(), ids=CASES)
def test_a_broken_rule_is_named(body: str, words: str) -> None:
    with pytest.raises(InvalidIr) as caught:
        verify(parse_module(within(body)))
    assert words in f"{caught.value.cause} {caught.value.help}"


@pytest.mark.parametrize("body", [copy(), copy(size=4), load(), load("s i", 1, "vector<2xf16>"), store(), product()])
def test_what_keeps_the_rules_is_taken(body: str) -> None:
    verify(parse_module(within(body)))


@pytest.mark.parametrize("element", [F16, BF16], ids=str)
def test_what_the_builders_make_keeps_the_rules(element: Type) -> None:
    """A 16 x 8 x 16 product in every way there is to bring tiles in and out."""
    shared, out = memref((256,), element, 3), memref((256,), element)
    inputs = (shared, out, vector((4,), F32), INDEX)
    module = func.module()
    function = func.build(Builder.at_end(module.body), "f", inputs, ())
    smem, source, c, i = function.body.args
    b = Builder.at_end(function.body)
    for size in (4, 8, 16):
        nvgpu.async_copy(b, smem, i, source, i, size)
    nvgpu.async_commit(b)
    nvgpu.async_wait(b, 0)
    nvgpu.warp_sync(b)
    nvgpu.named_barrier(b, 1, 128)
    tiles = {(n, t): nvgpu.ldmatrix(b, smem, i, element, n, transpose=t) for n in (1, 2, 4) for t in (False, True)}
    nvgpu.mma_sync(b, tiles[4, False], tiles[2, True], c)
    for (n, t), tile in tiles.items():
        nvgpu.stmatrix(b, tile, smem, i, n, transpose=t)
    nvgpu.elect_sync(b)
    b.create("func.return")
    verify(module)
