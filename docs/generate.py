"""Keeps the pages true: writes the tables that come from the code, and the output that shown commands print.

    python docs/generate.py            rewrite what has changed
    python docs/generate.py --check    say what would change; exit status 1 if anything would

In: the pages of docs/, README.md and CONTRIBUTING.md.  A table stands between `<!-- table: NAME -->` and
`<!-- end -->`.  In a fenced block with the language `console`, what follows a line `$ warpsmith ...` is that command's
output.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import re
import shlex
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path

import warpsmith.ir.dialects
from warpsmith import errors
from warpsmith.cli import COMMANDS, Parser, main
from warpsmith.devices import device, device_names
from warpsmith.emitters.elemental import HANDLERS
from warpsmith.fusion.support import KERNEL_OPS
from warpsmith.hlo.evaluator.table import RULES
from warpsmith.hlo.indexing import maps as hlo_indexing
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.ir.core.ssa import REGISTRY, OpRow, Trait
from warpsmith.numerics import bounds, modes
from warpsmith.passes import manager, pipeline
from warpsmith.tile.dispatch import registry as tile_registry
from warpsmith.tile.model import ops as tile_ops

ROOT = Path(__file__).resolve().parents[1]
assert warpsmith.ir.dialects  # importing it fills REGISTRY
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tests")]
tile_kernels, edges, measured = (import_module(name) for name in ("tile_kernels", "oracle.edges", "oracle.measured"))

Row = Sequence[str]


def pages() -> list[Path]:
    """The files that may hold tables and commands."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def table(header: Row, rows: Iterable[Row]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(names: Iterable[str]) -> str:
    """`a`, `b`"""
    return ", ".join(f"`{name}`" for name in names)


def first_paragraph(thing: object) -> str:
    """Of its docstring, on one line."""
    return " ".join((thing.__doc__ or "").partition("\n\n")[0].split())


def yes(value: object) -> str:
    return "yes" if value else ""


# ------------------------------------------------------------------------------------------------------------- passes
def _first_line(name: str) -> str:
    """What a pass does: the first line of its module's docstring, after the pass's name."""
    return manager.lookup(name).doc.partition("\n")[0].partition(": ")[2].rstrip(".")


def _passes(*groups: tuple[str, Sequence[str]]) -> str:
    rows: list[Row] = []
    for group, names in groups:
        for name in names:
            rows.append([str(len(rows) + 1), group, f"`{name}`", _first_line(name)])
    return table(["", "phase", "pass", "what it does"], rows)


def gpu_passes() -> str:
    return _passes(("on tensors", pipeline.GPU_PIPELINE), ("to LLVM", pipeline.GPU_LOWERING))


def cpu_passes() -> str:
    return _passes(("on tensors", pipeline.CPU_PIPELINE), ("to LLVM", pipeline.CPU_LOWERING))


def tile_cpu_passes() -> str:
    return _passes(
        ("on buffers", pipeline.TILE_BUFFERS), ("to LLVM", pipeline.TILE_CPU_LOWERING[len(pipeline.TILE_BUFFERS) :])
    )


def own_pass() -> str:
    """The pass of the page "Your own pass"."""
    return f"```python\n{(ROOT / 'examples/passes/double_by_adding.py').read_text(encoding='utf-8')}```"


def contracts() -> str:
    rows: list[Row] = []
    for name in manager.names():
        info = manager.lookup(name)
        options = code(f"{key}={value}".lower() for key, value in info.options.items())
        gone = ", ".join(f"`{each}`" if isinstance(each, str) else each.what for each in info.illegal_after)
        rows.append([f"`{name}`", info.contract, gone, options])
    return table(["pass", "contract", "leaves none of", "options and defaults"], rows)


# ----------------------------------------------------------------------------------------------------------------- IR
_TRAITS = {value: name.lower().replace("_", " ") for name, value in vars(Trait).items() if name.isupper() and value}


def _op(row: OpRow) -> Row:
    effects = ", ".join(f"{effect.value} {operand}" if operand else effect.value for effect, operand in row.effects)
    return [
        f"`{row.name}`",
        " ".join(row.operands),
        ", ".join(name for bit, name in _TRAITS.items() if row.traits & bit),
        effects,
        yes(row.fold or (row.numpy and not row.traits & Trait.INEXACT)),
        yes(row.numpy),
        f"`{row.llvm}`" if row.llvm else "",
    ]


def op_rows() -> str:
    parts: list[str] = []
    header = ["op", "operands", "traits", "effects", "folds", "numpy", "LLVM form"]
    for dialect in sorted({row.dialect for row in REGISTRY.values()}):
        rows = sorted((row for row in REGISTRY.values() if row.dialect == dialect), key=lambda row: row.name)
        parts += [f"### {dialect}", table(header, map(_op, rows))]
    return "\n\n".join(parts)


