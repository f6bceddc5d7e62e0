"""Whole modules: loops, branches, calls and tuples by reference; memory is let go of, reused, not shared wrongly."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.arrays import Array
from warpsmith.compiler.simulated import simulated
from warpsmith.dtypes import by_name
from warpsmith.errors import ArgumentMismatch, ToolMissing, UnsupportedHlo
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.report.run.checked_run import run
from warpsmith.runtime import copies, frame, runner
from warpsmith.runtime.frame import Clock
from warpsmith.runtime.plan import BufferSpec, CopyStep, HostStep, LaunchStep, Plan, UpdateStep, WhileStep
from warpsmith.runtime.runner import Runner
from warpsmith.schedule.schedule import make_schedule

COUNTED = """HloModule counted
condition {
  s = (s32[], f32[4096], f32[4096]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[4096], f32[4096]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[4096] get-tuple-element(s), index=1
  w = f32[4096] get-tuple-element(s), index=2
  y = f32[4096] multiply(x, w)
  ROOT t = (s32[], f32[4096], f32[4096]) tuple(next, y, w)
}
ENTRY e {
  x = f32[4096] parameter(0)
  w = f32[4096] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[4096], f32[4096]) tuple(zero, x, w)
  l = (s32[], f32[4096], f32[4096]) while(s), condition=condition, body=body
  r = f32[4096] get-tuple-element(l), index=1
  k = f32[4096] get-tuple-element(l), index=2
  ROOT t = (f32[4096], f32[4096]) tuple(r, k)
}
"""

STACKED = """HloModule stacked
condition {
  s = (s32[], f32[64,1024], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(64)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[64,1024], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  ys = f32[64,1024] get-tuple-element(s), index=1
  x = f32[1024] get-tuple-element(s), index=2
  y = f32[1024] add(x, x)
  row = f32[1,1024] reshape(y)
  filled = f32[64,1024] dynamic-update-slice(ys, row, i, zero)
  ROOT t = (s32[], f32[64,1024], f32[1024]) tuple(next, filled, y)
}
ENTRY e {
  x = f32[1024] parameter(0)
  i = s32[] constant(0)
  empty = f32[] constant(0)
  ys = f32[64,1024] broadcast(empty), dimensions={}
  s = (s32[], f32[64,1024], f32[1024]) tuple(i, ys, x)
  l = (s32[], f32[64,1024], f32[1024]) while(s), condition=condition, body=body
  ROOT r = f32[64,1024] get-tuple-element(l), index=1
}
"""


def ones(*dims: int) -> Array:
    return np.ones(dims, np.float32)


def all_steps(whole: Plan) -> list[Any]:
    found: list[Any] = []
    for step in whole.steps:
        found.append(step)
        if isinstance(step, WhileStep):
            found += all_steps(step.condition) + all_steps(step.body)
    return found


# -------------------------------------------------------------------------------------------------------------- loops
def test_a_loop_runs_and_leaves_untouched_state_alone() -> None:
    """Only what the body changes has buffers of its own; the rest is the operand's buffer after the loop too."""
    exe = ws.compile(parse_hlo(COUNTED))
    x, w = np.full(4096, 3, np.float32), np.full(4096, 2, np.float32)
    power, kept = exe(x, w)
    assert (power == 3 * 2**5).all()
    assert (kept == w).all()
    (loop,) = [step for step in exe.plan.steps if isinstance(step, WhileStep)]
    assert loop.carried == (0, 1)
    assert exe.plan.outputs[1] == exe.plan.parameters[1]


def test_a_loop_never_copies_untouched_state() -> None:
    """The body sees the caller's own array in every round, and so does the condition."""
    seen: list[Array] = []

    def note(arrays: Any) -> list[Array]:
        seen.append(arrays[1])
        return [arrays[0] + 1]

    spec, flag = BufferSpec((), by_name("s32"), ()), BufferSpec((), by_name("pred"), ())
    big = BufferSpec((1000,), by_name("f32"), (0,))
    body = Plan(
        buffers=[spec, big, spec],
        storage=[0, 1, 2],
        parameters=[0, 1],
        outputs=[2, 1],
        steps=[HostStep(note, (0, 1), (2,), "note", (0,))],
    )
    condition = Plan(
        buffers=[spec, big, flag],
        storage=[0, 1, 2],
        parameters=[0, 1],
        outputs=[2],
        steps=[HostStep(lambda arrays: [arrays[0] < 4], (0,), (2,), "less", (0, 1))],
    )
    whole = Plan(
        buffers=[spec, big, spec],
        storage=[0, 1, 2],
        parameters=[0, 1],
        outputs=[2, 1],
        steps=[WhileStep(condition, body, (0, 1), (2,), (0,), "loop", (0,))],
    )
    given = np.arange(1000, dtype=np.float32)
    (count, state), owned = Runner(whole).run([np.array(0, np.int32), given], [False, False])
    assert count == 4
    assert state is given
    assert owned == [True, False]
    assert len(seen) == 4
    assert all(array is given for array in seen)


def test_a_loop_that_never_runs_gives_its_operands() -> None:
    """And results are the caller's: no argument's memory comes out of an executable."""
    exe = ws.compile(parse_hlo(COUNTED.replace("constant(5)", "constant(0)")))
    x, w = ones(4096), ones(4096)
    for result, argument in zip(exe(x, w), (x, w), strict=True):
        assert (result == argument).all()
        assert not np.shares_memory(result, argument)


def test_a_loop_may_exchange_its_state() -> None:
    """Places that swap are handed on by reference; neither is taken for the other."""
    text = """HloModule swap
condition {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  ROOT t = (s32[], f32[8], f32[8]) tuple(next, b, a)
}
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  i = s32[] constant(0)
  s = (s32[], f32[8], f32[8]) tuple(i, a, b)
  ROOT l = (s32[], f32[8], f32[8]) while(s), condition=condition, body=body
}
"""
    a, b = np.arange(8, dtype=np.float32), np.arange(8, 16, dtype=np.float32)
    count, first, second = ws.compile(parse_hlo(text))(a, b)
    assert count == 3
    assert (first == b).all()
    assert (second == a).all()
    assert not any(np.shares_memory(x, y) for x in (first, second) for y in (a, b))


def test_a_loop_writes_into_its_state_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacking rows takes one array, whatever the number of rounds: a copy a round would allocate 64 of them."""
    exe = ws.compile(parse_hlo(STACKED))
    assert sum(isinstance(step, UpdateStep) for step in all_steps(exe.plan)) == 1
    taken: list[int] = []

    class Counting:
        def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
            array = np.empty(shape, dtype)
            taken.append(array.nbytes)
            return array

    for module in (runner, frame, copies):
        monkeypatch.setattr(module, "default_pool", Counting)
    exe = ws.compile(parse_hlo(STACKED))
    (ys,) = exe(ones(1024))
    assert (ys == np.exp2(np.arange(1, 65, dtype=np.float32))[:, None]).all()
    assert taken.count(64 * 1024 * 4) == 1


def test_an_update_of_memory_that_others_still_see_copies_first() -> None:
    text = """HloModule seen
ENTRY e {
  x = f32[64] parameter(0)
  y = f32[64] negate(x)
  z = f32[64] abs(y)
  u = f32[1] parameter(1)
  i = s32[] parameter(2)
  new = f32[64] dynamic-update-slice(y, u, i)
  sum = f32[64] add(z, new)
  ROOT t = (f32[64], f32[64], f32[64]) tuple(new, y, sum)
}
"""
    x = np.arange(64, dtype=np.float32)
    new, y, total = ws.compile(parse_hlo(text))(x, np.array([100], np.float32), np.array(3, np.int32))
    assert (y == -x).all()
    expected = -x
    expected[3] = 100
    assert (new == expected).all()
    assert (total == expected + x).all()


def test_update_slices_are_clamped_in_place_too() -> None:
    text = """HloModule clamped
ENTRY e {
  x = f32[8,8] parameter(0)
  y = f32[8,8] negate(x)
  u = f32[2,2] parameter(1)
  i = s8[] parameter(2)
  j = s8[] parameter(3)
  ROOT new = f32[8,8] dynamic-update-slice(y, u, i, j)
}
"""
    module = parse_hlo(text)
    exe = ws.compile(module)
    assert any(isinstance(step, UpdateStep) for step in exe.plan.steps)
    x, u = np.arange(64, dtype=np.float32).reshape(8, 8), ones(2, 2)
    for i, j in ((100, -5), (-1, 127), (-128, 3), (3, 3)):
        arguments = (x, u, np.array(i, np.int8), np.array(j, np.int8))
        assert (exe(*arguments)[0] == ws.evaluate(module, *arguments)[0]).all()


# ----------------------------------------------------------------------------------------------------- branches, calls
BRANCHES = """HloModule branches
double {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  r = f32[8] add(a, a)
  b = f32[8] get-tuple-element(p), index=1
  ROOT t = (f32[8], f32[8]) tuple(r, b)
}
same {
  p = f32[8] parameter(0)
  ROOT t = (f32[8], f32[8]) tuple(p, p)
}
none {
  p = () parameter(0)
  c = f32[8] constant({0, 1, 2, 3, 4, 5, 6, 7})
  ROOT t = (f32[8], f32[8]) tuple(c, c)
}
ENTRY e {
  i = s32[] parameter(0)
  a = f32[8] parameter(1)
  b = f32[8] parameter(2)
  ab = (f32[8], f32[8]) tuple(a, b)
  nothing = () tuple()
  ROOT r = (f32[8], f32[8]) conditional(i, ab, a, nothing), branch_computations={double, same, none}
}
"""


@pytest.mark.parametrize("index", [0, 1, 2, -1, 7])
def test_each_branch_runs_and_gives_the_callers_own_arrays(index: int) -> None:
    """An index out of range takes the last branch; arguments, constants and repeated results come out as copies."""
    module = parse_hlo(BRANCHES)
    exe = ws.compile(module)
    a, b = np.arange(8, dtype=np.float32), np.full(8, 9, np.float32)
    expected = {0: (a + a, b), 1: (a, a)}.get(index, (np.arange(8), np.arange(8)))
    for _ in range(2):
        results = exe(np.array(index, np.int32), a, b)
        for result, wanted in zip(results, expected, strict=True):
            assert (result == wanted).all()
            assert not np.shares_memory(result, a)
            assert not np.shares_memory(result, b)
            result[...] = -1  # must not change what the next call gives
        assert not np.shares_memory(results[0], results[1])


def test_a_pred_chooses_between_two_branches() -> None:
    text = """HloModule p
yes {
  x = f32[4] parameter(0)
  ROOT r = f32[4] negate(x)
}
no {
  x = f32[4] parameter(0)
  ROOT r = f32[4] abs(x)
}
ENTRY e {
  p = pred[] parameter(0)
  x = f32[4] parameter(1)
  ROOT r = f32[4] conditional(p, x, x), true_computation=yes, false_computation=no
}
"""
    exe = ws.compile(parse_hlo(text))
    x = np.array([1, -2, 3, -4], np.float32)
    assert (exe(np.array(True), x)[0] == -x).all()
    assert (exe(np.array(False), x)[0] == np.abs(x)).all()


def test_a_large_callee_of_several_calls_stays_a_call() -> None:
    """It is planned and compiled once, and runs in each place."""
    chain = "\n".join(f"  v{i} = f32[16] add(v{i - 1}, v{i - 1})" for i in range(1, 300))
    text = f"""HloModule calls
long {{
  p = f32[16] parameter(0)
  v0 = f32[16] multiply(p, p)
{chain}
  ROOT r = f32[16] minimum(v299, p)
}}
ENTRY e {{
  x = f32[16] parameter(0)
  a = f32[16] call(x), to_apply=long
  b = f32[16] call(a), to_apply=long
  ROOT r = f32[16] subtract(x, b)
}}
"""
    found = make_schedule(wrap(parse_hlo(text)))
    assert [step.kind for step in found.steps] == ["call", "call", "kernel"]
    assert found.steps[0].inner == found.steps[1].inner
    exe = ws.compile(parse_hlo(text))
    x = np.linspace(0.5, 2, 16, dtype=np.float32)
    assert (exe(x)[0] == 0).all()


def test_results_in_tuples_of_tuples_are_flat() -> None:
    text = """HloModule nest
ENTRY e {
  p = (f32[2], (f32[3], s32[])) parameter(0)
  inner = (f32[3], s32[]) get-tuple-element(p), index=1
  a = f32[3] get-tuple-element(inner), index=0
  n = f32[3] negate(a)
  ROOT t = ((f32[3], s32[]), (f32[3])) tuple(inner, one)
}
""".replace("  ROOT t", "  one = (f32[3]) tuple(n)\n  ROOT t")
    first, number, negated = ws.compile(parse_hlo(text))(ones(2), ones(3), np.array(7, np.int32))
    assert (first == 1).all()
    assert number == 7
    assert (negated == -1).all()


def test_a_tokens_order_costs_nothing() -> None:
    text = """HloModule tokens
ENTRY e {
  x = f32[4] parameter(0)
  t = token[] after-all()
  y = f32[4] add-dependency(x, t)
  b = (f32[4], token[]) opt-barrier(pair)
  z = f32[4] get-tuple-element(b), index=0
  ROOT r = f32[4] negate(z)
}
""".replace("  b = ", "  pair = (f32[4], token[]) tuple(y, t)\n  b = ")
    module = parse_hlo(text)
    exe = ws.compile(module)
    assert len(exe.plan.steps) == 1
    assert (exe(ones(4))[0] == -1).all()
    assert (ws.evaluate(module, ones(4))[0] == -1).all()


def test_layouts_may_differ_between_caller_and_callee() -> None:
    """State goes in and comes out in the layout that each side states."""
    text = """HloModule layouts
condition {
  s = (s32[], f32[3,5]{0,1}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[3,5]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[3,5]{1,0} get-tuple-element(s), index=1
  y = f32[3,5]{0,1} add(x, x)
  ROOT t = (s32[], f32[3,5]{0,1}) tuple(next, y)
}
ENTRY e {
  x = f32[3,5]{0,1} parameter(0)
  i = s32[] constant(0)
  s = (s32[], f32[3,5]{0,1}) tuple(i, x)
  l = (s32[], f32[3,5]{1,0}) while(s), condition=condition, body=body
  ROOT r = f32[3,5]{1,0} get-tuple-element(l), index=1
}
"""
    module = parse_hlo(text)
    exe = ws.compile(module)
    assert any(isinstance(step, CopyStep) for step in all_steps(exe.plan))
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert (exe(x)[0] == 4 * x).all()


# ------------------------------------------------------------------------------------------------------------- memory
def chain(length: int) -> str:
    lines = "\n".join(f"  v{i} = f32[1000] {'negate' if i % 2 else 'abs'}(v{i - 1})" for i in range(1, length))
    return f"""HloModule chain
ENTRY e {{
  x = f32[1000] parameter(0)
  v0 = f32[1000] negate(x)
{lines}
  ROOT r = f32[1000] negate(v{length - 1})
}}
"""


def test_a_chain_needs_two_buffers_at_a_time() -> None:
    """Each value is let go of once the next one is there."""
    assert make_schedule(wrap(parse_hlo(chain(40)))).peak_bytes() == 2 * 4000
    assert ws.compile(parse_hlo(chain(5))).temporary_bytes == 2 * 4000


def test_memory_is_free_after_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the plan says holds at run time: no more than two arrays of a chain are alive at once."""
    alive: list[weakref.ref[Array]] = []
    most = 0

    class Tracked(np.ndarray[Any, np.dtype[Any]]):
        """An array that can be referred to weakly."""

    def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        nonlocal most
        array = np.empty(shape, dtype).view(Tracked)
        alive.append(weakref.ref(array))
        most = max(most, sum(each() is not None for each in alive))
        return array

    monkeypatch.setattr(runner, "maker_of", lambda spec: (empty, spec.physical_dims, spec.dtype.numpy))
    exe = ws.compile(parse_hlo(chain(20)))
    (result,) = exe(ones(1000))
    assert (result == 1).all()  # v19 negates an absolute value, r negates that
    assert len(alive) == 21
    assert most == 2


def test_a_donated_argument_may_become_the_result() -> None:
    """With `donate` an update writes into the argument; without, the argument stays what it was."""
    text = """HloModule cache, input_output_alias={ {}: (0, {}, may-alias) }
step {
  c = f32[128,8] parameter(0)
  r = f32[1,8] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT n = f32[128,8] dynamic-update-slice(c, r, i, zero)
}
ENTRY e {
  c = f32[128,8] parameter(0)
  r = f32[1,8] parameter(1)
  i = s32[] parameter(2)
  p = pred[] constant(true)
  t = (f32[128,8], f32[1,8], s32[]) tuple(c, r, i)
  ROOT n = f32[128,8] conditional(p, t, t), true_computation=on, false_computation=on
}
""".replace(
        "ENTRY",
        """on {
  t = (f32[128,8], f32[1,8], s32[]) parameter(0)
  c = f32[128,8] get-tuple-element(t), index=0
  r = f32[1,8] get-tuple-element(t), index=1
  i = s32[] get-tuple-element(t), index=2
  ROOT n = f32[128,8] call(c, r, i), to_apply=step
}
ENTRY""",
    )
    module = parse_hlo(text)
    exe = ws.compile(module)
    row, place = np.full((1, 8), 5, np.float32), np.array(17, np.int32)
    cache = np.zeros((128, 8), np.float32)
    (new,) = exe(cache, row, place)
    assert not cache.any()
    for donate in (True, (0,)):
        given = np.zeros((128, 8), np.float32)
        (result,) = exe(given, row, place, donate=donate)
        assert (result == new).all()
        assert np.shares_memory(result, given)
    own = np.zeros((128, 8), np.float32)
    (written,) = exe(own, row, place, out=own, donate=(0,))
    assert written is own
    assert (own == new).all()


def test_a_donation_of_what_isnt_there_is_refused() -> None:
    exe = ws.compile(parse_hlo(chain(3)))
    with pytest.raises(ArgumentMismatch, match="argument 3 can't be donated"):
        exe(ones(1000), donate=(3,))


def test_results_may_be_written_to_arrays_that_are_arguments_too() -> None:
    """A training step's way: the new state goes where the old one was."""
    x, w = np.full(4096, 3, np.float32), np.full(4096, 2, np.float32)
    exe = ws.compile(parse_hlo(COUNTED))
    exe(x, w, out=[x, w])
    assert (x == 96).all()
    assert (w == 2).all()


def test_a_clock_counts_steps_of_every_round() -> None:
    exe = ws.compile(parse_hlo(STACKED))
    clock = Clock()
    Runner(exe.plan).run([ones(1024)], [False], clock)
    assert clock.host_steps == 64
    assert clock.kernels == 64 * 3 + 1 + 1  # a condition more than rounds; the array's fill
    assert clock.kernel_seconds > 0 < clock.host_seconds


# ------------------------------------------------------------------------------------------------------------- refusal
@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('r = f32[4] custom-call(x), custom_call_target="lapack_sgetrf"', "lapack_sgetrf_ffi"),
        ("r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=sum", "among 2 devices"),
    ],
)
def test_a_host_step_that_nothing_computes_is_named_before_anything_runs(line: str, what: str) -> None:
    """In a branch that may never be taken as well: at compile time, at its line."""
    text = f"""HloModule bad
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
rare {{
  x = f32[4] parameter(0)
  ROOT {line}
}}
usual {{
  x = f32[4] parameter(0)
  ROOT r = f32[4] negate(x)
}}
ENTRY e {{
  p = pred[] parameter(0)
  x = f32[4] parameter(1)
  ROOT c = f32[4] conditional(p, x, x), true_computation=usual, false_computation=rare
}}
"""
    with pytest.raises(UnsupportedHlo, match=what) as caught:
        ws.compile(parse_hlo(text, "bad.hlo"))
    assert caught.value.span is not None
    assert caught.value.span.line == 9


