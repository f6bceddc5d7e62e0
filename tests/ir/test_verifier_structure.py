"""The verifier holds dominance, isolation, lists of users, links, terminators, and destination passing."""

from __future__ import annotations

import pytest
from work import calls_of

from warpsmith.errors import InvalidIr
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Region, Value
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.dialects import arith, func, memory, scf
from warpsmith.ir.text.parser import parse_module


def refused(text: str, wanted: str) -> None:
    module = parse_module(text)
    with pytest.raises(InvalidIr) as caught:
        verify(module)
    assert wanted in str(caught.value)


# ---------------------------------------------------------------------------------------------------------- dominance
def test_use_before_definition_in_a_block_is_refused() -> None:
    refused(
        "func.func @f(%x: f32) {\n%0 = arith.addf %late, %x : f32\n%late = arith.negf %x : f32\nreturn\n}",
        "uses '%late', whose definition doesn't come before it",
    )


def test_value_of_a_region_is_not_visible_outside() -> None:
    text = """func.func @f(%c: i1, %x: f32) {
      %0 = arith.addf %in, %x : f32
      scf.if %c {
        %in = arith.negf %x : f32
      }
      return
    }"""
    refused(text, "doesn't come before it")


def test_value_of_one_branch_is_not_visible_after_the_join() -> None:
    refused(
        """func.func @f(%c: i1, %x: f32) -> f32 {
          cf.cond_br %c, ^bb1, ^bb2
        ^bb1:
          %0 = arith.negf %x : f32
          cf.br ^bb2
        ^bb2:
          return %0 : f32
        }""",
        "doesn't come before it",
    )


def test_value_of_a_dominating_block_is_visible_whatever_the_order_of_the_text() -> None:
    verify(
        parse_module(
            """func.func @f(%c: i1, %x: f32) -> f32 {
              cf.br ^bb3
            ^bb1:
              %1 = arith.negf %0 : f32
              cf.cond_br %c, ^bb1, ^bb2
            ^bb2:
              return %1 : f32
            ^bb3:
              %0 = arith.negf %x : f32
              cf.br ^bb1
            }"""
        )
    )


def test_blocks_that_nothing_reaches_may_use_anything() -> None:
    verify(
        parse_module(
            """func.func @f(%x: f32) -> f32 {
              return %x : f32
            ^bb1:
              %0 = arith.negf %1 : f32
              cf.br ^bb2
            ^bb2:
              %1 = arith.negf %x : f32
              cf.br ^bb1
            }"""
        )
    )


def test_function_sees_nothing_from_outside() -> None:
    module = func.module()
    b = Builder.at_end(module.body)
    outside = arith.index(b, 1)
    op = func.build(b, "f", [], [ty.INDEX])
    func.ret(Builder.at_end(op.body), [outside])
    with pytest.raises(InvalidIr, match=r"uses '%c1' from outside func\.func"):
        verify(module)


# ------------------------------------------------------------------------------------------------ links and bookkeeping
def small() -> tuple[Operation, Operation, Value]:
    """A module, its function, and a value in it: -x."""
    module = func.module()
    op = func.build(Builder.at_end(module.body), "f", [ty.F32], [ty.F32])
    b = Builder.at_end(op.body)
    value = b.op1("arith.negf", (op.body.args[0],), ty.F32)
    func.ret(b, [value])
    verify(module)
    return module, op, value


def test_operand_that_was_erased_is_refused() -> None:
    module, function, value = small()
    definer = value.defining_op
    assert definer is not None
    definer.unlink()
    with pytest.raises(InvalidIr, match=r"whose op arith\.negf was taken out"):
        verify(module)
    assert function.body.first is function.body.last


def test_operand_set_behind_the_back_of_the_users_list_is_refused() -> None:
    module, function, value = small()
    definer = value.defining_op
    assert definer is not None
    function.body.terminator.operands[0] = function.body.args[0]
    with pytest.raises(InvalidIr, match="an operand doesn't know this user"):
        verify(module)


def test_user_that_is_not_in_the_module_is_refused() -> None:
    module, _, value = small()
    stray = Operation(module.row)
    value.users[stray] = 1
    with pytest.raises(InvalidIr, match=r"lists builtin\.module as a user, which isn't in the module"):
        verify(module)


