"""What some tests need beyond Python and the package: marks that skip a test, with the reason, where it is absent.

from needs import needs_ptxas

@needs_ptxas
def test_...
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil

import pytest

from warpsmith.backends.nvptx.ptxas import find_ptxas
from warpsmith.errors import ToolMissing

__all__ = [
    "CHROMIUM",
    "MLIR_OPT",
    "needs_chromium",
    "needs_gpu",
    "needs_jax",
    "needs_mlir_opt",
    "needs_posix",
    "needs_ptxas",
]

MLIR_OPT = shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _why_no_ptxas() -> str:
    try:
        find_ptxas()
    except ToolMissing as missing:
        return f"{missing.cause}: {missing.help}"
    return ""


def _why_no_gpu() -> str:
    try:
        status = ctypes.CDLL("libcuda.so.1").cuInit(0)
    except OSError:
        return "no CUDA driver (libcuda.so.1)"
    return f"the CUDA driver finds no GPU (cuInit gives {status})" if status else ""


def _mark(why: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(why), reason=why or "it is here")


needs_mlir_opt = _mark("" if MLIR_OPT else "mlir-opt isn't installed (Debian: mlir-22-tools)")
needs_chromium = _mark("" if CHROMIUM else "no Chromium is installed (Debian: chromium)")
needs_ptxas = _mark(_why_no_ptxas())
needs_gpu = _mark(_why_no_gpu())
needs_jax = _mark("" if importlib.util.find_spec("jaxlib") else "jax isn't installed (pip install 'warpsmith[jax]')")
needs_posix = _mark("" if os.name == "posix" else "needs POSIX")
