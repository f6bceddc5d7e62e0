"""What `warpsmith bisect` prints.

In: a `Bisection`.  Out: text for people.
"""

from __future__ import annotations

from warpsmith.compiler.bisection import EMISSION, Bisection, Culprit

__all__ = ["bisection_text"]

_MOST_DIFF_LINES = 60

_WHAT = {
    "values": "changes the result",
    "access": "makes an access go wrong",
    "raised": "raises an error",
    "invalid IR": "leaves IR that doesn't verify",
}


def bisection_text(found: Bisection) -> str:
    """A line a kernel that held, then the culprit: what, where, examples, and what it did to the IR."""
    culprit = found.culprit
    held = [(name, count) for name, count in found.steps if culprit is None or name != culprit.kernel]
    lines = [f"{found.module} for {found.target}"]
    lines += [f"  {name}: {count} steps ran, each as its contract says" for name, count in held]
    if culprit is None:
        lines.append("no step changed a result" if found.steps else "the module has no kernel that ran")
        return "\n".join(lines)
    return "\n".join([*lines, *_culprit_lines(culprit)])


def _culprit_lines(culprit: Culprit) -> list[str]:
    step = "emission" if culprit.step == EMISSION else f"step {culprit.index + 1}, {culprit.step},"
    lines = [f"  {culprit.kernel}: {step} {_WHAT[culprit.what]}: {culprit.message}"]
    if culprit.contract:
        lines.append(f"  its contract: {culprit.contract}")
    for each in culprit.examples:
        place = f"output {each.output}[{', '.join(map(str, each.index))}]"
        lines.append(f"    {place}: {each.before} became {each.after}   (reference: {each.reference})")
    if culprit.diff:
        diff = culprit.diff.splitlines()
        lines += ["", *diff[:_MOST_DIFF_LINES]]
        if len(diff) > _MOST_DIFF_LINES:
            lines.append(f"... {len(diff) - _MOST_DIFF_LINES} more lines: --json has them all")
    return lines