# ---------------------------------------------------------------------------------------------------------------- HLO
def opcodes() -> str:
    rows: list[Row] = []
    for name, row in sorted(OPCODES.items()):
        rows.append(
            [
                f"`{name}`",
                row.operand_words,
                yes(name in hlo_indexing._OUTPUT_TO_INPUT),
                yes(name in HANDLERS),
                yes(name in KERNEL_OPS),
                yes(name in RULES),
            ]
        )
    return table(["opcode", "operands", "indexing map", "inside a fusion", "a kernel alone", "interpreter"], rows)


# ----------------------------------------------------------------------------------------------------------- numerics
_CLASSES = {"8 bits and less": "f8e4m3fn", "f16, bf16": "bf16", "f32": "f32", "f64": "f64", "c64, c128": "c64"}


def accuracy() -> str:
    rows = [
        [f"`{opcode}`", *(str(by_dtype[dtype]) for dtype in _CLASSES.values())] for opcode, by_dtype in bounds.table()
    ]
    return table(["opcode", *_CLASSES], rows)


def edge_values() -> str:
    by_op: dict[str, list[str]] = {}
    for row in edges.EDGES:
        by_op.setdefault(row.opcode, []).append(f"({', '.join(row.operands)}) = {row.result}")
    return table(["opcode", "facts"], ([f"`{opcode}`", "; ".join(facts)] for opcode, facts in by_op.items()))


def mode_differences() -> str:
    rows: list[Row] = []
    for row in modes.DIFFERENCES:
        cells = ["", "", ""]
        if row.example is not None:
            text = " ".join(row.example.text.replace("\n", "; ").split())
            given = "; ".join(_bits(values) for values in row.example.parameters)
            cells = [f"`{text}` of {given}", _bits(row.example.strict), _bits(row.example.xla)]
        rows.append([f"`{row.opcode}`", ", ".join(row.dtypes), row.targets, row.strict, row.xla, *cells])
    return table(["opcode", "types", "on", "`strict`", "`xla`", "example", "bits in `strict`", "in `xla`"], rows)


def _bits(values: Sequence[int]) -> str:
    return ", ".join(f"{value:#x}" for value in values)


def atomic_adds() -> str:
    rows = (
        [row.dtype, row.memory, f"`{row.instruction}`", f"sm_{row.since}", "flushed" if row.flushes else "kept"]
        for row in modes.ATOMIC_ADDS
    )
    return table(["type", "memory", "instruction", "since", "subnormal numbers"], rows)


def modes_kept() -> str:
    return table(["where", "XLA:GPU", "here"], ([row.where, row.upstream, row.here] for row in modes.KEPT))


def left_open() -> str:
    rows = ([row.question, row.chosen, row.upstream] for row in modes.OPEN)
    return table(["HLO leaves open", "here", "XLA:GPU 0.10.2"], rows)


def measured_accuracy() -> str:
    rows: list[Row] = []
    for name, row in measured.F32.items():
        argument = struct.unpack("<f", struct.pack("<I", row.worst))[0]
        rows.append([f"`{name}`", str(row.distance), f"{row.error:.3f}", f"{argument:.9g}", f"{row.worst:#010x}"])
    return table(["function", "ulp from rounded", "ulp from exact", "at", "bits"], rows)


# ------------------------------------------------------------------------------------------------------------- others
def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:g} {unit}" if count % size == 0 else f"{count / size:.1f} {unit}"
    return str(count)


def devices() -> str:
    rows: list[Row] = []
    for name in device_names():
        each = device(name)
        if not each.is_gpu:
            continue
        rows.append(
            [
                f"`{name}`",
                each.title,
                ".".join(map(str, each.compute_capability)) if each.is_nvidia else "",
                str(each.warp_size),
                str(each.core_count),
                _size(each.shared_per_block_optin),
                _size(each.l2_bytes),
                f"{each.memory_bandwidth / 1e9:.0f} GB/s",
                f"{(each.peak('f32') or 0) / 1e12:.1f}",
            ]
        )
    header = ["target", "device", "capability", "warp", "cores", "shared a block", "L2", "bandwidth", "f32 TFLOP/s"]
    return table(header, rows)


def error_codes() -> str:
    groups = dict(re.findall(r"(\d\d) ([^,.]+)", " ".join((errors.__doc__ or "").split())))
    found = [
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.WarpsmithError)
    ]
    rows = (
        [f"`{each.code}`", groups.get(each.code[2:4], ""), f"`{each.__name__}`", first_paragraph(each)]
        for each in sorted(found, key=lambda each: each.code)
        if each is not errors.WarpsmithError
    )
    return table(["code", "group", "class", "meaning"], rows)


