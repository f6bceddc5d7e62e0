"""Text LLVM IR in; machine code for this computer's CPU, loaded and callable, out.

Three steps, so that each can be cached or moved to another process: `compile_object` (text to a relocatable object),
`load_object` (object to addresses), and the caller's ctypes call.  `optimize_ir` and `assembly` show what is between.

Measured on LLVM 22 (GELU on bf16, every op rounded): parsing 0.6 ms, `sroa + instcombine + simplifycfg` 2.4, code
generation 12, loading 0.4.  LLVM's own O2 adds 10 ms for the same code, because our passes have vectorised, unrolled
and merged already; so its vectorisers and its unroller stay off.  Time grows linearly: 5,000 vector ops in one block
take 75 ms.

What LLVM does wrong and what is done about it:

* an unknown `llvm.*` name passes silently and becomes a missing symbol, and some known ones become calls of the
  platform's libm, whose accuracy is nobody's contract: only `CPU_INTRINSICS` are taken in this process;
* tuning for several CPUs prefers 256-bit registers: `-prefer-256-bit` is always added on x86;
* x86 inline assembly aborts the process unless the assembly parser is registered: it is, with the target;
* missing symbols appear only when the code is loaded: `load_object` names them;
* it has locks, and a child forked while a thread compiles would wait for them forever: a fork waits for the compile.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import os
import re
import struct
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from warpsmith.errors import InternalError, LoweringError, UnknownTarget

__all__ = [
    "CPU_INTRINSICS",
    "KernelFunction",
    "LoadedCode",
    "ObjectCode",
    "assembly",
    "compile_object",
    "converts_f16",
    "host_target",
    "llvm_version",
    "load_object",
    "optimize_ir",
    "untested_intrinsics",
]

_CPU_OPS = """
    fma fabs sqrt floor ceil trunc rint nearbyint roundeven round copysign minimum maximum minnum maxnum minimumnum
    maximumnum canonicalize is.fpclass fptosi.sat fptoui.sat ldexp
    abs smax smin umax umin ctpop ctlz cttz bswap bitreverse fshl fshr sadd.sat uadd.sat ssub.sat usub.sat
    sadd.with.overflow uadd.with.overflow ssub.with.overflow usub.with.overflow smul.with.overflow umul.with.overflow
    masked.load masked.store masked.gather masked.scatter vector.reduce vector.insert vector.extract
    experimental.vector.compress vector.interleave2 vector.deinterleave2 vector.reverse vector.splice
    memcpy memmove memset prefetch lifetime.start lifetime.end assume expect experimental.noalias.scope.decl
    dbg trap debugtrap stacksave stackrestore
    x86.avx512bf16 x86.avx512.mask.scalef x86.avx512.rsqrt14 x86.avx512.rcp14 x86.avx512.mask.gather
"""

CPU_INTRINSICS: frozenset[str] = frozenset(f"llvm.{name}" for name in _CPU_OPS.split())
"""Intrinsics, without their type suffix, that LLVM selects instructions for on x86 and AArch64."""

_INTRINSIC = re.compile(r"^declare [^@]*@(llvm\.[\w.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """A relocatable object and the seconds that making it took."""

    data: bytes
    seconds: float


@functools.cache
def _llvm() -> Any:
    """llvmlite's binding with the native target registered; 60 ms on the first call, so never at import."""
    binding = importlib.import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    return binding


@functools.cache
def llvm_version() -> str:
    """LLVM's version and the wheel's, a part of every cache key."""
    major, minor, patch = _llvm().llvm_version_info
    return f"{major}.{minor}.{patch}/{importlib.import_module('llvmlite').__version__}"


@functools.cache
def host_target() -> tuple[str, str, str, int]:
    """This computer as LLVM sees it: triple, CPU name, feature string, width of the widest vector register in bits."""
    llvm = _llvm()
    features: dict[str, bool] = dict(llvm.get_host_cpu_features())
    text = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    triple = str(llvm.get_process_triple())
    if triple.startswith(("x86_64", "i686", "amd64")):
        text += ",-prefer-256-bit"
    bits = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
    return triple, str(llvm.get_host_cpu_name()), text, bits


