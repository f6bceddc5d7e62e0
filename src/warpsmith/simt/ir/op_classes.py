"""IR ops for counters and messages: the class of instruction that an op is, and its place in the code."""

from __future__ import annotations

from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import FloatType, element_type
from warpsmith.simt.core.results import Site

__all__ = ["class_of", "site_of"]

_LOADS = """tensor.extract memref.load vector.transfer_read vector.load vector.maskedload vector.gather llvm.load
    xla_gpu.predicated_extract llvm.intr.masked.load llvm.intr.masked.gather nvgpu.ldmatrix"""
_STORES = """tensor.insert memref.store vector.transfer_write vector.store vector.maskedstore llvm.store
    xla_gpu.predicated_insert llvm.intr.masked.store nvgpu.stmatrix"""
_ATOMICS = "xla_gpu.atomic_rmw xla_gpu.compare_exchange memref.atomic_rmw llvm.atomicrmw llvm.cmpxchg"
_CLASSES = {
    **dict.fromkeys(_LOADS.split(), "load"),
    **dict.fromkeys(_STORES.split(), "store"),
    **dict.fromkeys(_ATOMICS.split(), "atomic"),
    **dict.fromkeys(
        "gpu.barrier xla_gpu.sync_threads nvvm.barrier0 nvvm.barrier nvvm.bar.warp.sync".split(), "barrier"
    ),
    **dict.fromkeys("nvvm.cp.async.commit.group nvvm.cp.async.wait.group".split(), "barrier"),
    **dict.fromkeys("gpu.shuffle xla_gpu.shuffle_reduce nvvm.shfl.sync nvvm.elect.sync".split(), "warp"),
    "nvgpu.device_async_copy": "copy",
    "nvgpu.mma.sync": "matrix",
    **dict.fromkeys("arith.cmpi arith.cmpf arith.select llvm.icmp llvm.fcmp llvm.select".split(), "compare"),
    **dict.fromkeys("xla_gpu.apply_indexing llvm.getelementptr".split(), "address"),
    **dict.fromkeys(
        "arith.constant llvm.mlir.constant llvm.mlir.poison llvm.mlir.zero llvm.mlir.addressof".split(), ""
    ),
}
_CONVERSIONS = frozenset(
    "extf truncf extsi extui trunci sitofp uitofp fptosi fptoui index_cast index_castui bitcast "
    "fpext fptrunc sext zext trunc".split()
)
_BY_DIALECT = {"arith": "integer", "llvm": "integer", "math": "approximate", "scf": "control", "vector": "move"}


def class_of(op: Operation) -> str:
    """The class of an op's instruction, as in PTX; "" for what is none."""
    found = _CLASSES.get(op.name)
    if found is not None:
        return found
    dialect, _, name = op.name.partition(".")
    if name in _CONVERSIONS:
        return "convert"
    kind = _BY_DIALECT.get(dialect, "")
    if kind == "integer" and op.results and isinstance(element_type(op.results[0].type), FloatType):
        return "float"
    return kind


def site_of(op: Operation) -> Site:
    """An op's place, for findings and counters."""
    location = op.location
    return Site(op.name, str(op).strip().split("\n", 1)[0], 0, location.names, location.file, location.line)
