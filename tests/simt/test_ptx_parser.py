"""PTX text is read as LLVM prints it, and what isn't PTX is refused at its place."""

from __future__ import annotations

import numpy as np
import pytest
from simt.ptx_runner import HEADER

from warpsmith.errors import PtxSyntaxError, SimulationError
from warpsmith.simt.ptx.flow import END, basic_blocks
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx
from warpsmith.simt.ptx.text.module import Address, Immediate, Negated, Pair, Register, Sink, Special, Symbol, Vector
from warpsmith.simt.ptx.text.parser import parse_ptx


def _only(body: str, head: str = ".reg .pred %p<4>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;"):
    module = parse_ptx(f"{HEADER}.visible .entry k(.param .u64 p)\n{{\n{head}\n{body}\nret;\n}}\n")
    return module.functions["k"]


def test_operands_of_every_shape() -> None:
    """Each form of operand that LLVM prints becomes its own kind of object."""
    function = _only(
        """
        @!%p1 ld.global.nc.v4.b32 {%r1, %r2, %r3, _}, [%rd1+-16];
        setp.lt.and.s32 %p1|%p2, %r1, -7, !%p3;
        mov.u32 %r1, %tid.x;
        mov.b64 %rd1, {%r1, %r2};
        fma.rn.f32 %r1, %r2, 0f3F800000, %r3;
        add.f64 %rd1, %rd1, 0dBFF0000000000000;
        and.b32 %r1, %r1, 0x7773U;
        st.global.b8 [%rd1], 010;
        st.shared.b32 [tile+8], %r1;
        """
    )
    first, setp, mov, pack, fma, add, mask, store, shared, _ = function.instructions
    assert isinstance(first.predicate, Register)
    assert first.predicate.name == "%p1"
    assert first.negated
    assert isinstance(first.operands[0], Vector)
    assert isinstance(first.operands[0].elements[3], Sink)
    assert isinstance(first.operands[1], Address)
    assert first.operands[1].offset == -16
    assert isinstance(setp.operands[0], Pair)
    assert isinstance(setp.operands[3], Negated)
    assert setp.operands[2] == Immediate("int", -7)
    assert mov.operands[1] == Special("%tid.x")
    assert isinstance(pack.operands[1], Vector)
    assert fma.operands[2] == Immediate("f32", 0x3F800000)
    assert add.operands[2] == Immediate("f64", 0xBFF0000000000000)
    assert mask.operands[2] == Immediate("int", 0x7773)
    assert store.operands[1] == Immediate("int", 8)
    assert shared.operands[0] == Address(Symbol("tile", 8), 0)


def test_module_directives_and_initial_values() -> None:
    """Declarations give sizes, alignments and bytes, little-endian."""
    module = parse_ptx(
        HEADER
        + """
        .file 1 "model.hlo"
        .extern .shared .align 16 .b8 dynamic[];
        .global .align 8 .b32 words[3] = {1, -1, 0x10};
        .const .f32 half = 0f3F000000;
        .global .b64 pointer = words+4;
        .func (.param .b32 result) twice(.param .b32 a) ;
        .visible .entry k() .maxntid 256, 2 .minnctapersm 1 { .loc 1 7 3, function_name $str, inlined_at 1 2 3
          bra.uni $L;
        $L:
          ret; }
        .section .debug_str { .b8 1, 2 }
        """,
        "m.ptx",
    )
    dynamic, words, half, pointer = module.variables
    assert dynamic.external
    assert dynamic.align == 16
    assert (words.align, words.size) == (8, 12)
    assert words.initial == b"\x01\0\0\0\xff\xff\xff\xff\x10\0\0\0"
    assert half.initial == b"\0\0\0\x3f"
    assert pointer.addresses == ((0, Symbol("words", 4)),)
    assert module.functions["k"].most_threads == 512
    assert module.functions["k"].instructions[0].source == (1, 7, 3)
    assert module.files == {1: "model.hlo"}
    assert not module.functions["twice"].has_body


def test_registers_are_scoped_by_braces() -> None:
    """Inline assembly declares registers of its own; an inner name hides an outer one."""
    function = _only("{ .reg .b64 %r1; mov.b64 %r1, 1; } mov.b32 %r1, 2;")
    inner, outer = (each.operands[0] for each in function.instructions[:2])
    assert isinstance(inner, Register)
    assert isinstance(outer, Register)
    assert (inner.type, outer.type) == ("b64", "b32")
    assert inner.slot != outer.slot


