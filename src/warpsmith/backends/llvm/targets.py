"""LLVM with what it needs to make code for other processors than this one.  In: nothing.  Out: llvmlite's binding."""

from __future__ import annotations

import functools
import importlib
from typing import Any

__all__ = ["all_targets"]


@functools.cache
def all_targets() -> Any:
    """The binding, each of its targets ready."""
    binding = importlib.import_module("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding
