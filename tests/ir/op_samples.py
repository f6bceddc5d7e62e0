"""One sample of each registered op, in MLIR's own pretty text.

`UPSTREAM`: ops of MLIR's dialects, written so that `mlir-opt` reads them too.  `OURS`: ops of xla_gpu.
An entry is (arguments, body); the body becomes a function's, with a `return` added.
"""

from __future__ import annotations

from warpsmith.ir import dialects
from warpsmith.ir.core import REGISTRY

assert dialects.__all__  # they register the ops

_FLOAT = "%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %u: vector<4xf32>"
_INT = "%x: i32, %y: i32, %z: i32, %v: vector<4xi32>, %w: vector<4xi32>, %i: index, %j: index"
_LLVM = (
    "%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, "
    "%p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>"
)
_MEMORY = (
    "%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, "
    "%v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>"
)
_CONTROL = "%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32"

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
        elif row.syntax == "same" and row.dialect in ("arith", "math"):
            floats = row.dialect == "math" and not name.startswith(("math.absi", "math.ct")) or name.endswith("f")
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
        elif row.syntax == "same" and row.dialect == "llvm":
            integer = name.removeprefix("llvm.") in _LLVM_INTEGER
            a, b, type = ("%i", "%j", "i32") if integer else ("%x", "%y", "f32")
            found[name] = (_LLVM, f"%0 = {name} {', '.join([a, b][:count])} : {type}")
        elif row.syntax == "llvm_intr" and name not in UPSTREAM:
            integer = name in _INT_INTRINSICS
            values = ["%i", "%j"] if integer else ["%x", "%y", "%z"]
            type = "i32" if integer else "f32"
            found[name] = (_LLVM, f"%0 = {name}({', '.join(values[:count])}) : ({', '.join([type] * count)}) -> {type}")
        elif name.startswith("nvvm.read.ptx"):
            found[name] = ("", f"%0 = {name} : i32")
    return found


