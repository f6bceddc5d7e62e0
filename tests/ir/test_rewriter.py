"""The rewriter, folding, effects and ranges: what passes build on."""

from __future__ import annotations

import numpy as np
import pytest
from work import calls_of

from warpsmith.errors import PassFailed
from warpsmith.indexing import IndexingMap, Interval, dim, variables
from warpsmith.ir.analysis.ranges import range_of
from warpsmith.ir.core import effects
from warpsmith.ir.core.attributes import DenseAttr, FloatAttr, IntegerAttr, float_attr, int_range, integer_attr
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.folding import constant_attribute, fold
from warpsmith.ir.core.rewriter import Rewriter, rewrite, rewrite_ops
from warpsmith.ir.core.ssa import Location, Operation, Value
from warpsmith.ir.core.types import BF16, F16, F32, I8, I32, INDEX, Type, memref, tensor, vector
from warpsmith.ir.dialects import arith, func, gpu, memory, scf
from warpsmith.ir.dialects import vector as vec
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module
from warpsmith.passes.canonicalize import PATTERNS
from warpsmith.passes.manager import run_pipeline


def _function(inputs: list[Type], results: list[Type]) -> tuple[Operation, Builder, list[Value]]:
    module = func.module()
    function = func.build(Builder.at_end(module.body), "f", inputs, results)
    return module, Builder.at_end(function.body), list(function.body.args)


def _names(module: Operation) -> list[str]:
    return [op.name for op in module.walk()][2:]


# ------------------------------------------------------------------------------------------------------------ rewriter
def test_dead_pure_ops_go_and_writes_and_barriers_stay() -> None:
    module, b, (x, m, i) = _function([F32, memref((8,), F32), INDEX], [])
    y = arith.binary(b, "addf", x, x)
    arith.binary(b, "mulf", y, y)
    memory.load(b, m, i)
    memory.store(b, x, m, i)
    b.create("gpu.barrier")
    func.ret(b, [])
    assert rewrite(module, {})
    assert _names(module) == ["memref.store", "gpu.barrier", "func.return"]
    assert not rewrite(module, {})


def test_constants_are_made_once_at_the_head_of_their_function() -> None:
    module, b, (x,) = _function([I32], [I32])
    one = arith.constant(b, 1, I32)
    y = arith.binary(b, "addi", x, one)
    branch = scf.if_(b, arith.cmpi(b, "eq", y, arith.constant(b, 1, I32)), [I32])
    inner = Builder.at_end(branch.body)
    scf.yield_(inner, [arith.binary(inner, "muli", y, arith.constant(inner, 3, I32))])
    scf.yield_(Builder.at_end(branch.regions[1].blocks[0]), [arith.binary(b, "addi", y, arith.constant(b, 1, I32))])
    func.ret(b, list(branch.results))
    rewrite(module, {})
    head = [op for op in module.walk() if op.name == "arith.constant"]
    assert [op.int_attr("value") for op in head] == [1, 3]
    assert _names(module)[:2] == ["arith.constant"] * 2


def test_merged_constants_keep_both_locations() -> None:
    module, b, (x,) = _function([I32], [I32])
    b.location = Location(("a",), "m.hlo", 3)
    one = arith.constant(b, 1, I32)
    b.location = Location(("b",), "m.hlo", 4)
    other = arith.constant(b, 1, I32)
    func.ret(b, [arith.binary(b, "muli", arith.binary(b, "addi", x, one), arith.binary(b, "subi", x, other))])
    rewrite(module, {})
    (constant,) = [op for op in module.walk() if op.name == "arith.constant"]
    assert constant.location.names == ("a", "b")


def test_patterns_that_undo_each_other_are_stopped() -> None:
    module, b, (x, y) = _function([F32, F32], [F32])
    func.ret(b, [arith.binary(b, "subf", x, y)])

    def swap(op: Operation, rewriter: Rewriter) -> bool:
        rewriter.set_operands(op, [op.operands[1], op.operands[0]])
        return True

    with pytest.raises(PassFailed, match=r"arith\.subf"):
        rewrite(module, {"arith.subf": (swap,)})


def test_seeded_rewriting_uses_the_constants_that_are_there() -> None:
    module, b, (x,) = _function([I32], [I32])
    three = arith.constant(b, 3, I32)
    a = arith.binary(b, "addi", x, three)
    one = arith.constant(b, 1, I32)
    two = arith.constant(b, 2, I32)
    s = arith.binary(b, "addi", one, two)
    func.ret(b, [arith.binary(b, "muli", a, s)])
    assert s.defining_op is not None
    rewrite_ops([s.defining_op], {})
    assert _names(module) == ["arith.constant", "arith.addi", "arith.muli", "func.return"]


