"""Passes refuse IR that they would otherwise change the meaning of."""

from __future__ import annotations

import pytest

import warpsmith.ir.dialects  # registers the ops
from warpsmith.errors import PassFailed
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import run_pipeline

assert warpsmith.ir.dialects.arith

BRANCH = """
func.func @pick(%c: i1, %a: tensor<8xf32>, %b: tensor<8xf32>, %i: index) -> f32 {{
  %r = scf.if %c -> (tensor<8xf32>) {{
    scf.yield %a : tensor<8xf32>
  }} else {{
    scf.yield {otherwise} : tensor<8xf32>
  }}
  %x = tensor.extract %r[%i] : tensor<8xf32>
  return %x : f32
}}
"""

LOOP = """
func.func @last(%a: tensor<8xf32>, %b: tensor<8xf32>, %n: index) -> f32 {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a) -> (tensor<8xf32>) {{
    scf.yield {carried} : tensor<8xf32>
  }}
  %x = tensor.extract %r[%c0] : tensor<8xf32>
  return %x : f32
}}
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BRANCH.format(otherwise="%b"), "scf.if .*branches yield different buffers"),
        (LOOP.format(carried="%b"), "scf.for .*yields another buffer"),
    ],
    ids=["branch", "loop"],
)
def test_a_tensor_that_is_two_buffers_is_refused(text: str, words: str) -> None:
    with pytest.raises(PassFailed, match=words):
        run_pipeline(parse_module(text), "lower-tensors")


@pytest.mark.parametrize("text", [BRANCH.format(otherwise="%a"), LOOP.format(carried="%t")], ids=["branch", "loop"])
def test_a_tensor_that_is_one_buffer_is_lowered(text: str) -> None:
    module = parse_module(text)
    run_pipeline(module, "lower-tensors")
    assert "memref.load %a[" in str(module)
