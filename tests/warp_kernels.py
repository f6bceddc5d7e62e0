"""Handwritten kernels of a warp's ops, as a dispatched tile program has them: products of two matrices.

`staged` streams its operands through shared memory by copies in flight and carries the sum through its loop;
`in_registers` keeps fragments and sums in private arrays.  On their way to PTX and to CUDA C++.
"""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np

import warpsmith.ir.dialects  # registers the ops
from warpsmith.backends.cuda_cpp import cuda_source
from warpsmith.backends.cuda_cpp.pipeline import STRUCTURED_BLOCKS
from warpsmith.backends.nvptx.backend import llvm_ir
from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import run_pipeline
from warpsmith.passes.pipeline import TILE_LOWERING

assert warpsmith.ir.dialects.nvgpu

TARGETS = ("sm_80", "sm_90", "sm_100")
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}

_SAMPLES = Path(__file__).parent / "ir" / "samples"


def _module(name: str, element: str, target: str, *, stores: bool = True) -> Operation:
    text = (_SAMPLES / f"{name}.mlir").read_text().replace("xf16", f"x{element}").replace("sm_90", target)
    if not stores:
        text = re.sub(r"from here.*?to here", "", text, flags=re.DOTALL)
    module = parse_module(text)
    verify(module)
    return module


def staged(element: str, target: str, *, stores: bool = True) -> Operation:
    """A 16 x 64 by 64 x 8 product: C in f32, and with `stores` D, the same rounded to `element` (sm_90)."""
    return _module("product_staged", element, target, stores=stores)


def in_registers(element: str, target: str) -> Operation:
    """A 32 x 16 by 16 x 8 product: C in f32."""
    return _module("product_in_registers", element, target)


def ptx(module: Operation, target: str) -> str:
    """A kernel's PTX; every pass leaves valid IR."""
    run_pipeline(module, TILE_LOWERING, verify=lambda lowered, _: verify(lowered))
    return ptx_from_llvm(llvm_ir(module), target)


def cuda(module: Operation) -> str:
    """A kernel's CUDA C++."""
    run_pipeline(module, STRUCTURED_BLOCKS)
    return cuda_source(module)
