"""The input-slices emitter: each element is read once, results as the interpreter's, after emission and every pass."""

from __future__ import annotations

import pytest
from differential import check_passes
from hero_kernels import analysis_of, assembled, body, case, emitted
from indexing.bijection import is_bijection_onto
from kernel_runner import check
from needs import needs_ptxas

from warpsmith.emitters.gpu import input_slices

APART = """
    p = f32[20,33] parameter(0)
    q = f32[20,33] parameter(1)
    a = f32[20,33] add(p, q)
    s = f32[20,11] slice(a), slice={[0:20],[0:11]}
    t = f32[20,22] slice(a), slice={[0:20],[11:33]}
    ROOT r = (f32[20,11], f32[20,22]) tuple(s, t)"""
OVERLAP = """
    p = f32[20,33] parameter(0)
    e = f32[20,33] negate(p)
    s = f32[7,30] slice(e), slice={[3:10],[1:31]}
    t = f32[15,5] slice(e), slice={[5:20],[20:25]}
    u = f32[1,1] slice(e), slice={[19:20],[32:33]}
    ROOT r = (f32[7,30], f32[15,5], f32[1,1]) tuple(s, t, u)"""
FUSIONS = {
    "apart": APART,
    "overlapping": OVERLAP,
    "one holds all": OVERLAP.replace(
        "f32[7,30] slice(e), slice={[3:10],[1:31]}", "f32[20,33] slice(e), slice={[0:20],[0:33]}"
    ).replace("(f32[7,30]", "(f32[20,33]"),
    "different operands": """
        p = f32[40] parameter(0)
        q = s8[40] parameter(1)
        n = s8[40] negate(q)
        s = f32[13] slice(p), slice={[2:15]}
        t = s8[40] slice(n), slice={[0:40]}
        ROOT r = (f32[13], s8[40]) tuple(s, t)""",
    "operands that share": """
        p = f32[40] parameter(0)
        a = f32[40] abs(p)
        n = f32[40] negate(a)
        s = f32[13] slice(a), slice={[2:15]}
        t = f32[20] slice(n), slice={[20:40]}
        ROOT r = (f32[13], f32[20]) tuple(s, t)""",
    "complex, a root twice": """
        p = c64[5,6] parameter(0)
        s = c64[5,2] slice(p), slice={[0:5],[1:3]}
        t = c64[2,6] slice(p), slice={[3:5],[0:6]}
        ROOT r = (c64[5,2], c64[2,6], c64[5,2]) tuple(s, t, s)""",
    "layouts": """
        p = bf16[12,10]{0,1} parameter(0)
        s = bf16[12,4]{0,1} slice(p), slice={[0:12],[0:4]}
        t = bf16[6,6]{1,0} slice(p), slice={[2:8],[4:10]}
        ROOT r = (bf16[12,4]{0,1}, bf16[6,6]{1,0}) tuple(s, t)""",
}


@pytest.mark.parametrize("name", FUSIONS)
def test_every_pass_keeps_the_interpreters_results(name: str) -> None:
    """Wrong: an element written to a slice that doesn't hold it, or left out of one that does."""
    assert emitted(FUSIONS[name]).origin.emitter == "input_slices"
    check_passes(case(name, FUSIONS[name]), "sm_90")


def test_a_large_operand_is_read_by_vectors() -> None:
    """Slices of whole rows leave no test within a vector."""
    text = """
        p = f32[600,512] parameter(0)
        s = f32[200,512] slice(p), slice={[0:200],[0:512]}
        t = f32[300,512] slice(p), slice={[250:550],[0:512]}
        ROOT r = (f32[200,512], f32[300,512]) tuple(s, t)"""
    kernel = emitted(text)
    assert (kernel.launch.unroll, kernel.launch.grid) == (4, (600, 1, 1))
    check(body(text))


@pytest.mark.parametrize("name", ["apart", "overlapping"])
def test_each_element_of_a_slice_is_written_once(name: str) -> None:
    """Wrong: bounds of a slice."""
    analysis = analysis_of(FUSIONS[name])
    chosen = input_slices.launch(analysis)
    assert input_slices.slices_overlap(analysis.roots) == (name == "overlapping")
    assert is_bijection_onto(input_slices.thread_to_input(analysis.roots[0].operands[0].array_shape, chosen), (20, 33))
    for root in analysis.roots:
        assert is_bijection_onto(input_slices.thread_to_output(root, chosen), root.array_shape.dims)


def test_what_it_leaves_to_the_loop() -> None:
    """Elements narrower than a byte would share one between threads."""
    narrow = APART.replace("f32", "s4")
    kernel = emitted(narrow)
    assert kernel.origin.emitter == "loop"
    assert any("narrower than a byte" in each.reason for each in kernel.origin.refused)
    strided = APART.replace("[11:33]", "[11:33:2]").replace("f32[20,22]", "f32[20,11]")
    assert emitted(strided).origin.emitter == "loop"
    check(body(strided))


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", ["apart", "overlapping"])
def test_ptxas_takes_the_ptx(name: str, target: str) -> None:
    """Wrong: anything that LLVM or ptxas refuses."""
    ptx, _ = assembled(FUSIONS[name], target)
    assert "st.global" in ptx
