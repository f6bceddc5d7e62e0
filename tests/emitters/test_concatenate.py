"""The concatenate emitter: launch as XLA's, results as the interpreter's, after emission and every pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import check_passes
from hero_kernels import analysis_of, assembled, body, case, emitted, ids_of, launched, rows_of
from indexing.bijection import is_bijection_onto
from kernel_runner import check
from needs import needs_ptxas

from warpsmith.emitters.gpu import concatenate
from warpsmith.indexing.points import points


@pytest.mark.parametrize("row", rows_of("concatenate"), ids=ids_of)
def test_launch_is_xlas(row: dict[str, Any]) -> None:
    """Wrong: the operand that the launch runs over, or the unroll factor."""
    found, _ = launched(row)
    assert found == {key: row[key] for key in found}


FUSIONS = {
    "one dimension": """
        p = f32[200] parameter(0)
        q = f32[400] parameter(1)
        s = f32[300] parameter(2)
        ROOT r = f32[900] concatenate(p, q, s), dimensions={0}""",
    "minor dimension": """
        p = bf16[33,12] parameter(0)
        q = bf16[33,5] parameter(1)
        ROOT r = bf16[33,17] concatenate(p, q), dimensions={1}""",
    "major dimension": """
        p = s8[3,50] parameter(0)
        q = s8[7,50] parameter(1)
        ROOT r = s8[10,50] concatenate(p, q), dimensions={0}""",
    "middle dimension": """
        p = f64[4,3,5] parameter(0)
        q = f64[4,1,5] parameter(1)
        s = f64[4,2,5] parameter(2)
        t = f64[4,3,5] parameter(3)
        ROOT r = f64[4,9,5] concatenate(p, q, s, t), dimensions={1}""",
    "prologues and epilogue": """
        p = f32[20,30] parameter(0)
        q = f32[20,10] parameter(1)
        s = f32[20,40] parameter(2)
        e = f32[20,30] negate(p)
        a = f32[20,10] abs(q)
        c = f32[20,40] concatenate(e, a), dimensions={1}
        ROOT r = f32[20,40] multiply(c, s)""",
    "epilogue of another rank": """
        p = pred[1] parameter(0)
        q = pred[1] parameter(1)
        c = pred[2] concatenate(p, q), dimensions={0}
        b = pred[1,1,2] bitcast(c)
        ROOT r = u32[1,1,2] convert(b)""",
    "one operand twice": """
        p = f32[7,9] parameter(0)
        n = f32[7,9] negate(p)
        ROOT r = f32[7,18] concatenate(n, n), dimensions={1}""",
    "a transposed operand": """
        p = f32[16,12] parameter(0)
        q = f32[12,16] parameter(1)
        t = f32[12,16] transpose(p), dimensions={1,0}
        ROOT r = f32[24,16] concatenate(t, q), dimensions={0}""",
    "complex": """
        p = c64[5,4] parameter(0)
        q = c64[5,3] parameter(1)
        ROOT r = c64[5,7] concatenate(p, q), dimensions={1}""",
    "layouts": """
        p = f32[6,4]{0,1} parameter(0)
        q = f32[6,5]{1,0} parameter(1)
        ROOT r = f32[6,9]{0,1} concatenate(p, q), dimensions={1}""",
    "an empty operand": """
        p = f32[6,4] parameter(0)
        q = f32[6,0] parameter(1)
        ROOT r = f32[6,4] concatenate(q, p), dimensions={1}""",
}
LARGE = """
        p = bf16[600,512] parameter(0)
        q = bf16[600,6] parameter(1)
        ROOT r = bf16[600,518] concatenate(p, q), dimensions={1}"""


@pytest.mark.parametrize("name", FUSIONS)
def test_every_pass_keeps_the_interpreters_results(name: str) -> None:
    """Wrong: an operand's offset, or a write where the operand has no element."""
    assert emitted(FUSIONS[name]).origin.emitter == "concatenate"
    check_passes(case(name, FUSIONS[name]), "sm_90")


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_a_concatenation_of_nothing_is_a_kernel(target: str) -> None:
    """Where no operand has an element, none can be left out of the choice."""
    check(body("p = f32[8,0] parameter(0) ROOT r = f32[8,0] concatenate(p, p), dimensions={1}"), target=target)


def test_vectors_where_all_sizes_are_even() -> None:
    """The unroll factor divides every operand's size; a thread's elements stay within one operand."""
    assert emitted(LARGE).launch.unroll == 2
    check(body(LARGE))


def test_each_element_of_the_output_is_written_once() -> None:
    """Wrong: overlapping operands, or a gap between them."""
    for name in ("one dimension", "minor dimension", "middle dimension"):
        analysis = analysis_of(FUSIONS[name])
        (hero,), (root,) = analysis.heroes, analysis.roots
        chosen = concatenate.launch(analysis)
        count = np.zeros(root.array_shape.dims, np.int64)
        for number, operand in enumerate(hero.operands):
            assert is_bijection_onto(concatenate.thread_to_input(hero, number, chosen), operand.array_shape.dims)
            map = concatenate.thread_to_output(hero, root, number, chosen)
            np.add.at(count, tuple(map.evaluate(*points(map))), 1)
        assert (count == 1).all()


def test_operands_that_share_a_byte_are_left_to_the_loop() -> None:
    """Odd numbers of 4-bit elements: two threads would write one byte."""
    odd = """
        p = s4[7] parameter(0)
        q = s4[9] parameter(1)
        ROOT r = s4[16] concatenate(p, q), dimensions={0}"""
    kernel = emitted(odd)
    assert kernel.origin.emitter == "loop"
    assert any("within a byte" in each.reason for each in kernel.origin.refused)
    check(body(odd))
    assert emitted(odd.replace("7", "6").replace("9", "10")).origin.emitter == "concatenate"


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_ptxas_takes_the_ptx(target: str) -> None:
    """Wrong: a vector access wider than its alignment."""
    ptx, _ = assembled(LARGE, target)
    assert "ld.global" in ptx
