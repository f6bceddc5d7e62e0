"""A variant of a user's own: tried among the others, by its priority, and checked like them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import explain_tile, run_tile
from warpsmith.errors import UsageError
from warpsmith.tile.dispatch import Predicate, Variant, register, registry
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.gpu.copy_shared import VARIANTS
from warpsmith.tile.dispatch.work_sharing import turns_in_words

(SHARED,) = VARIANTS
A = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
KERNEL = 's = T.alloc_shared((64, 64), "float32")\nTx.cta.copy(s, A)\nT.cuda.cta_sync()\nTx.cta.copy(B, s{})'


def own(name: str = "mine", priority: int = 30, primitive: str = "copy") -> Variant:
    def emit(call: CallContext) -> str:
        SHARED.emit(call)
        return f"my own way, {turns_in_words(call, 1)}"

    def into_shared(call: CallContext) -> str | None:
        return None if call.region("dst").buffer.is_shared else "dst is elsewhere"

    return Variant(
        (primitive,), name, priority, "a copy of mine", (Predicate("into shared memory", into_shared),), emit
    )


@pytest.fixture(autouse=True)
def only_built_in() -> Iterator[None]:
    yield
    registry._own.clear()
    registry.variants_of.cache_clear()


def test_it_is_tried_by_its_priority() -> None:
    """If this failed, a user's variant would not be used, or used before better ones."""
    kernel = read(body(KERNEL.format("")))
    assert [c.variant for c in explain_tile(kernel)] == ["gmem_smem", "gmem_smem"]
    register(own())
    first, second = explain_tile(kernel)
    assert (first.variant, first.partition, second.variant) == ("mine", "my own way, 1 x 32 threads", "gmem_smem")
    assert second.rejected[0] == ("mine (30)", "into shared memory: dst is elsewhere")
    assert run_tile(kernel, {"A_ptr": A}).ok
    register(own(priority=-1))
    assert [c.variant for c in explain_tile(kernel)] == ["gmem_smem", "gmem_smem"]


def test_names_are_checked() -> None:
    """If this failed, a user's variant could hide one of ours, or wait for a primitive that never comes."""
    with pytest.raises(UsageError, match=r"Tx\.copy has a variant 'gmem_smem' already"):
        register(own("gmem_smem"))
    with pytest.raises(UsageError, match=r"'copi', which is no tile primitive\n.*did you mean 'copy'"):
        register(own(primitive="copi"))
