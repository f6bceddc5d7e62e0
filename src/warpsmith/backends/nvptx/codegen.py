"""Text LLVM IR in; PTX text for one GPU architecture out.

The arithmetic is IEEE: LLVM's defaults on this target are `div.rn`, `sqrt.rn`, no flush to zero and no contraction (a
multiply and an add come out as `mul.rn` and `add.rn`, which `ptxas` doesn't fuse either), so no global option is set;
the `xla` numerics mode asks for `div.full` by the intrinsic `llvm.nvvm.div.full`.  Two lowerings are *not* exact and
must be expanded before LLVM: `frem` (a division, a truncation and an fma) and `llvm.fmuladd` (an fma).

LLVM 22 dies on much: measured for f16, bf16, f32 and f64 on sm_80, sm_90 and sm_100, each of `exp exp10 log log2
log10 sin cos tan tanh sinh cosh asin acos atan pow atan2` ends the process (only f16, bf16 and f32 `exp2` have an
instruction), `canonicalize` on bf16 and `cmpxchg` on i128 do so too, and an unknown name comes out as a call of an
external function. So `NVPTX_INTRINSICS` lists what was tried; a module that declares anything else is compiled in a
worker, and PTX that calls a function which it doesn't define is refused.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.llvm import isolate as llvm_isolate
from warpsmith.backends.llvm.targets import all_targets
from warpsmith.backends.nvptx import libdevice
from warpsmith.errors import InternalError, LoweringError, UnknownTarget

__all__ = [
    "DATA_LAYOUT",
    "NVPTX_INTRINSICS",
    "TRIPLE",
    "PtxBatch",
    "ptx_code",
    "ptx_from_llvm",
    "ptx_in_process",
    "ptx_version_of",
]

TRIPLE = "nvptx64-nvidia-cuda"
DATA_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

_ANY_TYPE = """
    fma fabs sqrt floor ceil trunc rint nearbyint roundeven round copysign minimum maximum minnum maxnum minimumnum
    maximumnum is.fpclass fptosi.sat fptoui.sat
    abs smax smin umax umin ctpop ctlz cttz bswap bitreverse fshl fshr sadd.sat uadd.sat ssub.sat usub.sat
    sadd.with.overflow uadd.with.overflow ssub.with.overflow usub.with.overflow smul.with.overflow umul.with.overflow
    memcpy memmove memset lifetime.start lifetime.end assume expect experimental.noalias.scope.decl dbg trap
    exp2.f32 exp2.f16 exp2.bf16 canonicalize.f32 canonicalize.f64 canonicalize.f16
"""
_NVVM = """
    read.ptx.sreg barrier0 barrier.cta.sync.aligned.all barrier.cta.sync.aligned.count bar.warp.sync
    membar.gl membar.cta
    shfl.sync.down.i32 shfl.sync.down.f32 shfl.sync.bfly.i32 shfl.sync.bfly.f32 shfl.sync.idx.i32 shfl.sync.idx.f32
    shfl.sync.up.i32 shfl.sync.up.f32 vote.ballot.sync redux.sync.add match.any.sync.i32 activemask nanosleep
    div.full ex2.approx.f ex2.approx.ftz.f lg2.approx.f rsqrt.approx.f sqrt.approx.f rcp.rn.f sqrt.rn.f sin.approx.f
    cos.approx.f add.rn.f mul.rn.f fma.rn.f fmax.nan.f fmin.nan.bf16 f2bf16.rn ff2bf16x2.rn
    prmt fshl.clamp mulhi.i mulhi.ui mul24.i ldmatrix.sync.aligned.m8n8
"""
_SINCE = {
    80: """cp.async.ca.shared.global cp.async.cg.shared.global cp.async.commit.group cp.async.wait.group
           cp.async.wait.all mma.m16n8k16.row.col""",
    90: "elect.sync stmatrix.sync.aligned.m8n8",
}

NVPTX_INTRINSICS: frozenset[str] = frozenset(
    [f"llvm.{name}" for name in _ANY_TYPE.split()] + [f"llvm.nvvm.{name}" for name in _NVVM.split()]
)
"""Intrinsics, without their type suffix where all types work, that LLVM lowers on every architecture from sm_80 on."""

_LEAST_PTX = {75: 63, 80: 70, 86: 71, 87: 74, 89: 78, 90: 78, 100: 86, 101: 86, 103: 88, 120: 87, 121: 88}
"""The least PTX version (times ten) that knows an architecture; LLVM aborts below it."""

_DEFAULT_PTX = {75: 70, 80: 78, 86: 78, 87: 78, 89: 78, 90: 80, 100: 88, 101: 88, 103: 88, 120: 88, 121: 88}
"""What we print: the least version with every instruction that we use (bf16 arithmetic 7.8, 256-bit loads 8.8)."""

_FEW_PARAMETERS = 4352 // 8
_MANY_PARAMETERS_PTX = 81
"""How many pointers a kernel may take in any PTX version, and the version from which on it is 4,095."""

_NEWEST_PTX = 90  # LLVM falls back to its default, silently, on a version that it doesn't know
_SM = re.compile(r"^sm_(\d+)([af]?)$")
_KERNEL = re.compile(r"^define ptx_kernel void [^(]*\((.*)$", re.MULTILINE)
_EXTERNAL = re.compile(r"^\s*\.extern \.func\s+(?:\([^)]*\)\s*)?([\w.$]+)", re.MULTILINE)
_PROVIDED = frozenset({"vprintf", "__assertfail", "malloc", "free"})  # the driver's own


def _architecture(sm: str) -> tuple[int, str]:
    match = _SM.match(sm)
    if match is None or int(match[1]) not in _LEAST_PTX:
        known = ", ".join(f"sm_{number}" for number in _LEAST_PTX)
        raise UnknownTarget(f"no GPU architecture '{sm}'", help=f"known: {known}")
    return int(match[1]), match[2]


def ptx_version_of(sm: str, ptx_version: int | None = None) -> int:
    """The PTX version, times ten, to print for `sm`; `UnknownTarget` when the one asked for doesn't fit."""
    number, suffix = _architecture(sm)
    least = max(_LEAST_PTX[number], 80 if suffix == "a" and number == 90 else 0)
    version = max(_DEFAULT_PTX[number], least) if ptx_version is None else ptx_version
    if not least <= version <= _NEWEST_PTX:
        raise UnknownTarget(
            f"{sm} can't be had in PTX {version / 10}", help=f"ask for {least / 10} to {_NEWEST_PTX / 10}"
        )
    return version