def command_options() -> str:
    parts: list[str] = []
    parsers: list[tuple[str, argparse.ArgumentParser]] = []
    for command, summary in COMMANDS.items():
        parser = Parser(prog=f"warpsmith {command}", add_help=False)
        import_module(f"warpsmith.cli.{command}").register(parser)
        parsers.append((summary, parser))
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
                parsers[-1:] = [(summaries[name], each) for name, each in action.choices.items()]
    for summary, parser in parsers:
        rows: list[Row] = []
        for action in parser._actions:
            if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
                continue
            names = action.option_strings or [str(action.metavar or action.dest)]
            metavar = action.metavar if isinstance(action.metavar, str) else None
            if action.choices:
                metavar = "|".join(map(str, action.choices))
            value = f" {metavar or action.dest.upper()}" if action.option_strings and action.nargs != 0 else ""
            rows.append([code(f"{name}{value}" for name in names), action.help or ""])
        parts += [f"### {parser.prog}", f"{summary[0].upper()}{summary[1:]}.", table(["", ""], rows)]
    return "\n\n".join(parts)


def tile_variants() -> str:
    rows = [
        (
            ", ".join(code([each]) for each in variant.primitives[:4])
            + (" ..." if len(variant.primitives) > 4 else ""),
            code([variant.name]),
            str(variant.priority),
            variant.summary,
            "; ".join(predicate.words for predicate in variant.predicates),
        )
        for variant in tile_registry.variants()
    ]
    return table(("primitives", "variant", "priority", "what it does", "what it needs"), rows)


def tile_primitives() -> str:
    rows = [
        (
            code([row.name]),
            code([f"({', '.join(row.parameters)})"]),
            row.summary or f"needs {row.needs}",
            row.legal if row.formula is not None else "",
            code(v.name for v in tile_registry.variants_of(row.name)),
        )
        for row in tile_ops.TABLE.values()
    ]
    return table(("primitive", "parameters", "meaning", "computes in", "variants"), rows)


def tile_program() -> str:
    """The text of a whole kernel, below its docstring."""
    text = (ROOT / "examples" / "tile" / "root_mean_square.py").read_text(encoding="utf-8")
    return f"```python\n{text.split(chr(34) * 3, 2)[2].strip()}\n```"


TABLES: dict[str, Callable[[], str]] = {
    "gpu passes": gpu_passes,
    "cpu passes": cpu_passes,
    "tile cpu passes": tile_cpu_passes,
    "pass contracts": contracts,
    "op rows": op_rows,
    "opcodes": opcodes,
    "accuracy": accuracy,
    "edge values": edge_values,
    "mode differences": mode_differences,
    "atomic additions": atomic_adds,
    "modes kept": modes_kept,
    "left open": left_open,
    "measured accuracy": measured_accuracy,
    "devices": devices,
    "error codes": error_codes,
    "commands": command_options,
    "tile program": tile_program,
    "tile variants": tile_variants,
    "tile primitives": tile_primitives,
    "tile kernels": lambda: table(*tile_kernels.kernels()),
    "tile kernel variants": lambda: table(*tile_kernels.variants()),
    "own pass": own_pass,
    "staged tiles": lambda: table(*tile_kernels.staged_tiles()),
}

# ------------------------------------------------------------------------------------------------------------ refresh
_TABLE = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def refreshed(text: str) -> str:
    """A page with its tables and outputs as the code gives them now."""
    text = _TABLE.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n\n{match[3]}", text)
    return _CONSOLE.sub(lambda match: f"```console\n{_console(match[1])}```", text)


def _console(block: str) -> str:
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{_output(line.removeprefix('$ '))}" for line in commands)


def _output(command: str) -> str:
    """What a warpsmith command prints, on either stream, run in the root of the project."""
    program, *words = shlex.split(command)
    if program != "warpsmith":
        raise SystemExit(f"a console block can only show warpsmith commands: {command}")
    stream = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        main(words)
    return stream.getvalue()


def refresh(check: bool) -> int:
    """Rewrite the pages that have changed, or only name them; 1 when `check` finds one."""
    stale = False
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = refreshed(text)
        if new == text:
            continue
        stale = True
        print(f"{page.relative_to(ROOT)}: {'is stale' if check else 'rewritten'}")
        if not check:
            page.write_text(new, encoding="utf-8")
    if stale and check:
        print("run: python docs/generate.py")
    return int(stale and check)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=ast.get_docstring(ast.parse(Path(__file__).read_text(encoding="utf-8")))
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 if something would change")
    os.environ.setdefault("COLUMNS", "120")
    sys.exit(refresh(parser.parse_args().check))