UPSTREAM: dict[str, tuple[str, str]] = {
    "arith.constant": (
        "",
        """%0 = arith.constant 5.000000e-01 : bf16
        %1 = arith.constant true
        %2 = arith.constant -7 : i8
        %3 = arith.constant 3 : index
        %4 = arith.constant dense<0.000000e+00> : vector<4xbf16>
        %5 = arith.constant dense<[1, 2, 3, -4]> : vector<4xi32>
        %6 = arith.constant 0x7F800000 : f32
        %7 = arith.constant -0.0 : f64
        %8 = arith.constant {a.b = "c"} 0x7FC1 : bf16
        %9 = arith.constant dense<[[1.0, 2.5], [-0.0, 0xFF800000]]> : tensor<2x2xf32>
        %10 = arith.constant 0.1 : f32
        %11 = arith.constant 0.12345678901234567 : f64
        %12 = arith.constant dense<[true, false]> : vector<2xi1>
        %13 = arith.constant 1.5 : f8E4M3FN
        %14 = arith.constant dense<(1.0, -2.0)> : tensor<2xcomplex<f32>>
        %15 = arith.constant dense<> : tensor<0xf32>""",
    ),
    "arith.cmpi": (
        _INT,
        "%0 = arith.cmpi slt, %x, %y : i32\n%1 = arith.cmpi uge, %v, %w : vector<4xi32>\n%2 = arith.cmpi ne, %i, %j : index",
    ),
    "arith.cmpf": (
        _FLOAT,
        "%0 = arith.cmpf oge, %x, %y : f32\n%1 = arith.cmpf uno, %v, %w fastmath<nnan,ninf> {k} : vector<4xf32>",
    ),
    "arith.select": (
        _FLOAT + ", %c: i1, %m: vector<4xi1>",
        "%0 = arith.select %c, %x, %y : f32\n%1 = arith.select %m, %v, %w : vector<4xi1>, vector<4xf32>\n%2 = arith.select %c, %v, %w : vector<4xf32>",
    ),
    "builtin.unrealized_conversion_cast": (
        "%a: i32, %b: f32",
        "%0 = builtin.unrealized_conversion_cast %a : i32 to f32\n%1:2 = builtin.unrealized_conversion_cast %a, %b : i32, f32 to f32, i32",
    ),
    "func.call": ("%x: f32", "%0 = func.call @callee(%x) : (f32) -> f32"),
    "scf.for": (
        _CONTROL,
        """scf.for %a = %i to %n step %s {
        }
        %0:2 = scf.for %a = %i to %n step %s iter_args(%acc = %x, %b = %t) -> (f32, tensor<4xf32>) {
          %1 = arith.addf %acc, %acc : f32
          scf.yield %1, %b : f32, tensor<4xf32>
        } {some.attr = 1 : i64}
        scf.for %a = %k to %k step %k : i32 {
          func.call @effect() : () -> ()
        }""",
    ),
    "scf.yield": (_CONTROL, "%0 = scf.if %c -> (f32) {\n scf.yield %x : f32\n} else {\n scf.yield %x : f32\n}"),
    "scf.if": (
        _CONTROL,
        """scf.if %c {
          func.call @effect() : () -> ()
        }
        %0:2 = scf.if %c -> (f32, index) {
          scf.yield %x, %i : f32, index
        } else {
          scf.yield %x, %n : f32, index
        }
        scf.if %c {
        } else {
          func.call @effect() : () -> ()
        } {b = 2 : i32}""",
    ),
    "scf.while": (
        _CONTROL,
        """%0:2 = scf.while (%a = %i, %b = %x) : (index, f32) -> (f32, index) {
          %1 = arith.cmpi slt, %a, %n : index
          scf.condition(%1) %b, %a : f32, index
        } do {
        ^bb0(%b: f32, %a: index):
          scf.yield %a, %b : index, f32
        }
        scf.while : () -> () {
          scf.condition(%c)
        } do {
          scf.yield
        }""",
    ),
    "scf.condition": (_CONTROL, "scf.while : () -> () {\n scf.condition(%c)\n} do {\n scf.yield\n}"),
    "scf.index_switch": (
        _CONTROL,
        """%0 = scf.index_switch %i -> f32
        case 2 {
          scf.yield %x : f32
        }
        case -5 {
          scf.yield %x : f32
        }
        default {
          scf.yield %x : f32
        }
        scf.index_switch %i
        default {
        }""",
    ),
    "cf.br": (_CONTROL, "cf.br ^bb1(%x, %i : f32, index)\n^bb1(%a: f32, %b: index):"),
    "cf.cond_br": (
        _CONTROL,
        """cf.cond_br %c, ^bb1(%x : f32), ^bb2
        ^bb1(%a: f32):
          cf.br ^bb2
        ^bb2:
          cf.cond_br %c, ^bb2, ^bb3
        ^bb3:""",
    ),
    "tensor.extract": (_MEMORY, "%0 = tensor.extract %t[%i, %j] : tensor<4x8xf32>"),
    "tensor.insert": (_MEMORY, "%0 = tensor.insert %x into %t[%i, %j] : tensor<4x8xf32>"),
    "tensor.from_elements": (_MEMORY, "%0 = tensor.from_elements %x, %x : tensor<2xf32>"),
    "memref.load": (
        _MEMORY,
        "%0 = memref.load %m[%i] {nontemporal = true} : memref<32xf32>\n%1 = memref.load %g[%i] : memref<16xbf16, 1>",
    ),
    "memref.store": (_MEMORY, "memref.store %x, %m[%i] {alignment = 16 : i64} : memref<32xf32>"),
    "memref.alloca": (_MEMORY, "%0 = memref.alloca() {alignment = 16 : i64} : memref<8xf32>"),
    "memref.get_global": ("", "%0 = memref.get_global @table : memref<4xf32>"),
    "vector.transfer_read": (
        _MEMORY,
        """%0 = vector.transfer_read %t1[%i], %x {in_bounds = [true]} : tensor<32xf32>, vector<4xf32>
        %1 = vector.transfer_read %m[%i], %x : memref<32xf32>, vector<4xf32>
        %2 = vector.transfer_read %t[%i, %j], %x, %mask {in_bounds = [true]} : tensor<4x8xf32>, vector<4xf32>
        %3 = vector.transfer_read %t[%i, %j], %x {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>} : tensor<4x8xf32>, vector<4xf32>""",
    ),
    "vector.transfer_write": (
        _MEMORY,
        """%0 = vector.transfer_write %v, %t1[%i] {in_bounds = [true]} : vector<4xf32>, tensor<32xf32>
        vector.transfer_write %v, %m[%i], %mask {in_bounds = [true]} : vector<4xf32>, memref<32xf32>""",
    ),
    "vector.extract": (
        _MEMORY,
        "%0 = vector.extract %v[%i] : f32 from vector<4xf32>\n%1 = vector.extract %v[2] : f32 from vector<4xf32>",
    ),
    "vector.insert": (
        _MEMORY,
        "%0 = vector.insert %x, %v [%i] : f32 into vector<4xf32>\n%1 = vector.insert %x, %v [0] : f32 into vector<4xf32>",
    ),
    "vector.load": (_MEMORY, "%0 = vector.load %m[%i] {nontemporal = true} : memref<32xf32>, vector<4xf32>"),
    "vector.store": (_MEMORY, "vector.store %v, %m[%i] {alignment = 32 : i64} : memref<32xf32>, vector<4xf32>"),
    "vector.maskedload": (
        _MEMORY,
        "%0 = vector.maskedload %m[%i], %mask, %v : memref<32xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>",
    ),
    "vector.maskedstore": (
        _MEMORY,
        "vector.maskedstore %m[%i], %mask, %v : memref<32xf32>, vector<4xi1>, vector<4xf32>",
    ),
    "vector.gather": (
        _MEMORY,
        "%0 = vector.gather %m[%i] [%vi], %mask, %v : memref<32xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>",
    ),
    "vector.broadcast": (_MEMORY, "%0 = vector.broadcast %x : f32 to vector<4xf32>"),
    "vector.step": ("", "%0 = vector.step : vector<4xindex>"),
    "vector.shuffle": (_MEMORY, "%0 = vector.shuffle %v, %w [0, 4, 1, 5, 2, 6, 3, 7] : vector<4xf32>, vector<4xf32>"),
    "vector.bitcast": (_MEMORY, "%0 = vector.bitcast %v : vector<4xf32> to vector<8xbf16>"),
    "vector.create_mask": (_MEMORY, "%0 = vector.create_mask %i : vector<8xi1>"),
    "vector.from_elements": (_MEMORY, "%0 = vector.from_elements %x, %x : vector<2xf32>"),
    "vector.extract_strided_slice": (
        _MEMORY,
        "%0 = vector.extract_strided_slice %v {offsets = [2], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>",
    ),
    "vector.insert_strided_slice": (
        _MEMORY,
        "%0 = vector.insert_strided_slice %two, %v {offsets = [1], strides = [1]} : vector<2xf32> into vector<4xf32>",
    ),
    "gpu.thread_id": (
        "",
        "%0 = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}\n%1 = gpu.thread_id  y upper_bound 64",
    ),
    "gpu.block_id": ("", "%0 = gpu.block_id  z"),
    "gpu.block_dim": ("", "%0 = gpu.block_dim  x"),
    "gpu.grid_dim": ("", "%0 = gpu.grid_dim  x"),
    "gpu.lane_id": ("", "%0 = gpu.lane_id\n%1 = gpu.lane_id upper_bound 32 {k}"),
    "gpu.barrier": ("", "gpu.barrier"),
    "gpu.shuffle": (
        _INT,
        "%0, %1 = gpu.shuffle xor %x, %y, %z : i32\n%shuffleResult, %valid = gpu.shuffle down %x, %y, %z : i32",
    ),
    "llvm.call": (_LLVM, "%0 = llvm.call @__nv_tanhf(%x) : (f32) -> f32\nllvm.call @nothing() : () -> ()"),
    "llvm.mlir.constant": (
        "",
        "%0 = llvm.mlir.constant(1 : i32) : i32\n%1 = llvm.mlir.constant(dense<0.000000e+00> : vector<4xf32>) : vector<4xf32>",
    ),
    "llvm.mlir.poison": ("", "%0 = llvm.mlir.poison : vector<4xf32>"),
    "llvm.mlir.zero": ("", "%0 = llvm.mlir.zero : !llvm.ptr"),
    "llvm.mlir.addressof": ("", "%0 = llvm.mlir.addressof @shared : !llvm.ptr<3>"),
    "llvm.alloca": (_LLVM, "%0 = llvm.alloca %i x f32 {alignment = 8 : i64} : (i32) -> !llvm.ptr"),
    "llvm.getelementptr": (
        _LLVM,
        """%0 = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
        %1 = llvm.getelementptr %q[0, 3] : (!llvm.ptr<3>) -> !llvm.ptr<3>, !llvm.array<8 x f32>
        %2 = llvm.getelementptr inbounds|nuw %p[%l] : (!llvm.ptr, i64) -> !llvm.ptr, i8""",
    ),
    "llvm.load": (
        _LLVM,
        "%0 = llvm.load %p invariant : !llvm.ptr -> vector<4xbf16>\n%1 = llvm.load %q {alignment = 4 : i64, nontemporal} : !llvm.ptr<3> -> f32",
    ),
    "llvm.store": (_LLVM, "llvm.store %x, %p {alignment = 4 : i64} : f32, !llvm.ptr"),
    "llvm.extractelement": (_LLVM, "%0 = llvm.extractelement %v[%i : i32] : vector<4xf32>"),
    "llvm.insertelement": (_LLVM, "%0 = llvm.insertelement %x, %v[%l : i64] : vector<4xf32>"),
    "llvm.shufflevector": (_LLVM, "%0 = llvm.shufflevector %v, %w [0, 4, 1, -1] : vector<4xf32>"),
    "llvm.extractvalue": (
        "%s: !llvm.struct<(f32, array<2 x i1>)>",
        "%0 = llvm.extractvalue %s[1, 0] : !llvm.struct<(f32, array<2 x i1>)>",
    ),
    "llvm.insertvalue": (
        "%x: f32, %s: !llvm.struct<(f32, i1)>",
        "%0 = llvm.insertvalue %x, %s[0] : !llvm.struct<(f32, i1)>",
    ),
    "llvm.icmp": (_LLVM, '%0 = llvm.icmp "slt" %i, %j : i32\n%1 = llvm.icmp "ne" %vi, %vi : vector<4xi32>'),
    "llvm.fcmp": (
        _LLVM,
        '%0 = llvm.fcmp "oeq" %x, %y : f32\n%1 = llvm.fcmp "uno" %v, %w {fastmathFlags = #llvm.fastmath<nnan>} : vector<4xf32>',
    ),
    "llvm.select": (
        _LLVM,
        "%0 = llvm.select %c, %x, %y : i1, f32\n%1 = llvm.select %mask, %v, %w : vector<4xi1>, vector<4xf32>",
    ),
    "llvm.intr.ctpop": (_LLVM, "%0 = llvm.intr.ctpop(%i) : (i32) -> i32"),
    "llvm.intr.ctlz": (_LLVM, '%0 = "llvm.intr.ctlz"(%i) {is_zero_poison = false} : (i32) -> i32'),
    "llvm.intr.cttz": (_LLVM, '%0 = "llvm.intr.cttz"(%i) {is_zero_poison = false} : (i32) -> i32'),
    "llvm.intr.fptosi.sat": (_LLVM, "%0 = llvm.intr.fptosi.sat(%x) : (f32) -> i32"),
    "llvm.intr.masked.load": (
        _LLVM,
        "%0 = llvm.intr.masked.load %p, %mask, %v {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>",
    ),
    "llvm.intr.masked.store": (
        _LLVM,
        "llvm.intr.masked.store %v, %p, %mask {alignment = 4 : i32} : vector<4xf32>, vector<4xi1> into !llvm.ptr",
    ),
    "llvm.intr.masked.gather": (
        _LLVM,
        "%0 = llvm.intr.masked.gather %ptrs, %mask, %v {alignment = 4 : i32} : (vector<4x!llvm.ptr>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>",
    ),
    "nvvm.barrier0": ("", "nvvm.barrier0"),
    "nvvm.shfl.sync": (_LLVM, "%0 = nvvm.shfl.sync bfly %i, %x, %j, %i : f32 -> f32"),
    "nvvm.read.ptx.sreg.laneid": ("", "%0 = nvvm.read.ptx.sreg.laneid : i32"),
}
UPSTREAM |= _regular()

