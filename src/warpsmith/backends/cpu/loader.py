"""LLVM IR text to loaded code, out of a store where it is there, else through the compiler.

In: modules, as they are made.  Out: `LoadedCode` for each, compiled in several processes when there is much to do.
"""

from __future__ import annotations

from warpsmith.backends.base import Store
from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.llvm import isolate as llvm_isolate

__all__ = ["KernelLoader"]


class KernelLoader:
    """Code for modules of LLVM IR, from a cache or the compiler, while the caller still makes more of them.

    `expected` is how many there will be.
    """

    def __init__(self, expected: int, *, store: Store | None = None, opt: int = 2) -> None:
        self._store = store
        self._batch = llvm_isolate.object_batch(expected, opt=opt)
        self._kind = f"object{opt}"
        self._numbers: dict[str, int] = {}  # equal modules are compiled once
        self._order: list[int] = []
        self._loaded: list[llvm_jit.LoadedCode | None] = []
        self._missing: list[tuple[int, str]] = []

    def add(self, text: str) -> None:
        """Start to compile a kernel's LLVM IR; equal texts are compiled once."""
        number = self._numbers.setdefault(text, len(self._loaded))
        self._order.append(number)
        if number < len(self._loaded):
            return
        key = self._store.key(self._kind, text) if self._store is not None else ""
        code = _load_kept(self._store.get(key)) if self._store is not None else None
        if code is None:
            self._missing.append((number, key))
            self._batch.add(text)
        self._loaded.append(code)

    def results(self) -> list[llvm_jit.LoadedCode]:
        """Code for each module in the order of `add`.  `LoweringError` when LLVM can't compile one."""
        for (index, key), data in zip(self._missing, self._batch.results(), strict=True):
            self._loaded[index] = llvm_jit.load_object(data)
            if self._store is not None:
                self._store.put(key, data)
        self._missing = []
        codes = [code for code in self._loaded if code is not None]
        return [codes[number] for number in self._order]


def _load_kept(data: bytes | None) -> llvm_jit.LoadedCode | None:
    """None for what can't be loaded: it is made anew."""
    if data is None:
        return None
    try:
        return llvm_jit.load_object(data)
    except llvm_jit.LoweringError:
        return None
