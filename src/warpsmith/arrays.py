"""The two types that any module may name: a numpy array of whatever dtype, and three sizes or three places.

In: nothing.  Out: `Array` and `Dim3`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

__all__ = ["Array", "Dim3"]

Array: TypeAlias = NDArray[Any]
Dim3: TypeAlias = tuple[int, int, int]
"""x, y, z of a grid, a block, or a place in one."""
