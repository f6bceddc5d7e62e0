"""PTX in; a cubin, and what `ptxas` says about registers, spills and shared memory, out.

`ptxas` and `nvdisasm` are optional; `cuda_files` says where they are looked for.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from warpsmith.backends.nvptx import cuda_files
from warpsmith.errors import ToolFailed, ToolMissing

__all__ = [
    "Cubin",
    "KernelResources",
    "assemble",
    "disassemble",
    "find_nvdisasm",
    "find_ptxas",
    "parse_resources",
    "ptxas_version",
]

_LEAST_VERSION = (11, 8)  # older ones miscompile or don't know sm_90
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What one kernel takes on one architecture; bytes but for `registers`, which counts 32-bit registers a thread."""

    name: str
    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int
    barriers: int
    constant: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code for one architecture; one entry of `kernels` for each kernel in it."""

    data: bytes
    kernels: tuple[KernelResources, ...]
    log: str


def _find(name: str, without: str) -> Path:
    path = cuda_files.find(f"bin/{name}", f"WARPSMITH_{name.upper()}")
    if path is None:
        raise ToolMissing(f"no {name} here, so there can be no {without} (PTX needs none)", help=cuda_files.HELP)
    return path


def find_ptxas() -> Path:
    """The `ptxas` to use.  `ToolMissing`, with how to get one, when there is none."""
    return _find("ptxas", "cubin")


def find_nvdisasm() -> Path:
    """The `nvdisasm` to use.  `ToolMissing`, with how to get one, when there is none."""
    return _find("nvdisasm", "SASS")


def disassemble(cubin: bytes) -> str:
    """The SASS of a cubin, by `nvdisasm`.  `ToolMissing` when there is none, `ToolFailed` when it refuses."""
    tool = find_nvdisasm()
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        status, text = _run([str(tool), "-c", str(path)])
    if status:
        raise ToolFailed(f"nvdisasm refused the cubin: {text.strip()[:500]}")
    return text


@functools.lru_cache(maxsize=8)
def ptxas_version(path: Path) -> tuple[int, int]:
    """Its release, as in (13, 0).  `ToolFailed` when it doesn't say, or is older than 11.8."""
    text = _run([str(path), "--version"])[1]
    match = re.search(r"release (\d+)\.(\d+)", text)
    if match is None:
        raise ToolFailed(f"{path} doesn't state its version: {text.strip()[:200]}")
    version = int(match[1]), int(match[2])
    if version < _LEAST_VERSION:
        raise ToolFailed(f"{path} is release {match[1]}.{match[2]}", help="11.8 or newer is needed")
    return version


def _run(command: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_TIMEOUT_SECONDS, check=False
        )
    except OSError as error:
        raise ToolFailed(f"can't run {command[0]}: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ToolFailed(f"{command[0]} ran for {_TIMEOUT_SECONDS} s without an end") from error
    return done.returncode, done.stdout.decode(errors="replace")


def assemble(ptx: str, sm: str, *, optimize: bool = True, line_info: bool = False) -> Cubin:
    """Assemble for `sm` ("sm_90a").

    Raises `ToolMissing` when there is no ptxas, `ToolFailed` with its first error when it refuses the text.
    """
    tool = find_ptxas()
    ptxas_version(tool)
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as directory:
        source, target = Path(directory) / "kernel.ptx", Path(directory) / "kernel.cubin"
        source.write_text(ptx, encoding="utf-8")
        flags = ["-v", "--warn-on-spills", f"-arch={sm}"]
        flags += ["-O3"] if optimize else ["-O0"]
        flags += ["-lineinfo"] if line_info else []
        status, log = _run([str(tool), *flags, str(source), "-o", str(target)])
        log = log.replace(str(source), "kernel.ptx")
        if status != 0:
            lines = log.strip().splitlines()
            first = next((line for line in lines if "error" in line or "fatal" in line), lines[-1] if lines else "?")
            raise ToolFailed(f"ptxas refused the PTX for {sm}: {first.strip()[:300]}")
        return Cubin(target.read_bytes(), parse_resources(log), log)


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_USED = re.compile(r"Used (\d+) registers(.*)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def parse_resources(log: str) -> tuple[KernelResources, ...]:
    """The kernels named in the output of `ptxas -v`, in its order."""
    kernels: list[KernelResources] = []
    name, frame = "", (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            name, frame = match[1], (0, 0, 0)
        elif match := _FRAME.search(line):
            frame = int(match[1]), int(match[2]), int(match[3])
        elif (match := _USED.search(line)) and name:
            rest = match[2]
            kernels.append(
                KernelResources(
                    name,
                    registers=int(match[1]),
                    shared=_sum(r"(\d+) bytes smem", rest),
                    stack=frame[0],
                    spill_stores=frame[1],
                    spill_loads=frame[2],
                    barriers=_sum(r"used (\d+) barriers", rest),
                    constant=_sum(r"(\d+) bytes cmem", rest),
                )
            )
            name = ""
    return tuple(kernels)


def _sum(pattern: str, text: str) -> int:
    return sum(int(number) for number in re.findall(pattern, text))
