"""PTX of another compiler runs here too: kernels that XLA made of small fusions, compared with the evaluator.

`xla_kernels.json` has the text that XLA:GPU (jaxlib 0.10.2) generated for the fusions, with XLA's launches.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith.arrays import Array
from warpsmith.compiler.generated import random_inputs
from warpsmith.hlo.evaluator import evaluate_with_bounds
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.bounds import bound
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

KERNELS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in json.loads((Path(__file__).parent / "xla_kernels.json").read_text())
}


def _in_memory(array: Array, shape: Shape) -> Array:
    return np.ascontiguousarray(array.transpose(shape.minor_to_major[::-1])).reshape(-1)


@pytest.mark.parametrize("name", KERNELS)
def test_xla_s_kernel_gives_the_evaluator_s_results(name: str) -> None:
    """Right results and no finding.  Updates in place get the operand's buffer as output too."""
    row = KERNELS[name]
    module = parse_hlo(row["hlo"])
    arrays = random_inputs(module, 0, "xla")
    inputs = [_in_memory(a, p.array_shape) for a, p in zip(arrays, module.entry.parameters, strict=True)]
    (shape,) = module.entry.root.shape.leaves()
    (found,), stats = simulate_ptx(
        "\n".join(row["ptx"]),
        inputs,
        [(shape.dtype.numpy, shape.elements)],
        PtxLaunch(
            row["grid"], row["block"], aliases=[(0, 0)] if row["emitter"] in ("scatter", "dynamic_update_slice") else []
        ),
        checks=Checks(),
    )
    (expected,), (limit,) = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    wanted = _in_memory(expected, shape)
    far = _in_memory(np.broadcast_to(limit, expected.shape), shape)
    with np.errstate(all="ignore"):
        close = np.abs(found.astype(np.complex128) - wanted.astype(np.complex128)) <= far
    assert (close | (found == wanted) | ((found != found) & (wanted != wanted)) | np.isinf(far)).all()
    assert stats.findings == []
