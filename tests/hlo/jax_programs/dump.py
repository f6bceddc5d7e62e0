"""Real HLO: what JAX makes of `programs`, before XLA's optimisation and after it for the CPU, from one subprocess.

    corpus = dump.load(cache)                 # a list of `Dump`; cache is pytest's `config.cache`, or None
    python dump.py FOLDER                     # the child's side; also writes the texts for a person to read

Each dump has the text, the inputs in the order of the module's parameters, and what JAX computed.  The dumps are kept
in pytest's cache folder until `programs` or jax changes, so that only the first run takes long.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from warpsmith.arrays import Array

__all__ = ["REASON", "Dump", "available", "load"]

HERE = Path(__file__).parent
REASON = "jax isn't installed: the programs that need it are left out"


@dataclass(frozen=True)
class Dump:
    """One program at one stage, "before" or "after" XLA's optimisation for the CPU."""

    name: str
    stage: str
    text: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    custom_calls: tuple[str, ...]
    """The custom calls that the program is known to make."""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.stage}"


def available() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("jax", "jaxlib"))


@lru_cache(maxsize=1)
def _key() -> str:
    """Changes when what the dumps depend on does."""
    sources = (HERE / "programs.py").read_bytes() + Path(__file__).read_bytes()
    versions = "".join(importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy"))
    return hashlib.sha256(sources + versions.encode()).hexdigest()[:16]


def load(cache: Any = None) -> list[Dump]:
    """All dumps.  RuntimeError with the child's last words when it fails."""
    return _load(Path(cache.mkdir("jax_programs")) if cache is not None else _scratch())


@lru_cache(maxsize=1)
def _scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="warpsmith-jax-"))


@lru_cache(maxsize=2)
def _load(folder: Path) -> list[Dump]:
    target = folder / f"{_key()}.pickle"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.pickle"):
            old.unlink(missing_ok=True)
        environment = os.environ | {
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_X64": "0",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            # LLVM's effort: XLA's own passes, which make the text, aren't touched by it.
            "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
        }
        child = subprocess.run(
            [sys.executable, __file__, str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if not target.exists():
            raise RuntimeError(f"JAX's process ended with {child.returncode}: {child.stderr[-2000:]}")
    rows = pickle.loads(target.read_bytes())
    return [Dump(*row[:3], _unpack(row[3]), _unpack(row[4]), row[5]) for row in rows]


def _pack(arrays: Sequence[Any]) -> list[tuple[str, tuple[int, ...], bytes]]:
    """As bytes: the types of ml_dtypes don't all survive a pickle across versions."""
    return [(array.dtype.name, array.shape, np.ascontiguousarray(array).tobytes()) for array in arrays]


def _unpack(packed: Sequence[tuple[str, tuple[int, ...], bytes]]) -> tuple[Array, ...]:
    import ml_dtypes

    def dtype(name: str) -> np.dtype[Any]:
        return np.dtype(getattr(ml_dtypes, name, None) or name)

    return tuple(np.frombuffer(data, dtype(name)).reshape(shape) for name, shape, data in packed)


def _child(folder: Path) -> None:
    import contextlib

    import jax
    from jaxlib import _hlo

    sys.path.insert(0, str(HERE))
    from programs import PROGRAMS  # needs jax, which only this process has to have

    whole = _hlo.HloPrintOptions()
    whole.print_large_constants = True
    rows: list[Any] = []
    for number, program in enumerate(PROGRAMS):
        arguments = program.arguments(np.random.default_rng(number))
        inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
        packed = _pack(inputs)
        with jax.enable_x64(True) if program.x64 else contextlib.nullcontext():
            jitted = jax.jit(program.function, donate_argnums=program.donated, keep_unused=True)
            lowered = jitted.lower(*arguments)
            before = lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)
            compiled = lowered.compile()
            (module,) = compiled.runtime_executable().hlo_modules()
            after = compiled.as_text()
            if "{...}" in after:  # values were left out
                after = module.to_string(whole)
            outputs = _pack([np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*arguments))])
        for stage, text in (("before", before), ("after", after)):
            rows.append((program.name, stage, text, packed, outputs, program.calls))
            (folder / f"{program.name}.{stage}.hlo").write_text(text)
    target = folder / f"{_key()}.pickle"
    part = target.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(rows))
    part.replace(target)


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
