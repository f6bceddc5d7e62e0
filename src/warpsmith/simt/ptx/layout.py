"""Where the variables of a PTX module lie: shared and local memory from 0, global ones at addresses of their own."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.simt.ptx.memory import Memory, padded
from warpsmith.simt.ptx.text.module import Function, PtxModule, Symbol, Variable

__all__ = ["Layout"]


class Layout:
    """Addresses for all variables of a module."""

    def __init__(self, module: PtxModule, memory: Memory, dynamic_shared: int) -> None:
        self.shared = 0
        self.local = 0
        self.common: dict[str, tuple[str, int]] = {}
        self.own: dict[str, dict[str, tuple[str, int]]] = {}
        addressed: list[tuple[Variable, Array]] = []
        external: list[tuple[dict[str, tuple[str, int]], Variable]] = []
        scopes = [(self.common, module.variables)]
        for function in module.functions.values():
            scope = self.own.setdefault(function.name, {})
            scopes.append((scope, function.variables))
        for scope, variables in scopes:
            for variable in variables:
                if variable.space == "shared" and (variable.external or variable.size == 0):
                    external.append((scope, variable))
                elif variable.space in ("shared", "local"):
                    scope[variable.name] = (variable.space, self._take(variable))
                elif variable.space in ("global", "const"):
                    data = np.zeros(padded(variable.size), np.uint8)
                    data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
                    region = memory.add(f"'{variable.name}'", data, variable.size)
                    scope[variable.name] = (variable.space, region.base)
                    addressed.append((variable, data))
        start = (self.shared + 127) // 128 * 128 if external else self.shared
        for scope, variable in external:
            scope[variable.name] = ("shared", start)
        self.shared = start + dynamic_shared
        for variable, data in addressed:
            for position, symbol in variable.addresses:
                data[position : position + 8] = np.frombuffer(self._address(symbol), np.uint8)

    def _take(self, variable: Variable) -> int:
        used = self.shared if variable.space == "shared" else self.local
        start = (used + variable.align - 1) // variable.align * variable.align
        if variable.space == "shared":
            self.shared = start + variable.size
        else:
            self.local = start + variable.size
        return start

    def _address(self, symbol: Symbol) -> bytes:
        found = self.common.get(symbol.name)
        if found is None:
            raise SimulationError(f"the initial value of a variable names '{symbol.name}', which isn't one")
        return (found[1] + symbol.offset).to_bytes(8, "little")

    def symbols(self, function: Function) -> dict[str, tuple[str, int]]:
        """What names mean in a function."""
        return {**self.common, **self.own[function.name]}
