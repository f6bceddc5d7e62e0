"""Warpsmith: HLO fusions to CPU and GPU kernels, in Python, with no GPU needed.

    import warpsmith as ws
    module = ws.parse_hlo(text)
    exe = ws.compile(module, target="cpu")
    outs = exe(*arrays)

Everything here is imported when it is first used: `import warpsmith` costs little more than numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from warpsmith.errors import WarpsmithError
from warpsmith.version import __version__

if TYPE_CHECKING:
    from warpsmith import passes, tile
    from warpsmith.compiler import Simulation, compile, simulate
    from warpsmith.hlo import HloModule, parse_hlo
    from warpsmith.hlo.evaluator import evaluate
    from warpsmith.hlo.load import load
    from warpsmith.report.explain.explanation import Explanation, explain
    from warpsmith.report.run.checked_run import RunOptions, run
    from warpsmith.report.run.run_report import RunReport
    from warpsmith.runtime.executable import Executable

__all__ = [
    "Executable",
    "Explanation",
    "HloModule",
    "RunOptions",
    "RunReport",
    "Simulation",
    "WarpsmithError",
    "__version__",
    "compile",
    "evaluate",
    "explain",
    "load",
    "parse_hlo",
    "passes",
    "run",
    "simulate",
    "tile",
]

_HOMES: dict[str, str] = {
    "Executable": "warpsmith.runtime.executable",
    "Explanation": "warpsmith.report.explain.explanation",
    "HloModule": "warpsmith.hlo",
    "RunOptions": "warpsmith.report.run.checked_run",
    "RunReport": "warpsmith.report.run.run_report",
    "compile": "warpsmith.compiler",
    "evaluate": "warpsmith.hlo.evaluator",
    "explain": "warpsmith.report.explain.explanation",
    "load": "warpsmith.hlo.load",
    "parse_hlo": "warpsmith.hlo",
    "Simulation": "warpsmith.compiler",
    "run": "warpsmith.report.run.checked_run",
    "simulate": "warpsmith.compiler",
}


def __getattr__(name: str) -> Any:
    if name in ("passes", "tile"):
        return importlib.import_module(f"warpsmith.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'warpsmith' has no attribute '{name}'")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