def test_user_count_that_is_wrong_is_refused() -> None:
    module, function, value = small()
    value.users[function.body.terminator] = 2
    with pytest.raises(InvalidIr, match="an operand doesn't know this user"):
        verify(module)


def test_broken_links_are_refused() -> None:
    module, function, _ = small()
    function.body.terminator.prev = None
    with pytest.raises(InvalidIr, match="the links between ops are broken"):
        verify(module)


def test_region_with_another_parent_is_refused() -> None:
    module, function, _ = small()
    function.regions[0].parent = module
    with pytest.raises(InvalidIr, match="a region that doesn't know its op"):
        verify(module)


def test_block_without_a_terminator_is_refused() -> None:
    module = func.module()
    func.build(Builder.at_end(module.body), "f", [], [])
    with pytest.raises(InvalidIr, match="a block without a terminator"):
        verify(module)


def test_terminator_in_the_middle_is_refused() -> None:
    refused('func.func @f() {\n"func.return"() : () -> ()\ngpu.barrier\nreturn\n}', "a terminator that isn't last")


def test_branch_into_another_region_is_refused() -> None:
    module, function, _ = small()
    other = Region((Block(),))
    function.body.terminator.erase()
    Builder.at_end(function.body).create("cf.br", (), (), None, (), (other.blocks[0],))
    function.regions[0].add(Block())
    func.ret(Builder.at_end(function.regions[0].blocks[1]), [function.body.args[0]])
    with pytest.raises(InvalidIr, match="a branch out of its region"):
        verify(module)


# ------------------------------------------------------------------------------------------------- destination passing
HEAD = "func.func @f(%t: tensor<8xf32>, %x: f32, %i: index, %n: index, %c: i1) -> tensor<8xf32> {\n"

LEGAL = {
    "read, then insert": """%e = tensor.extract %t[%i] : tensor<8xf32>
        %1 = tensor.insert %e into %t[%i] : tensor<8xf32>""",
    "a chain of inserts": """%0 = tensor.insert %x into %t[%i] : tensor<8xf32>
        %1 = tensor.insert %x into %0[%n] : tensor<8xf32>""",
    "an insert in each branch": """%1 = scf.if %c -> (tensor<8xf32>) {
          %a = tensor.insert %x into %t[%i] : tensor<8xf32>
          scf.yield %a : tensor<8xf32>
        } else {
          %b = tensor.insert %x into %t[%n] : tensor<8xf32>
          scf.yield %b : tensor<8xf32>
        }""",
    "handed on from the other branch": """%1 = scf.if %c -> (tensor<8xf32>) {
          %a = tensor.insert %x into %t[%i] : tensor<8xf32>
          scf.yield %a : tensor<8xf32>
        } else {
          scf.yield %t : tensor<8xf32>
        }""",
    "round a loop": """%1 = scf.for %j = %i to %n step %n iter_args(%o = %t) -> (tensor<8xf32>) {
          %e = tensor.extract %o[%j] : tensor<8xf32>
          %a = tensor.insert %e into %o[%j] : tensor<8xf32>
          scf.yield %a : tensor<8xf32>
        }""",
    "round a loop that leaves it alone, then written": """
        %0 = scf.for %j = %i to %n step %n iter_args(%o = %t) -> (tensor<8xf32>) {
          scf.yield %o : tensor<8xf32>
        }
        %1 = tensor.insert %x into %t[%i] : tensor<8xf32>""",
}
ILLEGAL = {
    "read after an insert": """%1 = tensor.insert %x into %t[%i] : tensor<8xf32>
        %e = tensor.extract %t[%i] : tensor<8xf32>""",
    "two inserts into one": """%0 = tensor.insert %x into %t[%i] : tensor<8xf32>
        %1 = tensor.insert %x into %t[%n] : tensor<8xf32>""",
    "read after a loop that writes": """%1 = scf.for %j = %i to %n step %n iter_args(%o = %t) -> (tensor<8xf32>) {
          %a = tensor.insert %x into %o[%j] : tensor<8xf32>
          scf.yield %a : tensor<8xf32>
        }
        %e = tensor.extract %t[%i] : tensor<8xf32>""",
    "read in a loop that is inside the writer's block": """%1 = tensor.insert %x into %t[%i] : tensor<8xf32>
        %e = scf.for %j = %i to %n step %n iter_args(%s = %x) -> (f32) {
          %v = tensor.extract %t[%j] : tensor<8xf32>
          scf.yield %v : f32
        }""",
    "written again on each turn": """%1 = scf.for %j = %i to %n step %n iter_args(%o = %t) -> (tensor<8xf32>) {
          %a = tensor.insert %x into %t[%j] : tensor<8xf32>
          scf.yield %a : tensor<8xf32>
        }""",
    "read through a loop after an insert": """%1 = tensor.insert %x into %t[%i] : tensor<8xf32>
        %r:2 = scf.for %j = %i to %n step %n iter_args(%o = %t, %s = %x) -> (tensor<8xf32>, f32) {
          %v = tensor.extract %o[%j] : tensor<8xf32>
          scf.yield %o, %v : tensor<8xf32>, f32
        }""",
    "read after a vector was written": """%v = vector.broadcast %x : f32 to vector<4xf32>
        %1 = vector.transfer_write %v, %t[%i] {in_bounds = [true]} : vector<4xf32>, tensor<8xf32>
        %e = tensor.extract %t[%i] : tensor<8xf32>""",
    "read after a branch that writes": """%1 = scf.if %c -> (tensor<8xf32>) {
          %a = tensor.insert %x into %t[%i] : tensor<8xf32>
          scf.yield %a : tensor<8xf32>
        } else {
          scf.yield %t : tensor<8xf32>
        }
        %e = tensor.extract %t[%i] : tensor<8xf32>""",
}


