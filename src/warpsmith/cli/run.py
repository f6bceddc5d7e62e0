"""Compile modules, run them, compare with the reference interpreter, and report.

warpsmith run gelu.hlo            on this CPU, seeded input
warpsmith run --example gelu      an example that is shipped with Warpsmith
warpsmith run --platform=CUDA --reference_platform="" gelu.hlo --xla_dump_to=DIR    XLA's own spellings
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from warpsmith.cli import NOTHING_COMPARED, is_ours
from warpsmith.cli.files import example_text, read_bytes, terminal_colors, terminal_width
from warpsmith.cli.modules import add_fill_elided, load_module
from warpsmith.cli.own_passes import add_arguments, load
from warpsmith.errors import FileError, UsageError, WarpsmithError, did_you_mean
from warpsmith.records import json_text

if TYPE_CHECKING:
    from warpsmith.hlo.load import Snapshot
    from warpsmith.hlo.module import HloModule
    from warpsmith.report.run.run_report import RunReport

_PLATFORMS = {"cpu": "cpu", "host": "cpu", "cuda": "cuda", "gpu": "cuda", "sim": "sim"}
_REFERENCES = {"interpreter": "interpreter", "default": "interpreter", "none": "none", "": "none"}
_DEFAULT_GPU = "sm_90"


_XLA_RULE = "compare as XLA does: wrong if this absolute error is exceeded, and --rel-error too (default: by ulp)"


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", nargs="*", metavar="FILE.hlo", help="HLO text; - for standard input")
    parser.add_argument(
        "--example", action="append", default=[], metavar="NAME", help="a shipped example, such as gelu"
    )
    parser.add_argument("--platform", default="cpu", help="cpu (default), sim, or cuda (compiles, runs nothing)")
    parser.add_argument(
        "--stage", default="buffers", help="with --platform sim: buffers (IR, default), or ptx (the text itself)"
    )
    parser.add_argument("--target", metavar="DEVICE", help="with --platform cuda or sim: the device (default: sm_90)")
    parser.add_argument(
        "--reference", "--reference_platform", default="interpreter", help="interpreter (default) or none"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the generated input (default: 0)")
    parser.add_argument("--iterations", type=_positive, metavar="N", help="timed calls (default: about 0.2 s of them)")
    parser.add_argument("--abs-error", "--abs_error_bound", type=_bound, metavar="X", help=_XLA_RULE)
    parser.add_argument(
        "--rel-error", "--rel_error_bound", type=_bound, metavar="X", help="the same, of the relative error"
    )
    parser.add_argument("--numerics", default="strict", help="strict (default) or xla")
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="results that repeat bit for bit on a GPU, too: scatters combine updates in order",
    )
    add_fill_elided(parser)
    parser.add_argument("--input", metavar="FILE.npz", help="arrays 0, 1, ... instead of generated input")
    parser.add_argument("--output", metavar="FILE.npz", help="write the results as arrays 0, 1, ...")
    parser.add_argument("--dump-to", "--xla_dump_to", metavar="DIR", help="one file a pass, numbered and named")
    parser.add_argument(
        "--dump-pass-re",
        "--xla_dump_hlo_pass_re",
        "--xla_dump_emitter_re",
        metavar="REGEX",
        help="dump only after passes that match",
    )
    parser.add_argument(
        "--trace",
        action="store_true",
        help="print each instruction's value in the reference interpreter: range and NaNs",
    )
    parser.add_argument(
        "--step-limit", type=_positive, metavar="N", help="instructions that the reference may take (default: 10000000)"
    )
    parser.add_argument("--save-repro", metavar="X.zip", help="write a zip that replays this command elsewhere")
    add_arguments(parser)
    parser.add_argument("--no-cache", action="store_true", help="compile anew, and keep nothing on disk")
    parser.add_argument("--json", action="store_true", help="one JSON object a module on standard output, nothing else")
    parser.add_argument("--xla_disable_all_hlo_passes", nargs="?", const="true", default="true", help=argparse.SUPPRESS)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} isn't a positive number")
    return value


def _bound(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text} is no error bound")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    load(arguments)
    platform = _choice("platform", arguments.platform, _PLATFORMS)
    reference = _choice("reference", arguments.reference, _REFERENCES)
    if arguments.stage != "buffers" and platform != "sim":
        raise UsageError("--stage goes with --platform sim", help="to print a stage: warpsmith compile --stage ...")
    sources = [(f"example {n}", example_text(n).encode()) for n in arguments.example]
    sources += [(path, read_bytes(path)) for path in arguments.files]
    if not sources:
        raise UsageError("no file to run", help="give an HLO file, or: warpsmith run --example gelu")
    if (arguments.input or arguments.output) and len(sources) > 1:
        raise UsageError("--input and --output go with one file")
    if arguments.target is not None and platform == "cpu":
        raise UsageError(
            "--target goes with --platform cuda or sim", help="to print a GPU's code: warpsmith compile --target ..."
        )
    if arguments.save_repro:
        _save_repro(arguments)
    status = 0
    for name, data in sources:
        try:
            status = _worse(status, _one(arguments, platform, reference, name, data))
        except WarpsmithError as error:
            if is_ours(error, arguments.words):
                raise
            if arguments.json:
                print(json_text({"module": name, "error": error.to_dict()}))
            if len(sources) == 1:
                raise
            print(f"{name}: {error}", file=sys.stderr)
            status = 2
    return status


def _worse(*statuses: int) -> int:
    """That of several modules: wrong input before a difference before nothing compared."""
    return max(statuses, key=(0, NOTHING_COMPARED, 1, 2).index)


def _save_repro(arguments: argparse.Namespace) -> None:
    from warpsmith.cli.crash import save_repro, without

    words = without(arguments.words, "--save-repro", "--output", flags=("--json",))
    try:
        save_repro(arguments.save_repro, words if arguments.no_cache else [words[0], "--no-cache", *words[1:]])
    except OSError as error:
        raise FileError(f"can't write {arguments.save_repro}: {error.strerror}") from error


def _choice(what: str, given: str, known: dict[str, str]) -> str:
    found = known.get(given.lower())
    if found is None:
        names = [k for k in known if k]
        raise UsageError(
            f"no {what} is called '{given}'", help=did_you_mean(given, names) or f"one of {', '.join(names)}"
        )
    return found


def _one(arguments: argparse.Namespace, platform: str, reference: str, name: str, data: bytes) -> int:
    snapshot = load_module(data, name, arguments.fill_elided)
    module = snapshot.module
    if platform == "cuda":
        report = _compile_only(arguments, module)
    else:
        report = _run_here(arguments, snapshot, reference)
    if arguments.json:
        print(report.to_json())
    else:
        print(report.text(terminal_width(), color=terminal_colors()))
    if report.match is False or report.findings or report.recorded_mismatches:
        return 1
    return NOTHING_COMPARED if report.says_nothing else 0


def _run_here(arguments: argparse.Namespace, snapshot: Snapshot, reference: str) -> RunReport:
    from warpsmith.compiler.generated import random_inputs
    from warpsmith.hlo.evaluator.machine import STEP_LIMIT
    from warpsmith.report.run.checked_run import run
    from warpsmith.report.run.values import trace_values

    module = snapshot.module
    simulates = _PLATFORMS[arguments.platform.lower()] == "sim"
    target = arguments.target or _DEFAULT_GPU if simulates else "cpu"
    if arguments.dump_to:
        _dump(arguments, module, target)
    recorded = snapshot.results if not arguments.input else ()
    inputs: list[Any] = list(snapshot.arguments)
    if arguments.input:
        from warpsmith.cli.npz import read_npz

        inputs = read_npz(arguments.input)
    limit = arguments.step_limit or STEP_LIMIT
    if arguments.trace:
        stream = sys.stderr if arguments.json else sys.stdout
        traced = inputs or random_inputs(module, arguments.seed, arguments.numerics)
        for line in trace_values(module, *traced, step_limit=limit):
            print(line, file=stream)
    results: list[Any] = []
    report = run(
        module,
        *inputs,
        target=target,
        platform="sim" if simulates else "cpu",
        stage=arguments.stage,
        numerics=arguments.numerics,
        seed=arguments.seed,
        iterations=arguments.iterations,
        reference=reference,
        abs_error=arguments.abs_error,
        rel_error=arguments.rel_error,
        cache=not arguments.no_cache,
        results=results,
        step_limit=limit,
        deterministic=arguments.deterministic,
        pipeline=arguments.pipeline,
        recorded=recorded,
    )
    if arguments.output:
        from warpsmith.cli.npz import write_npz

        write_npz(arguments.output, results)
    return report


def _compile_only(arguments: argparse.Namespace, module: HloModule) -> RunReport:
    """No kernel of HLO is launched on a GPU: compile, dump, and say that nothing ran."""
    from warpsmith.report.run.checked_run import compiled

    target = arguments.target or _DEFAULT_GPU
    if arguments.dump_to:
        _dump(arguments, module, target)
    report = compiled(
        module,
        target=target,
        numerics=arguments.numerics,
        deterministic=arguments.deterministic,
        pipeline=arguments.pipeline,
    )
    report.notes.append(f"compiled for {target}; HLO isn't launched on GPUs: not run and not compared")
    if arguments.dump_to:
        report.notes.append(f"dumped to {arguments.dump_to}")
    return report


def _dump(arguments: argparse.Namespace, module: HloModule, target: str) -> None:
    from warpsmith.report.page.dump import dump_module

    dump_module(
        module,
        arguments.dump_to,
        target=target,
        numerics=arguments.numerics,
        pass_re=arguments.dump_pass_re,
        deterministic=arguments.deterministic,
        pipeline=arguments.pipeline,
    )