_X86 = ("x86_64", "i686", "amd64")


def converts_f16() -> bool:
    """Whether this computer converts between f16 and f32 by itself: on x86 that takes F16C, elsewhere all do."""
    triple, _, features, _ = host_target()
    return not triple.startswith(_X86) or "+f16c" in features.split(",")


def fuses_multiply_add() -> bool:
    """Whether this computer has a fused multiply-add: on x86 that takes FMA3, elsewhere all do.

    Without it LLVM would call the C library once a lane.
    """
    triple, _, features, _ = host_target()
    return not triple.startswith(_X86) or "+fma" in features.split(",")


@functools.lru_cache(maxsize=16)
def _target_machine(triple: str, cpu: str, features: str, opt: int) -> Any:
    llvm = _llvm()
    if triple != host_target()[0]:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise UnknownTarget(f"LLVM has no target '{triple}'") from error
    return target.create_target_machine(cpu=cpu, features=features, opt=opt, reloc="pic", codemodel="small")


def _machine(cpu: str | None, features: str | None, opt: int, triple: str | None = None) -> Any:
    host, host_cpu, host_features, _ = host_target()
    if triple is None and cpu is None:
        cpu, features = host_cpu, host_features if features is None else features
    return _target_machine(triple or host, cpu or "", features or "", opt)


def untested_intrinsics(llvm_text: str, tested: Iterable[str] = CPU_INTRINSICS) -> list[str]:
    """The `llvm.*` functions that a module declares and `tested` doesn't hold, in the order of the text.

    A name is tested if it, or it without some of its last dotted parts (`llvm.fma.v16f32`, `llvm.fma`), is there.
    """
    table = tested if isinstance(tested, frozenset) else frozenset(tested)
    found: dict[str, None] = {}
    for name in _INTRINSIC.findall(llvm_text):
        head = name
        while head != "llvm" and head not in table:
            head = head.rpartition(".")[0]
        if head == "llvm":
            found[name] = None
    return list(found)


