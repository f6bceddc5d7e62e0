"""The table of mutants: by operator how many were found and by what, and which are equivalent and why.

`python bench/mutations.py` prints it; it takes some seconds.  Kernels and operators are those of the tests.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from simt.mutation_kernels import KERNELS, clean_kernel
from simt.mutations import Runner, equivalence, ir_runner, judge, mutants, ptx_mutants, record


def main() -> int:
    """Print the tables; 1 if a mutant is neither found nor equivalent."""
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    reasons: Counter[tuple[str, str, str]] = Counter()
    lost: list[str] = []
    for name in KERNELS:
        kernel = clean_kernel(name)
        seeds = [kernel.inputs(seed) for seed in range(3)]
        stages: list[tuple[str, Runner]] = [
            ("IR", ir_runner(kernel.module, kernel.outputs)),
            ("PTX", kernel.run_ptx(kernel.ptx)),
        ]
        for stage, clean in stages:
            wanted = [clean(inputs) for inputs in seeds]
            assert not any(findings for _, findings in wanted), f"{name} isn't clean"
            every = mutants(kernel.module, kernel.outputs) if stage == "IR" else ptx_mutants(kernel.ptx, kernel.run_ptx)
            recording = record(clean, seeds[0])
            count: Counter[str] = Counter()
            for mutant in every:
                codes = (judge(mutant.run, x, y) for x, (y, _) in zip(seeds, wanted, strict=True))
                code = next((c for c in codes if c), "")
                if not code:
                    why = equivalence(mutant, recording, record(mutant.run, seeds[0]))
                    code = "equivalent" if why else "NOT FOUND"
                    reasons[stage, mutant.operator, why or f"NOT FOUND: {name}: {mutant.site}"] += 1
                    lost += [] if why else [f"{stage} {name}: {mutant.operator}: {mutant.site}"]
                found[stage, mutant.operator][code] += 1
                count[code] += 1
            same, missed = count["equivalent"], count["NOT FOUND"]
            print(f"{stage:3} {name:32} {count.total():4} mutants, {same:2} equivalent, {missed} missed")
    print()
    for (stage, operator), codes in sorted(found.items()):
        print(
            f"{stage:3} {operator:28} {codes.total():4}  {', '.join(f'{n} {code}' for code, n in codes.most_common())}"
        )
    total = Counter[str]()
    for codes in found.values():
        total.update(codes)
    print(f"\nall {total.total()}: {', '.join(f'{n} {code}' for code, n in total.most_common())}\n\nequivalent:")
    for (stage, operator, why), number in sorted(reasons.items()):
        print(f"{stage:3} {operator:28} {number:3}  {why}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
