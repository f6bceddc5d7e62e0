"""What is installed, and what works on this computer: tried, not guessed.

In: nothing.  Out: `Diagnosis`; `warpsmith doctor` prints it.  Nothing here is needed for compiling, so a part that is
missing or broken is a row with the way to get it, never an error.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.nvptx import codegen as nvptx_codegen
from warpsmith.backends.nvptx import cuda_files, libdevice, ptxas
from warpsmith.errors import RuntimeFailure, ToolFailed, ToolMissing, WarpsmithError
from warpsmith.records import Record
from warpsmith.runtime.cache import cache_key, default_cache
from warpsmith.runtime.pool import thread_count
from warpsmith.version import __version__

__all__ = ["Check", "Diagnosis", "Store", "diagnose"]

_PACKAGES = ("numpy", "ml_dtypes", "llvmlite")
_TOOL_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Check:
    """One capability.  `state` is "works", "missing" or "broken"; `detail` what was seen; `help` the next step."""

    name: str
    purpose: str
    state: str
    detail: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Store:
    """The cache of compiled code.  `directory` is None when it is turned off; sizes are in bytes."""

    directory: str | None
    entries: int
    bytes: int
    limit: int


@dataclass(frozen=True, slots=True)
class Diagnosis(Record):
    """Versions, the computer as LLVM sees it, and one `Check` a capability."""

    warpsmith: str
    python: str
    system: str
    packages: dict[str, str]
    llvm: str
    cpu: str
    vector_bits: int
    threads: int
    cache: Store
    checks: tuple[Check, ...] = field(default=())

    def __str__(self) -> str:
        cache = self.cache
        used = f"{cache.entries} entries, {cache.bytes / 2**20:.1f} of {cache.limit / 2**20:.0f} MiB"
        facts = {
            "warpsmith": self.warpsmith,
            "python": self.python,
            **self.packages,
            "LLVM": self.llvm,
            "system": self.system,
            "CPU": f"{self.cpu}, {self.vector_bits}-bit vectors, {self.threads} threads",
            "cache": "off" if cache.directory is None else f"{cache.directory} ({used})",
        }
        width = max(map(len, (*facts, *(check.name for check in self.checks))))
        lines = ["Installed", *(f"  {name:<{width}}  {value}" for name, value in facts.items()), "", "What works here"]
        for check in self.checks:
            lines.append(f"  {check.name:<{width}}  {check.state:<7}  {check.purpose}: {check.detail}")
            if check.help:
                lines.append(f"  {'':<{width}}           {check.help}")
        return "\n".join(lines)


def diagnose() -> Diagnosis:
    """Look at everything and try it; about a second, most of it for external tools."""
    _, cpu, _, vector_bits = llvm_jit.host_target()
    return Diagnosis(
        warpsmith=__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        system=f"{platform.system()} {platform.machine()}",
        packages={name: _package_version(name) or "missing" for name in _PACKAGES},
        llvm=llvm_jit.llvm_version().partition("/")[0],
        cpu=cpu,
        vector_bits=vector_bits,
        threads=thread_count(),
        cache=_store(),
        checks=tuple(_check(*row) for row in _CHECKS),
    )


def _package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _store() -> Store:
    cache = default_cache()
    if cache.directory is None:
        return Store(None, 0, 0, cache.limit)
    sizes = [path.stat().st_size for path in cache.directory.glob("*.bin")] if cache.directory.is_dir() else []
    return Store(str(cache.directory), len(sizes), sum(sizes), cache.limit)


# ------------------------------------------------------------------------------------------------------------- checks
def _check(name: str, purpose: str, probe: Callable[[], str]) -> Check:
    """A row from a probe: its text when it returns, its error's cause and help when it raises."""
    try:
        return Check(name, purpose, "works", probe())
    except ToolMissing as missing:
        return Check(name, purpose, "missing", missing.cause, missing.help or "")
    except WarpsmithError as error:
        return Check(name, purpose, "broken", error.cause, error.help or "")


_CPU_KERNEL = """
define void @probe(ptr %argv, i64 %begin, i64 %end) {
  %address = load ptr, ptr %argv
  %value = load i64, ptr %address
  %sum = add i64 %value, %end
  store i64 %sum, ptr %address
  ret void
}
"""

_GPU_KERNEL = """
define ptx_kernel void @probe(ptr %out) {
  store float 1.0, ptr %out
  ret void
}
"""