@pytest.mark.parametrize("name", LEGAL)
def test_tensor_may_be(name: str) -> None:
    verify(parse_module(f"{HEAD}{LEGAL[name]}\nreturn %1 : tensor<8xf32>\n}}"))


@pytest.mark.parametrize("name", ILLEGAL)
def test_tensor_may_not_be(name: str) -> None:
    refused(
        f"{HEAD}{ILLEGAL[name]}\nreturn %1 : tensor<8xf32>\n}}", "a tensor that was written to may only be handed on"
    )


# --------------------------------------------------------------------------------------------------------------- speed
def chain_of_inserts(count: int) -> Operation:
    module = func.module()
    type = ty.tensor((64,), ty.F32)
    op = func.build(Builder.at_end(module.body), "f", [type, ty.F32, ty.INDEX], [type])
    b = Builder.at_end(op.body)
    tensor, x, i = op.body.args
    current: Value = tensor
    for _ in range(count // 3):
        read = memory.extract(b, current, [i])
        current = memory.insert(b, arith.binary(b, "addf", read, x), current, [i])
    func.ret(b, [current])
    return module


def test_work_grows_linearly_to_long_functions() -> None:
    """Eight times the ops takes far less than 64 times the work, which a quadratic scan would."""

    def work(count: int) -> int:
        module = chain_of_inserts(count)
        return calls_of(lambda: verify(module))

    assert work(8000) < 12 * work(1000)


def test_long_chains_of_blocks_are_no_trouble() -> None:
    blocks = "\n".join(
        f"^bb{i}:\n%v{i} = arith.negf %{'x' if i == 1 else f'v{i - 1}'} : f32\ncf.br ^bb{i + 1}" for i in range(1, 3000)
    )
    verify(parse_module(f"func.func @f(%x: f32) -> f32 {{\ncf.br ^bb1\n{blocks}\n^bb3000:\nreturn %v2999 : f32\n}}"))


def test_loops_in_loops_with_their_values_are_checked() -> None:
    module = func.module()
    op = func.build(Builder.at_end(module.body), "f", [ty.F32], [ty.F32])
    b = Builder.at_end(op.body)
    bounds = [arith.index(b, i) for i in (0, 8, 1)]
    outer = scf.for_(b, *bounds, [op.body.args[0]])
    inner_b = Builder.at_end(outer.body)
    inner = scf.for_(inner_b, *bounds, [outer.body.args[1]])
    scf.yield_(Builder.at_end(inner.body), [inner.body.args[1]])
    scf.yield_(inner_b, [inner.results[0]])
    func.ret(b, [inner.results[0]])
    with pytest.raises(InvalidIr, match="doesn't come before it"):
        verify(module)
    op.body.terminator.set_operand(0, outer.results[0])
    verify(module)