def test_threads_meet_again_at_the_post_dominator() -> None:
    """An if meets after its else; a loop's exit test at the block after the loop."""
    module = parse_ptx(
        HEADER
        + """.visible .entry k() { .reg .pred %p<3>;
        @%p0 bra $else; bra.uni $join;
        $else: bra.uni $join;
        $join:
        $loop: @%p1 bra $out; bra.uni $loop;
        $out: @%p2 ret; ret; }"""
    )
    blocks = basic_blocks(module, module.functions["k"])
    function = module.functions["k"]
    number = {b.start: i for i, b in enumerate(blocks)}
    assert blocks[0].join == number[function.labels["$join"]]
    assert blocks[number[function.labels["$loop"]]].join == number[function.labels["$out"]]
    assert blocks[number[function.labels["$out"]]].join == END


@pytest.mark.parametrize(
    ("body", "line", "column", "cause"),
    [
        ("mov.b32 %r1, %zz;", 7, 14, "register '%zz' isn't declared"),
        ("mov.b32 %r99, 0;", 7, 9, "register '%r99' isn't declared"),
        ("mov.b32 %r1 %r2;", 7, 13, "',' expected"),
        ("mov.b32 %r1, 0;\n&", 8, 1, "starts no token"),
        ("$a: $a: ret;", 7, 5, "twice"),
        ("ld.global.b32 %r1, [%rd1;", 7, 25, "']' expected"),
        (".banana;", 7, 1, "can't stand in a function"),
        (".shared .q32 x;", 7, 9, "unknown type"),
        ("mov.b32 %r1, -%r2;", 7, 15, "an operand expected"),
    ],
)
def test_what_is_wrong_and_where(body: str, line: int, column: int, cause: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        _only(body)
    assert cause in caught.value.cause
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "no .version"),
        (".address_size 32", "64-bit"),
        (HEADER + ".visible .entry k() { ret;", "isn't closed"),
        (HEADER + "add.s32 %r1, %r2, %r3;", "can't stand outside"),
        (HEADER + ".global .b8 x[1] = {1, 2};", "2 bytes of values"),
    ],
)
def test_modules_that_are_not(text: str, cause: str) -> None:
    with pytest.raises(PtxSyntaxError, match=cause):
        parse_ptx(text)


def test_a_branch_to_nowhere_and_an_unknown_instruction_are_found_before_running() -> None:
    """Both are errors at their line, with the instruction in the excerpt."""
    head = HEADER + ".visible .entry k() {\n.reg .b32 %r<2>;\n"
    with pytest.raises(PtxSyntaxError, match=r"no label '\$x'"):
        run_ptx(head + "$y: bra $x;\nret; }", [], PtxLaunch((1,), (1,)))
    with pytest.raises(SimulationError) as caught:
        run_ptx(head + "ret;\nwgmma.fence.sync.aligned;\n}", [], PtxLaunch((1,), (1,), file="w.ptx"))
    assert "w.ptx:7:1" in str(caught.value)
    assert "wgmma.fence" in str(caught.value)


def test_arguments_must_fit_the_kernel() -> None:
    text = HEADER + ".visible .entry k(.param .u64 a, .param .u32 n) .reqntid 32, 1, 1 { ret; }"
    data = np.zeros(4, np.float32)
    run_ptx(text, [data, np.int32(4)], PtxLaunch((1,), (32,)))
    for buffers, block, cause in (
        ([data], (32,), "takes 2 parameters"),
        ([data, np.int64(4)], (32,), "has 4 bytes"),
        ([data, data], (32,), "it's no pointer"),
        ([data, np.int32(4)], (64,), "reqntid"),
        ([data, np.int32(4)], (0,), "positive"),
    ):
        with pytest.raises(SimulationError, match=cause):
            run_ptx(text, buffers, PtxLaunch((1,), block))
    with pytest.raises(SimulationError, match="no kernel 'kk'"):
        run_ptx(text, [data, np.int32(4)], PtxLaunch((1,), (32,), kernel="kk"))