def _cpu() -> str:
    start = perf_counter()
    code = llvm_jit.load_object(llvm_jit.compile_object(_CPU_KERNEL))
    cell = ctypes.c_int64(40)
    code.kernel("probe")(struct.pack("<q", ctypes.addressof(cell)), 0, 2)
    if cell.value != 42:
        raise RuntimeFailure(
            f"a kernel that computes 40 + 2 gave {cell.value}", help="please report this, with `--json`"
        )
    return f"a test kernel compiled and ran in {(perf_counter() - start) * 1e3:.0f} ms"


def _ptx() -> str:
    text = nvptx_codegen.ptx_from_llvm(_GPU_KERNEL, "sm_90")
    if ".entry probe" not in text:
        raise ToolFailed("LLVM's PTX has no entry for the test kernel", help="please report this, with `--json`")
    return "a test kernel for sm_90; no GPU is needed for this"


def _cache() -> str:
    cache = default_cache()
    if cache.directory is None:
        raise ToolMissing("turned off by WARPSMITH_CACHE_DIR", help="unset it, or name a directory")
    key = cache_key("doctor", "probe")
    cache.put(key, b"probe")
    if cache.get(key) != b"probe":
        raise RuntimeFailure(
            f"what is written to {cache.directory} doesn't come back",
            help="it must be your own, closed to others (mode 0700), and have room; or set WARPSMITH_CACHE_DIR",
        )
    return str(cache.directory)


def _ptxas() -> str:
    path = ptxas.find_ptxas()
    major, minor = ptxas.ptxas_version(path)
    return f"{major}.{minor}, {path}"


def _nvdisasm() -> str:
    path = ptxas.find_nvdisasm()
    return f"{_version_of(str(path), r'release ([0-9.]+)')}, {path}"


def _libdevice() -> str:
    path = libdevice.find_libdevice()
    if path is None:
        raise ToolMissing("no libdevice.10.bc here", help=cuda_files.HELP)
    if not path.read_bytes().startswith(b"BC\xc0\xde"):
        raise ToolFailed(f"{path} isn't LLVM bitcode", help="install it anew")
    return str(path)


def _mlir_opt() -> str:
    path = shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
    if path is None:
        raise ToolMissing("not found", help="on Debian: apt-get install mlir-22-tools")
    return f"{_version_of(path, r'version ([0-9.]+)')}, {path}"


def _jax() -> str:
    version = _package_version("jax")
    if version is None or _package_version("jaxlib") is None:
        raise ToolMissing("not installed", help="pip install 'warpsmith[jax]'")
    return version


def _version_of(command: str, pattern: str) -> str:
    """What `command --version` says."""
    try:
        done = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolFailed(f"can't run {command}: {error}") from error
    found = re.search(pattern, done.stdout)
    if done.returncode != 0 or found is None:
        raise ToolFailed(f"{command} --version failed: {(done.stderr or done.stdout).strip()[:200]}")
    return found[1]


_NO_DRIVER = "kernels run on the CPU and in the simulator; for tile kernels on a GPU install NVIDIA's driver"


def _gpu() -> str:
    """The first GPU as the CUDA driver names it."""
    library = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
    try:
        cuda = ctypes.CDLL(library)
    except OSError as error:
        raise ToolMissing(f"no CUDA driver ({library})", help=_NO_DRIVER) from error
    if status := cuda.cuInit(0):
        raise ToolMissing(f"the CUDA driver finds no GPU (cuInit gives {status})", help=_NO_DRIVER)
    version, device = ctypes.c_int(0), ctypes.c_int(0)
    title = ctypes.create_string_buffer(128)
    calls: tuple[tuple[str, tuple[object, ...]], ...] = (
        ("cuDriverGetVersion", (ctypes.byref(version),)),
        ("cuDeviceGet", (ctypes.byref(device), 0)),
        ("cuDeviceGetName", (title, len(title), device)),
    )
    for name, arguments in calls:
        if status := getattr(cuda, name)(*arguments):
            raise ToolFailed(f"{name} gives {status}", help="see what nvidia-smi says")
    return (
        f"{title.value.decode(errors='replace')}, driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    )


_CHECKS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("cpu", "kernels on this CPU", _cpu),
    ("ptx", "PTX for NVIDIA GPUs", _ptx),
    ("cache", "compiled code kept between runs", _cache),
    ("gpu", "kernels on a GPU", _gpu),
    ("ptxas", "cubins", _ptxas),
    ("nvdisasm", "SASS text", _nvdisasm),
    ("libdevice", "functions named __nv_*", _libdevice),
    ("mlir-opt", "used by tests alone", _mlir_opt),
    ("jax", "used by tests and benchmarks", _jax),
)
