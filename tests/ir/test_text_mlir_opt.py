"""Real MLIR reads what we print, and understands it as it understands the hand-written sample of each op."""

from __future__ import annotations

import difflib
import shutil
import subprocess

import numpy as np
import pytest
from ir.op_samples import covered, our_text, tile_text, upstream_text
from oracle.equality import structurally_equal

from warpsmith.ir.core.attributes import FloatAttr, float_attr, float_bits
from warpsmith.ir.core.ssa import REGISTRY
from warpsmith.ir.core.types import float_type
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.attribute_text import attribute_text
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module

MLIR_OPT = shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
needs_mlir_opt = pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt isn't installed (Debian: mlir-22-tools)")


def through_mlir_opt(text: str) -> str:
    """What mlir-opt prints for a module; it verifies as well."""
    assert MLIR_OPT is not None
    command = [MLIR_OPT, "--allow-unregistered-dialect", "--mlir-print-local-scope"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return done.stdout


def assert_same_text(a: str, b: str) -> None:
    assert a == b, "\n".join(difflib.unified_diff(a.splitlines(), b.splitlines(), lineterm="", n=1))[:4000]


def test_every_registered_op_has_a_sample() -> None:
    assert set(REGISTRY) - covered() == set()


@needs_mlir_opt
def test_mlir_opt_reads_the_generic_form_of_every_upstream_op_as_its_sample() -> None:
    text = upstream_text()
    assert_same_text(through_mlir_opt(print_module(parse_module(text), generic=True)), through_mlir_opt(text))


@needs_mlir_opt
def test_mlir_opt_reads_the_pretty_form_of_every_upstream_op_as_its_sample() -> None:
    text = upstream_text()
    assert_same_text(through_mlir_opt(print_module(parse_module(text))), through_mlir_opt(text))


@needs_mlir_opt
def test_what_mlir_opt_prints_reads_as_the_sample() -> None:
    text = upstream_text()
    assert structurally_equal(parse_module(through_mlir_opt(text)), parse_module(text))


@needs_mlir_opt
def test_floats_have_the_digits_that_mlir_opt_gives_them() -> None:
    random = np.random.default_rng(7)
    attributes: list[FloatAttr] = []
    for name in ("f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2"):
        type = float_type(name)
        attributes += [float_bits(int.from_bytes(random.bytes(type.width // 8), "little"), type) for _ in range(60)]
        near = [
            random.uniform(-10, 10),
            0.1,
            1 / 3,
            5000.0,
            65504.0,
            1e-5,
            123456.0,
            -0.0,
            0.044708,
            *random.integers(0, 448, 9),
        ]
        with np.errstate(over="ignore"):
            attributes += [float_attr(float(v), type) for v in near]
    lines = [f"%{i} = arith.constant 0x{a.bits:0{a.type.width // 4}X} : {a.type}" for i, a in enumerate(attributes)]
    printed = through_mlir_opt("func.func @f() {\n" + "\n".join(lines) + "\nreturn\n}")
    theirs = [line.split("arith.constant ")[1] for line in printed.splitlines() if "arith.constant" in line]
    assert [attribute_text(a) for a in attributes] == theirs


@needs_mlir_opt
def test_mlir_opt_reads_the_generic_form_of_our_own_ops() -> None:
    text = our_text()
    module = parse_module(
        text.replace("llvm.intr.fptosi.sat", "llvm.intr.round").replace("(f32) -> i32", "(f32) -> f32")
    )
    through_mlir_opt(print_module(module, generic=True))


@needs_mlir_opt
def test_mlir_opt_reads_the_ops_of_tile_programs() -> None:
    # MLIR's own nvvm.barrier and nvgpu ops have segments of operands; the others are as here or unknown to it.
    text = print_module(parse_module(tile_text()), generic=True)
    text = text.replace("nvvm.barrier", "tile.barrier").replace("nvgpu.", "tile.")
    through_mlir_opt(text)


@pytest.mark.slow
@pytest.mark.parametrize("text", [upstream_text(), our_text(), tile_text()], ids=["upstream", "ours", "tile"])
def test_samples_are_valid_and_come_back_equal_in_both_forms(text: str) -> None:
    module = parse_module(text)
    verify(module)
    pretty, generic = print_module(module), print_module(module, generic=True)
    assert structurally_equal(parse_module(pretty), module)
    assert structurally_equal(parse_module(generic), module)
    assert_same_text(print_module(parse_module(pretty)), pretty)
    assert_same_text(print_module(parse_module(generic), generic=True), generic)
    assert_same_text(print_module(parse_module(generic)), pretty)


def test_pretty_text_has_no_generic_op_but_where_mlir_has_no_pretty_form() -> None:
    printed = print_module(parse_module(upstream_text())) + print_module(parse_module(our_text()))
    generic = {line.split('"')[1] for line in printed.splitlines() if line.partition("= ")[2].startswith('"')}
    generic |= {
        line.split('"')[1] for line in printed.splitlines() if line.strip().startswith('"') and "(" in line[:40]
    }
    assert generic == {"llvm.intr.ctlz", "llvm.intr.cttz", "llvm.intr.prefetch"}