TOP_LEVEL = """
func.func private @callee(f32) -> f32
func.func private @effect()
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global @other : memref<2xi8>
memref.global @buffer : memref<8xi8, 3> = uninitialized {alignment = 16 : i64}
llvm.func @__nv_tanhf(f32) -> f32
llvm.func @nothing()
llvm.mlir.global internal @shared() {addr_space = 3 : i32} : !llvm.array<64 x f32>
llvm.mlir.global private constant @numbers(dense<[1.0, 2.0]> : tensor<2xf32>) {addr_space = 0 : i32} : !llvm.array<2 x f32>
llvm.func internal @body(%p: !llvm.ptr {llvm.align = 16 : i64}, %n: i32) -> i32 attributes {passthrough = ["noinline"]} {
  %0 = llvm.mlir.constant(0 : i32) : i32
  llvm.br ^bb1(%0 : i32)
^bb1(%i: i32):
  %1 = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %1 weights([3, 1]), ^bb2, ^bb3
^bb2:
  %2 = llvm.add %i, %n overflow<nsw> : i32
  llvm.br ^bb1(%2 : i32)
^bb3:
  llvm.return %i : i32
}
llvm.func @stop() {
  llvm.unreachable
}
func.func @named(%a: tensor<4xf32> {llvm.align = 16 : index, xla.slice_index = 0 : index}, %b: index) -> (tensor<4xf32> {x.y}, index)
    attributes {no_compute, warpsmith.grid = array<i64: 1, 2, 3>, xla.entry} {
  return %a, %b : tensor<4xf32>, index
}
"""
"""Ops that live at a module's top level, and what the samples call."""

