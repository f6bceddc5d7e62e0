"""A sample of each registered op, in MLIR's own pretty text.

`samples/upstream.mlir`, `samples/ours.mlir` and `samples/tile.mlir` are written by hand; the samples of same-type
arithmetic and of casts, which all look alike, are made here from the rows.
"""

from __future__ import annotations

from pathlib import Path

from warpsmith.ir.core.ssa import REGISTRY
from warpsmith.ir.dialects import forms
from warpsmith.ir.text.parser import parse_module

_SAMPLES = Path(__file__).parent / "samples"
_FLOAT = "%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %u: vector<4xf32>"
_INT = "%x: i32, %y: i32, %z: i32, %v: vector<4xi32>, %w: vector<4xi32>, %i: index, %j: index"
_SCALARS = "%x: f32, %y: f32, %z: f32, %i: i32, %j: i32"

_BY_HAND = {"llvm.intr.ctpop", "llvm.intr.ctlz", "llvm.intr.cttz", "llvm.intr.fptosi.sat"}
_CASTS = {
    "arith.bitcast": ("f32", "i32"),
    "arith.extf": ("bf16", "f32"),
    "arith.extsi": ("i8", "i32"),
    "arith.extui": ("i1", "i32"),
    "arith.fptosi": ("f32", "i32"),
    "arith.fptoui": ("f32", "i8"),
    "arith.sitofp": ("i32", "f32"),
    "arith.uitofp": ("i1", "f32"),
    "arith.truncf": ("f32", "bf16"),
    "arith.trunci": ("i32", "i1"),
    "arith.index_cast": ("i32", "index"),
    "arith.index_castui": ("index", "i32"),
    "llvm.fpext": ("bf16", "f32"),
    "llvm.fptrunc": ("f32", "bf16"),
    "llvm.sext": ("i8", "i32"),
    "llvm.zext": ("i8", "i32"),
    "llvm.trunc": ("i32", "i8"),
    "llvm.sitofp": ("i32", "f32"),
    "llvm.uitofp": ("i32", "f32"),
    "llvm.fptosi": ("f32", "i32"),
    "llvm.fptoui": ("f32", "i32"),
    "llvm.bitcast": ("f32", "i32"),
    "llvm.ptrtoint": ("!llvm.ptr", "i64"),
    "llvm.inttoptr": ("i64", "!llvm.ptr"),
    "llvm.addrspacecast": ("!llvm.ptr<3>", "!llvm.ptr"),
}
_LLVM_INTEGER = set("add sub mul sdiv udiv srem urem and or xor shl lshr ashr".split())
_INT_INTRINSICS = {"llvm.intr.smax", "llvm.intr.smin", "llvm.intr.umax", "llvm.intr.umin"}


def _vectorised(scalar: str) -> str:
    return f"vector<4x{scalar}>"


def _regular() -> dict[str, tuple[str, str]]:
    """Ops whose sample follows from their row: same-type arithmetic and casts."""
    found: dict[str, tuple[str, str]] = {}
    for name, row in REGISTRY.items():
        count = len(row.operands)
        if name in _CASTS:
            source, target = _CASTS[name]
            body = f"%0 = {name} %a : {source} to {target}"
            args = f"%a: {source}"
            if "ptr" not in source + target:
                args += f", %b: {_vectorised(source)}"
                body += f"\n%1 = {name} %b : {_vectorised(source)} to {_vectorised(target)}"
            found[name] = (args, body)
        elif row.form is forms.SAME and row.dialect in ("arith", "math"):
            floats = (row.dialect == "math" and not name.startswith(("math.absi", "math.ct"))) or name.endswith("f")
            type, args = ("f32", _FLOAT) if floats else ("i32", _INT)
            results = "%0, %1" if len(row.results) == 2 else "%0"
            vector_results = "%2, %3" if len(row.results) == 2 else "%2"
            body = f"{results} = {name} {', '.join(['%x', '%y', '%z'][:count])} : {type}\n"
            body += f"{vector_results} = {name} {', '.join(['%v', '%w', '%u'][:count])} : vector<4x{type}>"
            if "fastmath" in row.optional:
                body += f"\n%4 = {name} {', '.join(['%x', '%y', '%z'][:count])} fastmath<contract> : f32"
            if "overflowFlags" in row.optional:
                body += f"\n%4 = {name} %i, %j overflow<nsw, nuw> {{xla.range = [0 : index, 9 : index]}} : index"
            found[name] = (args, body)
        elif row.form is forms.SAME and row.dialect == "llvm":
            integer = name.removeprefix("llvm.") in _LLVM_INTEGER
            a, b, type = ("%i", "%j", "i32") if integer else ("%x", "%y", "f32")
            found[name] = (_SCALARS, f"%0 = {name} {', '.join([a, b][:count])} : {type}")
        elif row.form is forms.INTRINSIC and name not in _BY_HAND:
            integer = name in _INT_INTRINSICS
            values = ["%i", "%j"] if integer else ["%x", "%y", "%z"]
            type = "i32" if integer else "f32"
            found[name] = (
                _SCALARS,
                f"%0 = {name}({', '.join(values[:count])}) : ({', '.join([type] * count)}) -> {type}",
            )
        elif name.startswith("nvvm.read.ptx"):
            found[name] = ("", f"%0 = {name} : i32")
    return found


def upstream_text() -> str:
    """A module of ops that MLIR has as well."""
    text = (_SAMPLES / "upstream.mlir").read_text()
    for name, (args, body) in _regular().items():
        text += f"func.func @{name}({args}) {{\n{body}\nreturn\n}}\n"
    return text


def our_text() -> str:
    """A module of ops that MLIR lacks."""
    return (_SAMPLES / "ours.mlir").read_text()


def tile_text() -> str:
    """A module of the ops of tile programs, which have the generic form alone."""
    return (_SAMPLES / "tile.mlir").read_text()


def covered() -> set[str]:
    """The ops that have a sample."""
    return {op.name for text in (upstream_text(), our_text(), tile_text()) for op in parse_module(text).walk()}
