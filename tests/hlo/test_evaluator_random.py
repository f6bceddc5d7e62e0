"""rng-bit-generator: ThreeFry and Philox give the published numbers, and XLA's in every shape and type."""

from __future__ import annotations

import numpy as np
import pytest
from hlo import oracle

from warpsmith.arrays import Array
from warpsmith.errors import UnsupportedHlo
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo


def draw(algorithm: str, state: list[int], result: str) -> tuple[str, list[Array]]:
    count = len(state)
    text = f"""HloModule m
ENTRY e {{
  s = u64[{count}] parameter(0)
  ROOT r = (u64[{count}], {result}) rng-bit-generator(s), algorithm={algorithm}
}}
"""
    return text, [np.array(state, np.uint64)]


def joined(low: int, high: int) -> int:
    return low | high << 32


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_known_answers(
    key: tuple[int, int], counter: tuple[int, int], words: tuple[int, int]
) -> None:
    """The vectors that the Random123 library is published with (threefry2x32, 20 rounds)."""
    text, arrays = draw("rng_three_fry", [joined(*key), joined(*counter)], "u64[1]")
    _, numbers = evaluate(parse_hlo(text), *arrays)
    assert int(numbers[0]) == joined(*words)


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers(
    key: tuple[int, int], counter: tuple[int, int, int, int], words: tuple[int, ...]
) -> None:
    """The vectors that the Random123 library is published with (philox4x32, 10 rounds)."""
    state = [joined(*key), joined(*counter[:2]), joined(*counter[2:])]
    text, arrays = draw("rng_philox", state, "u32[4]")
    _, numbers = evaluate(parse_hlo(text), *arrays)
    assert tuple(map(int, numbers)) == words


def test_the_counter_carries_into_its_high_half() -> None:
    text, arrays = draw("rng_philox", [5, 2**64 - 1, 8], "u32[12]")
    state, _ = evaluate(parse_hlo(text), *arrays)
    assert state.tolist() == [5, 2, 9]


def test_drawing_twice_goes_on_where_the_first_draw_ended() -> None:
    """Two draws of half the numbers are one draw of all, for the algorithm that deals them in order."""
    text, arrays = draw("rng_philox", [5, 6, 7], "u32[16]")
    half, _ = draw("rng_philox", [5, 6, 7], "u32[8]")
    _, whole = evaluate(parse_hlo(text), *arrays)
    state, first = evaluate(parse_hlo(half), *arrays)
    _, second = evaluate(parse_hlo(half), state)
    assert np.concatenate([first, second]).tolist() == whole.tolist()


RESULTS = (
    *("u32[4,8]", "u32[7]", "u32[]", "u32[3,5]", "u32[5,3,7]", "u32[0,3]", "u64[3,5]", "u64[]", "u8[5,4]", "u4[6]"),
)
STATE = [0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFE, 7]


@pytest.mark.slow
@pytest.mark.skipif(not oracle.available(), reason=oracle.REASON)
def test_bits_are_xlas() -> None:
    """Every order in which counters are dealt to elements; `rng_default` among them."""
    jobs = [
        draw(name, STATE[: 2 if "fry" in name else 3], r) for name in ("rng_three_fry", "rng_philox") for r in RESULTS
    ]
    jobs += [draw("rng_default", STATE, "u32[3,5]"), draw("rng_philox", STATE[:2], "u32[3,5]")]
    for (text, arrays), theirs in zip(jobs, oracle.run_all(jobs), strict=True):
        assert not isinstance(theirs, str), theirs
        for mine, xla in zip(evaluate(parse_hlo(text), *arrays), theirs, strict=True):
            assert mine.tobytes() == xla.tobytes(), text


@pytest.mark.parametrize(
    "lines",
    [
        "  a = f32[] constant(0)\n  ROOT r = f32[4] rng(a, a), distribution=rng_uniform",
        "  ROOT r = u64[2] rng-get-and-update-state(), delta=1",
    ],
)
def test_numbers_from_a_hidden_state_are_refused_by_name(lines: str) -> None:
    with pytest.raises(UnsupportedHlo, match="draws from a state that outlives the call") as caught:
        evaluate(parse_hlo(f"HloModule m\nENTRY e {{\n{lines}\n}}"))
    assert "rng-bit-generator" in str(caught.value)
