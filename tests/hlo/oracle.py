"""Runs HLO modules through XLA:CPU (jaxlib) in one subprocess, so that a crash of XLA can't take pytest with it.

`run_all([(text, arrays), ...])` gives for each module its outputs, or the text of the error that XLA raised.
`available()` says whether jaxlib is installed; `python oracle.py IN OUT` is the child's side.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Arrays = list[np.ndarray[Any, np.dtype[Any]]]
Packed = list[tuple[str, tuple[int, ...], bytes]]

REASON = "jaxlib isn't installed: the comparison with XLA:CPU is left out"


def available() -> bool:
    return importlib.util.find_spec("jaxlib") is not None and importlib.util.find_spec("jax") is not None


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def _pack(arrays: Sequence[Any]) -> Packed:
    packed: Packed = []
    for array in arrays:
        dense = np.ascontiguousarray(array)
        packed.append((array.dtype.name, array.shape, dense.tobytes()))
    return packed


def _unpack(packed: Packed) -> Arrays:
    return [np.frombuffer(data, _dtype(name)).reshape(shape) for name, shape, data in packed]


def run_all(modules: Sequence[tuple[str, Sequence[Any]]], timeout: float = 120.0) -> list[Arrays | str]:
    """The outputs of each module under XLA:CPU with its HLO simplifier off, or the error's text."""
    jobs = [(text, _pack(arrays)) for text, arrays in modules]
    results: list[Arrays | str] = []
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.pickle"), Path(folder, "out.pickle")
        source.write_bytes(pickle.dumps(jobs))
        environment = os.environ | {
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_X64": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        child = subprocess.run(
            [sys.executable, __file__, str(source), str(target)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if target.exists():
            with target.open("rb") as stream:
                while True:
                    try:
                        one: Packed | str = pickle.load(stream)
                    except EOFError:
                        break
                    results.append(one if isinstance(one, str) else _unpack(one))
    for text, _ in modules[len(results) :]:
        results.append(f"the oracle stopped (status {child.returncode}) at or before:\n{text}\n{child.stderr[-800:]}")
    return results


def _child(source: str, target: str) -> None:
    import jax
    from jax._src.lib import xla_client
    from jaxlib import _hlo

    client = jax.devices()[0].client
    devices = xla_client._xla.DeviceList(tuple(jax.devices()[:1]))
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    build.debug_options.xla_disable_hlo_passes = "algsimp,simplify-fp-conversions"
    build.debug_options.xla_cpu_enable_fast_math = False
    build.debug_options.xla_backend_optimization_level = 0
    build.debug_options.xla_llvm_disable_expensive_passes = True
    with Path(target).open("wb") as stream:
        for text, packed in pickle.loads(Path(source).read_bytes()):
            answer: Packed | str
            try:
                module = _hlo.hlo_module_from_text(text)
                computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
                mlir = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
                executable = client.compile_and_load(mlir, devices, options)
                inputs = [jax.device_put(array) for array in _unpack(packed)]
                shards = executable.execute_sharded(inputs).disassemble_into_single_device_arrays()
                answer = _pack([np.asarray(shard[0]) for shard in shards])
            except (RuntimeError, ValueError, TypeError, AttributeError) as error:
                answer = f"{type(error).__name__}: {error}"
            pickle.dump(answer, stream)
            stream.flush()


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2])
