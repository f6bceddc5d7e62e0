"""The text-test runner itself: it must fail when the output isn't what a test says."""

from __future__ import annotations

import pytest
from ir.filecheck import CheckFailed, check, run_line

OUTPUT = """module {
  func.func @f(%a: index) {
    %0 = arith.addi %a, %a : index
    %1 = arith.muli %0, %a : index
    return %1
  }
  func.func @g() {
    return
  }
}
"""

HOLDS = {
    "in_order": "// CHECK: addi\n// CHECK: muli",
    "next": "// CHECK: addi\n// CHECK-NEXT: muli",
    "same": "// CHECK: addi\n// CHECK-SAME: : index",
    "not": "// CHECK: addi\n// CHECK-NOT: subi\n// CHECK: return",
    "capture": "// CHECK: %[[X:\\w+]] = arith.addi\n// CHECK: arith.muli %[[X]]",
    "capture_and_use_in_one": "// CHECK: arith.addi %[[X:\\w+]], %[[X]]",
    "any_order": "// CHECK-DAG: muli\n// CHECK-DAG: addi",
    "count": "// CHECK-COUNT-2: func.func",
    "label": "// CHECK-LABEL: @f\n// CHECK: return %1\n// CHECK-LABEL: @g\n// CHECK-NOT: arith",
    "regex": "// CHECK: arith.{{add|sub}}i",
    "blanks_are_equal": "// CHECK: return   %1",
}
FAILS = {
    "absent": "// CHECK: subi",
    "wrong_order": "// CHECK: muli\n// CHECK: addi",
    "not_next": "// CHECK: addi\n// CHECK-NEXT: return",
    "other_line": "// CHECK: addi\n// CHECK-SAME: muli",
    "present": "// CHECK: addi\n// CHECK-NOT: muli\n// CHECK: return",
    "present_at_the_end": "// CHECK: addi\n// CHECK-NOT: @g",
    "present_at_the_start": "// CHECK-NOT: @f\n// CHECK: addi",
    "other_value": "// CHECK: %[[X:\\w+]] = arith.muli\n// CHECK: return %0[[X]]",
    "prefix_of_a_name": "// CHECK: func.func @[[X:\\w]](%\n// CHECK: @[[X]]unc",
    "too_few": "// CHECK-COUNT-3: func.func",
    "other_section": "// CHECK-LABEL: @g\n// CHECK: arith",
    "one_line_for_two": "// CHECK-DAG: addi\n// CHECK-DAG: addi",
    "never_captured": "// CHECK: [[X]]",
    "nothing_to_check": "// no directive",
}


@pytest.mark.parametrize("name", HOLDS)
def test_holds(name: str) -> None:
    check(HOLDS[name], OUTPUT)


@pytest.mark.parametrize("name", FAILS)
def test_fails(name: str) -> None:
    with pytest.raises(CheckFailed):
        check(FAILS[name], OUTPUT)


def test_a_test_needs_a_run_line() -> None:
    assert run_line("// RUN: cse,licm\n") == "cse,licm"
    with pytest.raises(CheckFailed):
        run_line("// CHECK: x\n")