def _version_for(llvm_text: str, sm: str, ptx_version: int | None) -> int:
    """The PTX version for a text: a later one than the usual where a kernel takes many buffers."""
    version = ptx_version_of(sm, ptx_version)
    most = max((line.count("%arg") for line in _KERNEL.findall(llvm_text)), default=0)
    if most <= _FEW_PARAMETERS or version >= _MANY_PARAMETERS_PTX:
        return version
    if ptx_version is not None:
        raise LoweringError(
            f"a kernel with {most} buffers can't be had in PTX {version / 10}: it takes {_FEW_PARAMETERS} at most",
            help=f"ask for PTX {_MANY_PARAMETERS_PTX / 10} or later",
        )
    return _MANY_PARAMETERS_PTX


@functools.lru_cache(maxsize=16)
def _target_machine(sm: str, version: int) -> Any:
    target = all_targets().Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu=sm, features=f"+ptx{version}", opt=3)


def ptx_in_process(llvm_text: str, sm: str, ptx_version: int | None = None) -> str:
    """`ptx_from_llvm` with no guard: LLVM may end this process.  What a worker runs."""
    machine = _target_machine(sm, _version_for(llvm_text, sm, ptx_version))
    llvm = all_targets()
    module = llvm_jit.parse_module(llvm, llvm_text)
    module.triple = TRIPLE
    module.data_layout = DATA_LAYOUT
    functions = libdevice.called(llvm_text)
    if functions:
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        libdevice.link(llvm, module, functions, passes)
    llvm_jit.run_passes(llvm, module, machine)
    return str(machine.emit_assembly(module))


def ptx_code(request: llvm_isolate.Request) -> bytes:
    """`ptx_in_process` as workers call it."""
    version = request.get("ptx_version")
    version = None if version is None else int(version)
    return ptx_in_process(str(request["text"]), str(request["sm"]), version).encode()


def ptx_from_llvm(llvm_text: str, sm: str, ptx_version: int | None = None) -> str:
    """PTX for `sm` ("sm_80", "sm_90a"...); `ptx_version` is times ten (80 means 8.0).

    Raises `UnknownTarget` for an architecture or version that LLVM 22 doesn't know, `LoweringError` when the IR holds
    something that this target can't do, `InternalError` when LLVM refuses the text.
    """
    version = _version_for(llvm_text, sm, ptx_version)
    if _risks(llvm_text, sm):
        ptx = llvm_isolate.run_isolated(ptx_code, llvm_text, sm=sm, ptx_version=version).decode()
    else:
        ptx = ptx_in_process(llvm_text, sm, version)
    return _checked(ptx, sm)


class PtxBatch:
    """Many modules to PTX, in several processes while the caller makes more of them (`llvm_isolate.Batch`)."""

    def __init__(self, sm: str, expected: int, ptx_version: int | None = None) -> None:
        self._sm = sm
        ptx_version_of(sm, ptx_version)
        options: dict[str, str | int | None] = {"sm": sm, "ptx_version": ptx_version}
        self._batch = llvm_isolate.Batch(ptx_code, expected, functools.partial(_risks, sm=sm), options)

    def add(self, llvm_text: str) -> None:
        """One more module's LLVM IR to compile."""
        self._batch.add(llvm_text)

    def results(self) -> list[str]:
        """PTX for each module in order.  Raises what `ptx_from_llvm` raises."""
        return [_checked(data.decode(), self._sm) for data in self._batch.results()]


def _checked(ptx: str, sm: str) -> str:
    missing = [name for name in _EXTERNAL.findall(ptx) if name not in _PROVIDED]
    if missing:
        raise LoweringError(
            f"the PTX calls {', '.join(missing)}, which nothing defines",
            help="expand the op before LLVM, or link libdevice for functions named __nv_*",
        )
    if f".target {sm}" not in ptx:
        raise InternalError(f"LLVM returned text that isn't PTX for {sm}")
    return ptx


_RISKY_TEXT = re.compile(r"\bcmpxchg\b[^\n]*\bi128\b|\batomicrmw\b[^\n]*\bi128\b|\bcall\b[^\n]*\basm\b")


@functools.cache
def _tested(number: int) -> frozenset[str]:
    """The intrinsics that LLVM lowers on an architecture; it dies of a newer one's."""
    newer = (name for since, names in _SINCE.items() if number >= since for name in names.split())
    return NVPTX_INTRINSICS | {f"llvm.nvvm.{name}" for name in newer}


def _risks(llvm_text: str, sm: str) -> bool:
    tested = _tested(_architecture(sm)[0])
    return bool(llvm_jit.untested_intrinsics(llvm_text, tested)) or bool(_RISKY_TEXT.search(llvm_text))
