"""Every hero emitter by element type and shape: how many of the cells of `tests/matrix.py` are right.

    python bench/emitter_matrix.py                  all cells; each kernel assembled for sm_80, sm_90 and sm_100
    python bench/emitter_matrix.py scatter s4       cells whose names hold all these words
    python bench/emitter_matrix.py --no-ptxas       without ptxas

A cell runs on this computer and in the simulator, as IR and as PTX, with every check on; each result lies within the
reference interpreter's bounds.  It counts as `right` when the emitter that it is for took it, as `other` when that
emitter refused it by a rule, another took it, and all is right (the reasons are listed below the table), and as `wrong`
when a result is, a check found something, or ptxas complained.  The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from matrix import CELLS, DTYPES, Cell, Verdict, assembles, check

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
COLUMN = 13


def verdict_of(cell: Cell, ptxas: bool) -> Verdict:
    """The cell's verdict, ptxas's complaints among it."""
    found = check(cell)
    wrong = [found.wrong] if found.wrong else []
    for target in ARCHITECTURES if ptxas else ():
        complaint = assembles(cell, target)
        if complaint:
            wrong.append(f"{target}: {complaint}")
    return Verdict(found.taken_by, found.variant, found.refused, "; ".join(wrong))


def counted(verdicts: list[Verdict]) -> str:
    """right/other/wrong."""
    wrong = sum(bool(each.wrong) for each in verdicts)
    other = sum(bool(each.refused) and not each.wrong for each in verdicts)
    return f"{len(verdicts) - wrong - other}/{other}/{wrong}" if verdicts else "-"


def table(verdicts: dict[Cell, Verdict]) -> str:
    """Emitters by element types, right/other/wrong in each place, and sums."""
    rows = list(dict.fromkeys((cell.emitter, cell.variant) for cell in verdicts))
    lines = [f"{'right/other/wrong':<36}" + "".join(f"{name:>{COLUMN}}" for name in (*DTYPES, "all"))]
    for row in [*rows, None]:
        mine = [cell for cell in verdicts if row is None or (cell.emitter, cell.variant) == row]
        places = [[verdicts[cell] for cell in mine if cell.dtype == dtype] for dtype in DTYPES]
        places.append([verdicts[cell] for cell in mine])
        name = "all" if row is None else f"{row[0]}, {row[1]}"
        lines.append(f"{name:<36}" + "".join(f"{counted(place):>{COLUMN}}" for place in places))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the right cells of the emitter matrix.")
    parser.add_argument("words", nargs="*", help="words that a cell's name must hold")
    parser.add_argument("--no-ptxas", action="store_true", help="don't assemble")
    arguments = parser.parse_args()
    chosen = [cell for cell in CELLS if all(word in cell.name for word in arguments.words)]
    verdicts = {cell: verdict_of(cell, not arguments.no_ptxas) for cell in chosen}
    print(table(verdicts))
    print("\nTaken by another emitter, or refused, and why:")
    for (emitter, reason), count in sorted(Counter((c.emitter, v.refused) for c, v in verdicts.items()).items()):
        if reason:
            print(f"{count:5}  {emitter}: {reason}")
    wrong = {cell: verdict for cell, verdict in verdicts.items() if verdict.wrong}
    for cell, verdict in wrong.items():
        print(f"wrong: {cell.name}: {verdict.wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