def parse_module(llvm: Any, llvm_text: str) -> Any:
    """Parse and verify; text that LLVM refuses is a bug of whoever printed it (`InternalError` with LLVM's words)."""
    try:
        module = llvm.parse_assembly(llvm_text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refused the IR that we printed: {str(error).strip()}") from error
    return module


def run_passes(llvm: Any, module: Any, machine: Any, opt: int = 2) -> None:
    """At 2 the few IR passes that pay for themselves (module docstring); at 3 LLVM's own pipeline with its vectorisers.

    Its unroller stays off there too: tile programs then compile in a fifth of the time and run as fast.
    """
    if opt >= 3:
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        options.loop_unrolling = options.loop_interleaving = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_unrolling = options.loop_interleaving = False
    manager = llvm.create_new_module_pass_manager()
    manager.add_sroa_pass()
    manager.add_instruction_combine_pass()
    manager.add_simplify_cfg_pass()
    manager.run(module, llvm.create_pass_builder(machine, options))


def _prepared(llvm_text: str, machine: Any, opt: int) -> Any:
    llvm = _llvm()
    module = parse_module(llvm, llvm_text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if opt >= 2:
        run_passes(llvm, module, machine, opt)
    return module


def compile_object(
    llvm_text: str, *, cpu: str | None = None, features: str | None = None, opt: int = 2, check: bool = True
) -> ObjectCode:
    """Compile a module to a relocatable object for `cpu` (default: this computer's, with all its features).

    `opt` 0 to 3 is LLVM's code generation level; IR passes run from 2 on (`run_passes`).  Raises `LoweringError` when
    the module declares an intrinsic that isn't in `CPU_INTRINSICS` (`check=False`, in an isolated worker, skips that),
    `InternalError` when LLVM refuses the text.
    """
    start = time.perf_counter()
    if check and (unknown := untested_intrinsics(llvm_text)):
        raise LoweringError(
            f"no tested lowering on the CPU for {', '.join(unknown)}",
            help="expand the op before LLVM, or compile it through warpsmith.backends.llvm.isolate",
        )
    machine = _machine(cpu, features, opt)
    data = machine.emit_object(_prepared(llvm_text, machine, opt))
    return ObjectCode(bytes(data), time.perf_counter() - start)


def optimize_ir(llvm_text: str, *, cpu: str | None = None, features: str | None = None) -> str:
    """The module's text after the IR passes that `compile_object` runs."""
    return str(_prepared(llvm_text, _machine(cpu, features, 2), 2))


def assembly(
    llvm_text: str, *, cpu: str | None = None, features: str | None = None, opt: int = 2, triple: str | None = None
) -> str:
    """The assembly of the code that `compile_object` would make; `triple` names another kind of computer."""
    machine = _machine(cpu, features, opt, triple)
    return str(machine.emit_assembly(_prepared(llvm_text, machine, opt)))


KernelFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
"""The C type of every kernel: `void NAME(void **argv, int64_t begin, int64_t end)`."""

_linker_lock = threading.Lock()
_held_over_fork: list[Any] = []


def _hold() -> None:
    """Before a fork: no other thread may be inside LLVM, for the child would wait for it forever."""
    _linker_lock.acquire()
    # llvmlite's own lock, which each call takes; the linker's comes first, as in LoadedCode.
    binding = sys.modules.get("llvmlite.binding.ffi")
    lock = getattr(getattr(getattr(binding, "lib", None), "_lock", None), "_lock", None)
    if lock is not None:
        lock.acquire()
        _held_over_fork.append(lock)


def _let_go() -> None:
    while _held_over_fork:
        _held_over_fork.pop().release()
    _linker_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)

_library_numbers = itertools.count()


@functools.cache
def _linker() -> Any:
    return _llvm().create_lljit_compiler(suppress_errors=True)


class LoadedCode:
    """Machine code in memory.  It stays as long as this object lives: whoever keeps an address keeps this too."""

    __slots__ = ("_addresses", "_library", "_object", "_trackers")

    def __init__(self, data: bytes) -> None:
        self._object = data
        self._library = f"warpsmith.{next(_library_numbers)}"
        self._addresses: dict[str, int] = {}
        builder = _llvm().JITLibraryBuilder().add_object_img(data).add_current_process()
        try:
            with _linker_lock:
                self._trackers: list[Any] = [builder.link(_linker(), self._library)]
        except RuntimeError as error:
            raise LoweringError(
                f"LLVM can't load an object: {error}", help="delete the cache if it came from there"
            ) from error

    def address(self, name: str) -> int:
        """The address of a function or variable; `LoweringError` when it, or a symbol that it needs, is missing."""
        known = self._addresses.get(name)
        if known is not None:
            return known
        try:
            with _linker_lock:
                tracker = _linker().lookup(self._library, name)
        except RuntimeError as error:
            missing = undefined_symbols(self._object)
            detail = f"; the code calls {', '.join(missing)}" if missing else ""
            raise LoweringError(f"can't link '{name}': {error}{detail}") from error
        self._trackers.append(tracker)
        self._addresses[name] = address = int(tracker[name])
        return address

    def kernel(self, name: str) -> Any:
        """The kernel `name` as a callable of (argv address, begin, end); the GIL is released while it runs."""
        return KernelFunction(self.address(name))


def load_object(code: ObjectCode | bytes) -> LoadedCode:
    """Put an object into memory.  `LoweringError` when the bytes aren't an object for this computer."""
    return LoadedCode(code.data if isinstance(code, ObjectCode) else code)


def undefined_symbols(data: bytes) -> list[str]:
    """Symbols that an ELF object needs from elsewhere; empty for other formats.  For error messages."""
    if data[:5] != b"\x7fELF\x02" or len(data) < 64:
        return []
    table, entry_size, count = struct.unpack_from("<Q10xHH", data, 0x28)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * entry_size) for index in range(count)]
    names: list[str] = []
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        strings = sections[section[6]][4]
        for offset in range(section[4] + 24, section[4] + section[5], 24):
            name, _, _, index = struct.unpack_from("<IBBH", data, offset)
            if index == 0 and name:
                names.append(data[strings + name : data.index(b"\0", strings + name)].decode())
    return names
