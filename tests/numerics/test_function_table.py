"""The one table of elementary functions: a new row is enough, and what is missing for it is named."""

from __future__ import annotations

import subprocess
import sys

import pytest
from oracle.edges import EDGES

from warpsmith.errors import InternalError
from warpsmith.numerics.functions.table import BY_OPCODE, FUNCTIONS, implemented

# HLO has no exponential-base-two: exp2 is in the table for tile kernels alone.  Nothing but the table may have been
# imported when the row changes.
NEW_ROW = """
import dataclasses, sys
from warpsmith.numerics.functions import table
row = dataclasses.replace(table.FUNCTIONS["exp2"], opcode="exponential-base-two", {changes})
table.FUNCTIONS["exp2"] = table.BY_OPCODE[row.opcode] = row
assert "warpsmith.hlo" not in sys.modules
import numpy as np
import warpsmith as ws
text = "HloModule m\\nENTRY e {{ p = {dtype}[64] parameter(0) ROOT r = {dtype}[64] exponential-base-two(p) }}"
x = np.linspace(-9, 9, 64).astype(np.{numpy})
for where in ({{"target": "cpu"}}, {{"platform": "sim", "target": "sm_90"}}):
    report = ws.run(ws.parse_hlo(text), x, **where)
    assert report.match and report.unbounded == 0, report
assert np.array_equal(ws.evaluate(ws.parse_hlo("HloModule m\\nENTRY e {{ p = f32[3] parameter(0) "
    "ROOT r = f32[3] exponential-base-two(p) }}"), np.float32([0, 1, -2]))[0], [1, 2, 0.25])
print("done")
"""


def _with_new_row(changes: str, dtype: str = "f32", numpy: str = "float32") -> subprocess.CompletedProcess[str]:
    script = NEW_ROW.format(changes=changes, dtype=dtype, numpy=numpy)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("dtype", "numpy"), [("f32", "float32"), ("f64", "float64")])
def test_one_row_makes_an_op_of_hlo(dtype: str, numpy: str) -> None:
    """If this failed, a new function would need a line in a table that nobody remembers."""
    done = _with_new_row("complex=False", dtype, numpy)
    assert done.stdout.strip() == "done", done.stderr[-2000:]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ("complex=True", "emitters/elemental/complex"),
        ("complex=False, numpy=None", "ir/dialects/math.py"),
        ("complex=False, monotone=False", "hlo/evaluator/bounds/elementwise.py"),
    ],
)
def test_what_a_row_lacks_is_named(changes: str, where: str) -> None:
    """If this failed, the answer would be a bare KeyError, or a bound of 0 ulp that no kernel keeps."""
    name = "exp2" if where == "ir/dialects/math.py" else "exponential-base-two"
    done = _with_new_row(changes)
    assert done.returncode != 0
    assert "InternalError" in done.stderr
    assert f"'{name}' is a row of numerics/functions/table.py" in done.stderr
    assert where in done.stderr


def test_an_entry_that_is_there_is_returned() -> None:
    """If this failed, tables would be empty or hold more than their rows."""
    assert implemented("x.py", {"a": 1, "b": 2}, ["b"]) == {"b": 2}
    with pytest.raises(InternalError, match=r"'c' is a row .* and x\.py has no entry"):
        implemented("x.py", {"a": 1}, ["a", "c"])


def test_every_function_of_hlo_has_edge_data() -> None:
    """If this failed, a function's zeros, infinities and NaN would be held by no test."""
    assert set(BY_OPCODE) <= {row.opcode for row in EDGES}
    assert {row.name for row in FUNCTIONS.values()} == set(FUNCTIONS)