def test_new_ops_of_a_pattern_are_visited() -> None:
    module, b, (x,) = _function([I32], [I32])
    func.ret(b, [arith.binary(b, "subi", x, arith.constant(b, 5, I32))])

    def split(op: Operation, rewriter: Rewriter) -> bool:
        builder = rewriter.builder(op)
        zero = arith.constant(builder, 0, I32)
        rewriter.replace(op, [arith.binary(builder, "addi", op.operands[0], zero)])
        return True

    rewrite(module, {"arith.subi": (split,)})
    assert _names(module) == ["func.return"]


@pytest.mark.slow
@pytest.mark.parametrize("passes", ["canonicalize", "cse", "simplify-arith", "licm", "inline"])
def test_work_grows_linearly_to_thousands_of_ops(passes: str) -> None:
    """Four times the ops takes far less than sixteen times the work, which a quadratic scan would."""

    def work(count: int) -> int:
        module, b, (x, i) = _function([I32, INDEX], [I32, INDEX])
        for k in range(count // 4):
            x = arith.binary(b, "muli", arith.binary(b, "addi", x, arith.constant(b, k, I32)), x)
            map = IndexingMap.make(variables((1 << 30,)), [dim(0) + 1])
            (i,) = gpu.apply_indexing(b, map, [i])
        func.ret(b, [x, i])
        return calls_of(lambda: run_pipeline(module, passes))

    work(500)
    assert work(6000) < 8 * work(1500)


def test_a_chain_of_index_maps_with_new_operands_stays_small() -> None:
    """Composing without end would make one expression of quadratic size."""
    module, b, (start, *others) = _function([INDEX] * 400, [INDEX])
    for value in others:
        map = IndexingMap.make(variables((1000, 1000)), [(dim(0) * 3 + dim(1)) % 1000])
        (start,) = gpu.apply_indexing(b, map, [start, value])
    func.ret(b, [start])
    rewrite(module, PATTERNS)
    maps = [op for op in module.walk() if op.name == "xla_gpu.apply_indexing"]
    assert len(maps) > 1
    assert max(len(op.operands) for op in maps) <= 64
    assert parse_module(print_module(module)) is not None


# ------------------------------------------------------------------------------------------------------------- folding
def _folded(name: str, left: float, right: float, type: Type) -> float | None:
    _, b, _ = _function([], [])
    value = arith.binary(b, name, arith.constant(b, left, type), arith.constant(b, right, type))
    assert value.defining_op is not None
    found = fold(value.defining_op)
    if found is None:
        return None
    attribute = constant_attribute(found[0]) if isinstance(found[0], Value) else found[0]
    assert isinstance(attribute, (IntegerAttr, FloatAttr))
    return attribute.value


def test_floats_fold_in_their_own_format() -> None:
    # 1 + 2^-8 is a tie in bf16 (8 bits) and goes to the even 1.0; f32 holds it.
    assert _folded("addf", 1.0, 2.0**-8, BF16) == 1.0
    assert _folded("addf", 1.0, 2.0**-8, F32) == 1.00390625
    # f16 overflows above 65504 + half a step.
    assert _folded("mulf", 256.0, 256.0, F16) == float("inf")
    # Subnormals are kept: 2^-140 is one in f32.
    assert _folded("mulf", 2.0**-100, 2.0**-40, F32) == 2.0**-140


def test_integers_wrap_and_what_is_undefined_does_not_fold() -> None:
    assert _folded("addi", 127, 1, I8) == -128
    assert _folded("muli", 100, 3, I8) == 44
    assert _folded("divsi", -7, 2, I8) == -3
    assert _folded("remsi", -7, 2, I8) == -1
    assert _folded("divui", -1, 2, I8) == 127
    assert _folded("divsi", 1, 0, I8) is None
    assert _folded("divsi", -128, -1, I8) is None
    assert _folded("remui", 1, 0, I8) is None
    assert _folded("shli", 1, 8, I8) is None
    assert _folded("shli", 1, -1, I8) is None
    assert _folded("shli", 1, 7, I8) == -128


def test_nan_and_signed_zeros_survive() -> None:
    nan = float("nan")
    result = _folded("maximumf", nan, 1.0, F32)
    assert result is not None
    assert np.isnan(result)
    assert str(_folded("addf", -0.0, -0.0, F32)) == "-0.0"
    assert str(_folded("addf", -0.0, 0.0, F32)) == "0.0"


def test_vectors_fold_lane_by_lane_and_huge_ones_do_not() -> None:
    _, b, _ = _function([], [])
    type = vector((4,), I32)
    x = arith.constant(b, 3, type)
    y = b.op1("arith.constant", (), type, {"value": arith.at.dense(np.array([1, 2, 3, 4], np.int32), type)})
    made = arith.binary(b, "muli", x, y).defining_op
    assert made is not None
    found = fold(made)
    assert found is not None
    assert isinstance(found[0], DenseAttr)
    assert found[0].array.tolist() == [3, 6, 9, 12]
    wide = vector((1 << 13,), I32)
    big = arith.binary(b, "addi", arith.constant(b, 1, wide), arith.constant(b, 2, wide)).defining_op
    assert big is not None
    assert fold(big) is None


def test_approximations_never_fold() -> None:
    _, b, _ = _function([], [])
    made = b.op1("math.exp", (arith.constant(b, 0.0, F32),), F32).defining_op
    assert made is not None
    assert fold(made) is None


# ------------------------------------------------------------------------------------------------------------- effects
def test_tensors_are_values_and_buffers_are_memory() -> None:
    _, b, (t, m, i, x) = _function([tensor((8,), F32), memref((8,), F32), INDEX, F32], [])
    zero = arith.constant(b, 0.0, F32)
    read_value = vec.transfer_read(b, t, i, zero, vector((4,), F32)).defining_op
    read_memory = vec.transfer_read(b, m, i, zero, vector((4,), F32)).defining_op
    assert read_value is not None
    assert read_memory is not None
    assert effects.is_pure(read_value)
    assert not effects.is_pure(read_memory)
    assert effects.only_reads(read_memory)
    write_value = vec.transfer_write(b, read_value.results[0], t, i)
    write_memory = vec.transfer_write(b, read_value.results[0], m, i)
    assert effects.is_pure(write_value)
    assert not effects.is_removable(write_memory)
    insert = memory.insert(b, x, t, [i]).defining_op
    assert insert is not None
    assert effects.is_pure(insert)
    assert not effects.is_speculatable(insert)


def test_region_ops_have_the_effects_of_what_they_hold() -> None:
    _, b, (m, i, x) = _function([memref((8,), F32), INDEX, F32], [])
    condition = arith.constant(b, 1, arith.I1)
    pure = scf.if_(b, condition)
    scf.yield_(Builder.at_end(pure.body))
    writes = scf.if_(b, condition)
    inner = scf.if_(Builder.at_end(writes.body), condition)
    memory.store(Builder.at_end(inner.body), x, m, i)
    scf.yield_(Builder.at_end(inner.body))
    scf.yield_(Builder.at_end(writes.body))
    assert effects.is_removable(pure)
    assert effects.has_effects(writes)
    assert not effects.is_removable(writes)


@pytest.mark.parametrize(("divisor", "safe"), [(3, True), (0, False), (-1, False)])
def test_a_division_runs_early_only_by_a_safe_constant(divisor: int, safe: bool) -> None:
    _, b, (x,) = _function([I32], [])
    made = arith.binary(b, "divsi", x, arith.constant(b, divisor, I32)).defining_op
    assert made is not None
    assert effects.is_speculatable(made) is safe
    unknown = arith.binary(b, "divsi", x, x).defining_op
    assert unknown is not None
    assert not effects.is_speculatable(unknown)


# -------------------------------------------------------------------------------------------------------------- ranges
def test_ranges_of_values() -> None:
    module, b, (x, y) = _function([INDEX, INDEX], [])
    function = module.body.first
    assert function is not None
    func.set_arg_attributes(function, [{}, {"xla.range": int_range(2, 9)}])
    thread = gpu.thread_id(b, "x", 128)
    map = IndexingMap.make(variables((128,)), [dim(0) * 4 + 1])
    (index,) = gpu.apply_indexing(b, map, [thread])
    loop = scf.for_(b, arith.index(b, 1), arith.index(b, 10), arith.index(b, 4))
    never = scf.for_(b, arith.index(b, 5), arith.index(b, 5), arith.index(b, 1))
    dynamic = scf.for_(b, arith.index(b, 0), x, arith.index(b, 1))
    domain = IndexingMap.make(variables((4,)), [dim(0) * 2], range_vars=variables((7,)))
    nest = gpu.loop(b, [thread], domain, [])
    assert range_of(arith.index(b, -3)) == Interval(-3, -3)
    assert range_of(x) is None
    assert range_of(y) == Interval(2, 9)
    assert range_of(thread) == Interval(0, 127)
    assert range_of(index) == Interval(1, 509)
    assert range_of(loop.body.args[0]) == Interval(1, 9)
    assert range_of(never.body.args[0]) is None
    assert range_of(dynamic.body.args[0]) is None
    assert [range_of(a) for a in nest.body.args] == [Interval(0, 6), Interval(0, 6)]


def test_float_attributes_round_once() -> None:
    assert float_attr(0.1, BF16).value == 0.10009765625
    assert integer_attr(200, I8).value == -56