TOP_LEVEL_OPS = {
    "builtin.module", "func.func", "func.return", "memref.global", "llvm.func", "llvm.mlir.global", "llvm.br", "llvm.cond_br",
    "llvm.return", "llvm.unreachable",
}  # fmt: skip

_OURS = "%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>"
OURS: dict[str, tuple[str, str]] = {
    "xla_gpu.workgroup_id": ("", "%0 = xla_gpu.workgroup_id  x {xla.range = [0 : index, 7 : index]}"),
    "xla_gpu.loop": (
        _OURS,
        """%0 = xla_gpu.loop (%i, %j)[%a, %b] -> (%r, %q) in #map iter_args(%iter = %t) -> (tensor<4x8xf32>) {
          %1 = tensor.insert %x into %iter[%r, %q] : tensor<4x8xf32>
          xla_gpu.yield %1 : tensor<4x8xf32>
        } {k = 1 : i64}""",
    ),
    "xla_gpu.yield": (
        _OURS,
        """%0:2 = xla_gpu.loop (%i, %j)[%a, %b] -> (%r, %q) in #map iter_args(%p = %t, %o = %x) -> (tensor<4x8xf32>, f32) {
          xla_gpu.yield %p, %o : tensor<4x8xf32>, f32
        }""",
    ),
    "xla_gpu.pure_call": (_OURS, "%0 = xla_gpu.pure_call @callee(%x) {noinline} : (f32) -> f32"),
    "xla_gpu.apply_indexing": (
        _OURS,
        "%0:2 = xla_gpu.apply_indexing #map1(%i, %j)[%i]\n%1 = xla_gpu.apply_indexing #map2[%j]\n%2 = xla_gpu.apply_indexing #map3()",
    ),
    "xla_gpu.atomic_rmw": (
        _OURS,
        """%0 = xla_gpu.atomic_rmw %t[%i, %j] : tensor<4x8xf32> {
        ^bb0(%current: f32):
          %1 = arith.addf %current, %x : f32
          xla_gpu.yield %1 : f32
        }""",
    ),
    "xla_gpu.allocate_shared": ("", "%shmem = xla_gpu.allocate_shared : tensor<32x1x33xf32>"),
    "xla_gpu.sync_threads": (
        _OURS,
        "%0 = xla_gpu.sync_threads %t : tensor<4x8xf32>\n%1:2 = xla_gpu.sync_threads %0, %s : tensor<4x8xf32>, tensor<32xf32>",
    ),
    "xla_gpu.predicated_insert": (_OURS, "%0 = xla_gpu.predicated_insert %x into %t[%i, %j] if %c : tensor<4x8xf32>"),
    "xla_gpu.predicated_extract": (_OURS, "%0 = xla_gpu.predicated_extract %t[%i, %j] if %c else %x : tensor<4x8xf32>"),
    "xla_cpu.lookup": (
        "%m: memref<256xf32>, %b: i8, %v: vector<16xi8>",
        "%0 = xla_cpu.lookup %m[%b] : memref<256xf32>, i8 -> f32\n%1 = xla_cpu.lookup %m[%v] : memref<256xf32>, vector<16xi8> -> vector<16xf32>",
    ),
    "xla_gpu.shuffle_reduce": (_OURS, "%0:2 = xla_gpu.shuffle_reduce(%x, %k) to 16 combiner=@combine {k} : f32, i32"),
}
_MAPS = """
#map = #xla_gpu.indexing_map<"(d0, d1)[s0, s1] -> (d0 + s0, d1 * 2 + s1), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2], s1 in [0, 1]">
#map1 = #xla_gpu.indexing_map<"(d0, d1)[s0] -> (d0 floordiv 2, d1 + s0), domain: d0 in [0, 7], d1 in [0, 3], s0 in [0, 2]">
#map2 = #xla_gpu.indexing_map<"()[s0] -> (s0 mod 5), domain: s0 in [0, 9]">
#map3 = #xla_gpu.indexing_map<"() -> (7)">
func.func private @callee(f32) -> f32
func.func private @combine(f32, i32, f32, i32) -> (f32, i32)
"""


def module_of(samples: dict[str, tuple[str, str]], head: str) -> str:
    """A module with one function a sample."""
    functions = [
        f"func.func @sample{i}({args}) {{\n{body}\nreturn\n}}" for i, (args, body) in enumerate(samples.values())
    ]
    return "\n".join([head, *functions])


NOT_IN_MLIR = {"llvm.intr.fptosi.sat"}
"""Ops that we have in an upstream dialect and MLIR lacks."""


def upstream_text() -> str:
    return module_of({k: v for k, v in UPSTREAM.items() if k not in NOT_IN_MLIR}, TOP_LEVEL)


def our_text() -> str:
    return module_of(OURS | {k: UPSTREAM[k] for k in NOT_IN_MLIR}, _MAPS)


def covered() -> set[str]:
    return set(UPSTREAM) | set(OURS) | TOP_LEVEL_OPS
