"""What the installed XLA prints is read and printed back byte for byte; what we print, XLA reads as the same module."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from warpsmith.hlo import parse_hlo
from warpsmith.hlo.verifier import verify_module

pytestmark = pytest.mark.slow  # XLA makes or reads every program first

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.hlo"))

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jaxlib") is None or importlib.util.find_spec("jax") is None,
    reason="jaxlib isn't installed: the comparison with XLA's own text is left out",
)

# Runs in a process of its own, so that a crash of XLA can't take pytest with it.
CHILD = r"""
import json, sys
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jaxlib import _hlo

def options(**fields):
    made = _hlo.HloPrintOptions()
    made.print_large_constants = True
    for name, value in fields.items():
        setattr(made, name, value)
    return made

short = _hlo.HloPrintOptions.short_parsable()
styles = [options(), options(print_operand_shape=True), options(print_percent=False, print_metadata=False), short,
          options(include_layout_in_shapes=False), options(print_program_shape=False)]
x = jnp.ones((4, 8))
bits = np.random.default_rng(0).integers(0, 2**32, 24, dtype=np.uint32)
table = bits.view(np.float32).reshape(2, 3, 1, 4)

def constants(x):
    return x[0, 0] + table, np.array([[1 + 2j, -0.0]], np.complex64), bits.view(np.float16), np.arange(3) > 1

def mixed(x):
    a = jax.nn.gelu(x.astype(jnp.bfloat16)), jax.nn.softmax(x), jnp.sort(x), jnp.argmax(x, 1), jnp.cumsum(x, 1)
    return a, lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(8), x), x.at[jnp.array([1, 3])].add(1.0), x.astype("int4")

def branches(p, x):
    return lax.switch(p, [lambda a: a, lambda a: a * 2, lambda a: a - 1], x), lax.fori_loop(0, 9, lambda i, a: a * i, x)

def convolution(a, b):
    return lax.conv_general_dilated(a, b, (2, 1), [(1, 1), (0, 2)], (1, 2), (2, 1), ("NHWC", "HWIO", "NHWC"))

texts = []
inputs = [(constants, (x,)), (mixed, (x,)), (branches, (jnp.int32(1), x)),
          (convolution, (jnp.ones((2, 6, 6, 4)), jnp.ones((3, 3, 4, 8))))]
for function, arguments in inputs:
    lowered = jax.jit(function).lower(*arguments)
    texts.append(lowered.compiler_ir("hlo").as_hlo_text())
    compiled = lowered.compile()
    texts.append(compiled.as_text())
    for style in styles:
        texts += [module.to_string(style) for module in compiled.runtime_executable().hlo_modules()]
ours = json.load(sys.stdin)
read = [[_hlo.hlo_module_from_text(text).to_string(options()) for text in pair] for pair in ours]
print(json.dumps([texts, read]))
"""


@pytest.fixture(scope="module")
def answers() -> tuple[list[str], list[list[str]]]:
    pairs: list[tuple[str, str]] = []
    for path in CASES:
        text = path.read_text()
        if "{...}" not in text:
            pairs.append((text, str(parse_hlo(text))))
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(pairs), capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"XLA's process ended with {done.returncode}: {done.stderr[-300:]}")
    texts, read = json.loads(done.stdout)
    return texts, read


def test_every_style_of_xla_comes_back_byte_for_byte(answers: tuple[list[str], list[list[str]]]) -> None:
    texts, _ = answers
    assert len(texts) >= 30
    kept = 0
    for text in texts:
        module = parse_hlo(text)
        assert str(module) == text
        assert parse_hlo(str(module)) == module
        verify_module(module)
        kept += 1
    assert kept >= 25


def test_xla_reads_what_we_print_as_the_same_module(answers: tuple[list[str], list[list[str]]]) -> None:
    _, read = answers
    assert len(read) >= 30
    for original, ours in read:
        assert ours == original
