"""AMD's GPUs: every emitter's kernels become assembly, and 64 lanes compute what 32 do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from fusion_corpus import CASES
from hero_kernels import body, ids_of, rows

import warpsmith as ws
from warpsmith.compiler import check_stage, simulate
from warpsmith.compiler.bisection import bisect
from warpsmith.devices import device
from warpsmith.emitters.choose import EMITTERS
from warpsmith.errors import LoweringError, ToolMissing, UsageError
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo

WAVES = {"gfx942": 64, "gfx1100": 32}
SMALL = 1 << 18
"""Elements of what is simulated."""


def one_of_each(most: int) -> list[dict[str, Any]]:
    """A measured fusion for each emitter and variant, of arrays of `most` elements."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows():
        if sum(each.array_shape.elements for each in parse_hlo(row["hlo"]).entry.parameters) <= most:
            found.setdefault((row["emitter"], row["variant"]), row)
    slices = """
        p = f32[100] parameter(0)
        a = f32[40] slice(p), slice={[0:40]}
        b = f32[60] slice(p), slice={[40:100]}
        ROOT t = (f32[40], f32[60]) tuple(a, b)"""
    return [*found.values(), {"name": "slices", "emitter": "input_slices", "hlo": body(slices)}]


EACH = one_of_each(1 << 40)


def assembly(text: str, target: str) -> str:
    return ws.compile(parse_hlo(text), target=target).artifact("asm")


def test_the_fusions_here_are_of_every_emitter() -> None:
    """If this failed, a kind of kernel would go untested."""
    assert {row["emitter"] for row in EACH} == set(EMITTERS)
    found = {row["name"]: ws.compile(parse_hlo(row["hlo"]), target="gfx1100").kernels[0].emitter for row in EACH}
    assert found == {row["name"]: row["emitter"] for row in EACH}


@pytest.mark.parametrize("target", WAVES)
@pytest.mark.parametrize("row", EACH, ids=ids_of)
def test_each_kind_of_kernel_becomes_assembly(row: dict[str, Any], target: str) -> None:
    """If this failed, an op would be left that LLVM can't lower for AMD, or would call what nothing defines."""
    text = assembly(row["hlo"], target)
    assert f'"amdgcn-amd-amdhsa--{target}"' in text
    assert f".wavefront_size: {WAVES[target]}" in text
    assert "s_endpgm" in text
    assert "@rel32" not in text  # a call
    assert not re.search(r"flat_(load|store|atomic)", text)  # an access of no known memory


NAMES = ("f32 exponential", "bf16 exact", "f16 circular", "c64 elementwise", "convert f8e4m3fn", "gather rows")


@pytest.mark.parametrize("name", [*NAMES, "reduce-window", "dot", "u64 power", "constant lookup", "f64 exact"])
def test_arithmetic_of_every_kind_becomes_assembly(name: str) -> None:
    """If this failed, an expansion would leave an op to LLVM that it has only for others."""
    assert "s_endpgm" in assembly(CASES[name].text, "gfx942")


def test_nothing_is_contracted_and_subnormal_numbers_are_kept() -> None:
    """If this failed, strict arithmetic would be another one on AMD."""
    text = assembly("ENTRY e { x = f32[999] parameter(0)  y = f32[999] multiply(x, x)  ROOT z = add(y, x) }", "gfx942")
    assert re.search(r"v_(pk_)?mul_f32", text)
    assert not re.search(r"v_(pk_)?(fma|mac|mad|fmac)_f32", text)
    assert ".amdhsa_float_denorm_mode_32 3" in text


@pytest.mark.parametrize("target", WAVES)
@pytest.mark.parametrize("row", one_of_each(SMALL), ids=ids_of)
def test_waves_compute_what_the_interpreter_does(row: dict[str, Any], target: str) -> None:
    """If this failed, a kernel would count on 32 lanes; the accesses are watched in waves of the device's width."""
    report = ws.run(parse_hlo(row["hlo"]), platform="sim", target=target)
    assert report.match
    assert not report.findings


SUMS = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY e { p = f32[70,3000] parameter(0)  z = f32[] constant(0)
  ROOT r = f32[70] reduce(p, z), dimensions={1}, to_apply=add }"""


def test_a_row_of_three_thousand_takes_three_waves() -> None:
    """If this failed, lanes of the upper half of a wave would be left out: their sum is exact."""
    values = np.random.default_rng(0).integers(-9, 9, (70, 3000)).astype(np.float32)
    module = parse_hlo(SUMS)
    found = simulate(module, values, target="gfx942", stage="buffers")
    assert not found.findings
    np.testing.assert_array_equal(found.outputs[0], evaluate(module, values)[0])
    (kernel,) = ws.compile(module, target="gfx942").kernels
    assert kernel.block == (192, 1, 1)


@pytest.mark.parametrize("target", WAVES)
def test_every_pass_keeps_the_results_of_a_reduction(target: str) -> None:
    """If this failed, a thread's number, the barrier or the reads of other lanes would be other ones in LLVM's IR."""
    values = np.random.default_rng(0).normal(size=(7, 3000)).astype(np.float32)
    assert bisect(parse_hlo(SUMS.replace("70", "7")), values, target=target).culprit is None


def test_what_has_no_form_says_so() -> None:
    """If this failed, LLVM would end the process, or code would call a function that isn't there."""
    with pytest.raises(LoweringError, match=r"math\.exp of f64 has no form on gfx942: there is no library"):
        assembly("ENTRY e { x = f64[9] parameter(0)  ROOT y = f64[9] exponential(x) }", "gfx942")
    with pytest.raises(LoweringError, match="vectors of i4 have no form on gfx942"):
        assembly(CASES["large s4"].text, "gfx942")
    module = parse_hlo(SUMS)
    with pytest.raises(UsageError, match="has no stage 'ptx'"):
        check_stage("ptx", device("gfx942"))
    with pytest.raises(UsageError, match="gfx942 has no PTX"):
        simulate(module, target="gfx942", stage="ptx")
    with pytest.raises(UsageError, match="what AMD Instinct MI300X pays for a kernel isn't known"):
        ws.explain(module, target="gfx942")
    with pytest.raises(ToolMissing, match="no ROCm driver is used yet"):
        ws.compile(module, target="gfx942")(np.zeros((70, 3000), np.float32))
