"""Compiles every op in every element type for a CPU and a GPU, runs it here, and prints the table.

    python bench/support_table.py [--opcodes add,tanh] [--dtypes s4,f8e5m2] [--markdown]

Exit status 1 if a result differs from the reference interpreter's.  All 2,900 cases take some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from warpsmith.dtypes import BY_NAME

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracle.support import TARGETS, Support, check, support_cases


def _names(text: str) -> list[str] | None:
    return text.split(",") if text else None


def _markdown(rows: list[Support]) -> str:
    """A line an opcode, a column a type: where it works (all targets, `-` no target), nothing where HLO lacks it."""
    names = [name for name, row in BY_NAME.items() if row.is_array_element and any(r.dtype is row for r in rows)]
    lines = ["| op | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    by_op: dict[str, dict[str, str]] = {}
    for row in rows:
        works = [target for target in TARGETS if row.supported(target)]
        mark = "" if row.absent else "yes" if len(works) == len(TARGETS) else ", ".join(works) or "-"
        by_op.setdefault(row.opcode, {})[row.dtype.name] = mark
    lines += [f"| {op} | " + " | ".join(marks.get(name, "") for name in names) + " |" for op, marks in by_op.items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opcodes", default="")
    parser.add_argument("--dtypes", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rows: list[Support] = []
    counts: Counter[str] = Counter()
    for case in support_cases(_names(options.opcodes), _names(options.dtypes)):
        row = check(case, seed=options.seed)
        rows.append(row)
        counts["not HLO" if row.absent else "refused" if row.refused else "supported"] += 1
        if row.wrong:
            counts["wrong"] += 1
            print(f"{row.opcode} of {row.dtype}: {row.wrong}", file=sys.stderr)
    reasons = Counter(reason for row in rows for reason in row.refused.values())
    if options.markdown:
        print(_markdown(rows))
    else:
        for row in rows:
            for target, reason in row.refused.items():
                print(f"{row.opcode} of {row.dtype} on {target}: {reason}")
    print(f"{dict(counts)}, {len(reasons)} reasons", file=sys.stderr)
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
