"""The reference interpreter against the table of edge values, whose results come from exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.edges import EDGES, cases

from warpsmith.dtypes import by_name
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo

FORMATS = ("f16", "bf16", "f32", "f64")
OPCODES = sorted({row.opcode for row in EDGES})


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("opcode", OPCODES)
def test_edge_values_have_the_exact_bits(opcode: str, name: str) -> None:
    """NaN for NaN; else every bit, so that the sign of a zero counts."""
    dtype = by_name(name)
    operands, expected = cases(opcode, dtype)
    count = len(expected)
    parameters = "\n".join(f"  p{i} = {name}[{count}] parameter({i})" for i in range(len(operands)))
    arguments = ", ".join(f"p{i}" for i in range(len(operands)))
    text = f"HloModule m\nENTRY e {{\n{parameters}\n  ROOT r = {name}[{count}] {opcode}({arguments})\n}}\n"
    (found,) = evaluate(parse_hlo(text), *operands)
    wanted = np.asarray(expected).astype(dtype.numpy)
    unsigned = f"u{dtype.bits // 8}"
    both_nan = np.isnan(found.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
    wrong = np.flatnonzero((found.view(unsigned) != wanted.view(unsigned)) & ~both_nan)
    assert wrong.size == 0, [(tuple(o[i] for o in operands), found[i], wanted[i]) for i in wrong]