def test_the_report_names_each_step_and_splits_the_time() -> None:
    module = parse_hlo(
        """HloModule split
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[64] parameter(0)
  y = f32[64] negate(x)
  s = f32[64] sort(y), dimensions={0}, to_apply=less
  ROOT r = f32[64] add(s, y)
}
"""
    )
    report = run(module, np.arange(64, dtype=np.float32), measure_copy=False, iterations=3)
    data = report.to_dict()
    assert [(row["fusion"], row["opcode"], row["host"]) for row in data["kernels"]] == [
        ("y", "fusion", False),
        ("s", "sort", True),
        ("r", "fusion", False),
    ]
    assert data["kernels"][1]["reason"] == "no emitter takes 'sort'"
    assert (data["kernel_launches"], data["host_calls"]) == (2, 1)
    assert data["temporary_bytes"] == 3 * 256
    assert 0 < data["host_ms"] < data["time_ms"]
    assert 0 < data["kernel_ms"] < data["time_ms"]
    assert data["match"] is True


def test_host_steps_that_are_the_interpreters_own_code_say_so() -> None:
    """A step that was computed by what it is compared with would count as checked."""
    text = """HloModule m
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[512,512] parameter(0)
  i = s32[64] parameter(1)
  n = f32[512,512] negate(x)
  d = f32[512,512] dot(n, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = s32[64] sort(i), dimensions={0}, to_apply=less
  c = f32[512,512] cholesky(d)
  ROOT t = (f32[512,512], s32[64]) tuple(c, s)
}
"""
    for target in ("cpu", "sm_90"):
        rows = {each.fusion: each for each in ws.compile(parse_hlo(text), target=target).kernels}
        assert {name: (row.host, row.unchecked) for name, row in rows.items()} == {
            "n": (False, False),
            "d": (True, False),  # a BLAS
            "s": (True, False),  # numpy's sort
            "c": (True, True),
        }


def test_a_gpus_kernels_are_no_host_steps() -> None:
    """A kernel that nothing runs here would be taken for a function of the host, and its time for the host's."""
    module = parse_hlo("HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }")
    x = np.arange(8, dtype=np.float32)
    exe = ws.compile(module, target="sm_90")
    assert [type(step) for step in exe.plan.steps] == [LaunchStep]
    with pytest.raises(ToolMissing, match="not run"):
        exe(x)
    found, clock = simulated(module).profiled(x)
    assert (found[0] == -x).all()
    assert (clock.kernels, clock.host_steps) == (1, 0)
