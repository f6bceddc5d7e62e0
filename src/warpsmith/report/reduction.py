"""Failures that a reduction keeps, and the reduction.

In: a module that fails, and what failing means.  Out: a `Reduction`: a smaller module that fails in the same way.
The cuts are `hlo.shrink`'s; here are the questions: a wrong result, a finding of the simulator, a crash (asked in a
process of its own, since it may take its process with it), or whatever a command of the user's says.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith.errors import UsageError, WarpsmithError, did_you_mean
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.shrink import shrink, weight
from warpsmith.report.run.checked_run import run

__all__ = ["FAILURES", "Question", "Reduction", "crashes", "reduce", "told_by"]

Question = Callable[[HloModule], bool]

FAILURES = ("wrong", "check", "crash")
"""What may be kept: a result that differs, a finding of the simulator, an internal error or a process that dies."""

_OUR_BUG = 70


@dataclass(frozen=True, slots=True)
class Reduction:
    """A smaller module with the same failure; `asked` modules were tried.  `before` and `after` count instructions."""

    module: HloModule
    failure: str
    before: int
    after: int
    asked: int


def reduce(
    module: HloModule,
    failure: str | Question | None = None,
    *,
    target: str = "cpu",
    numerics: str = "strict",
    seed: int = 0,
    limit: int = 2000,
) -> Reduction | None:
    """Shrink `module` while `failure` holds: one of FAILURES, a question of your own, or None for whichever holds.

    `target` "cpu" runs machine code, a GPU runs in the simulator (PTX).  None when the module doesn't fail.  Raises
    UsageError for another failure's name.
    """
    if callable(failure):
        return _reduced(module, "question", failure, limit)
    if failure is not None and failure not in FAILURES:
        raise UsageError(f"no failure is called '{failure}'", help=did_you_mean(failure, FAILURES))
    for name in FAILURES if failure is None else (failure,):
        question = _question(name, target, numerics, seed)
        if question is not None:
            found = _reduced(module, name, question, limit)
            if found is not None:
                return found
    return None


def _reduced(module: HloModule, name: str, question: Question, limit: int) -> Reduction | None:
    asked = 0

    def fails(candidate: HloModule) -> bool:
        nonlocal asked
        asked += 1
        return question(candidate)

    if not fails(module):
        return None
    small = shrink(module, fails, limit=limit)
    return Reduction(small, name, weight(module)[0], weight(small)[0], asked)


def _question(name: str, target: str, numerics: str, seed: int) -> Question | None:
    """The question for one of FAILURES; None for checks on a target that isn't simulated."""
    simulated = target != "cpu"
    if name == "crash":
        return crashes(["--platform", "sim", "--target", target, "--stage", "ptx"] if simulated else [], numerics, seed)
    if name == "check" and not simulated:
        return None
    platform, stage = ("sim", "ptx") if simulated else ("cpu", "buffers")

    def fails(module: HloModule) -> bool:
        try:
            report = run(
                module,
                target=target,
                platform=platform,
                stage=stage,
                numerics=numerics,
                seed=seed,
                iterations=1,
                measure_copy=False,
                cache=False,
            )
        except WarpsmithError:
            return False
        return bool(report.findings) if name == "check" else report.match is False

    return fails


def crashes(options: Sequence[str], numerics: str = "strict", seed: int = 0) -> Question:
    """Whether `warpsmith run` meets an internal error, or its process dies."""

    def fails(module: HloModule) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "module.hlo"
            file.write_text(str(module), encoding="utf-8")
            command = [sys.executable, "-m", "warpsmith", "run", str(file), "--no-cache", "--iterations", "1"]
            command += ["--numerics", numerics, "--seed", str(seed), *options]
            environment = {"TMPDIR": folder}  # the crash's own repro goes with the folder
            status = _status(command, environment)
        return status == _OUR_BUG or status < 0

    return fails


def told_by(command: str) -> Question:
    """Whether a shell-like command says that a module still fails: it is given a file of HLO, status 0 means yes.

    `{}` stands for the file's path, which is appended where there is none.
    """
    words = shlex.split(command)
    if not words:
        raise UsageError("the command is empty", help="such as: --question './still-fails.sh {}'")

    def fails(module: HloModule) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "module.hlo"
            file.write_text(str(module), encoding="utf-8")
            path = str(file)
            filled = [word.replace("{}", path) for word in words]
            try:
                return _status(filled if filled != words else [*words, path], {}) == 0
            except OSError as error:
                raise UsageError(f"can't run {words[0]}: {error.strerror}") from error

    return fails


def _status(command: Sequence[str], environment: dict[str, str]) -> int:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=False)
    return done.returncode
