"""A module out of whatever it was saved as, told by content: HLO text, serialised HLO, StableHLO.

In: bytes and the name of their file.  Out: a `Snapshot`: the module, and what was recorded with it.  HLO text and
protos are read here; StableHLO (text, bytecode, portable artifacts) goes through jaxlib, which is asked for then alone.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from warpsmith.errors import BadProto, FileError, ToolMissing
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.proto.reader import Snapshot, read_proto
from warpsmith.hlo.text.parser import parse_hlo

__all__ = ["Snapshot", "load", "load_snapshot"]

_BYTECODE = b"ML\xefR"
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_STABLEHLO = re.compile(r"\b(?:stablehlo|vhlo|chlo|mhlo)\.\w|\bfunc\.func\b")
_MLIR = re.compile(r'(?:\s|//[^\n]*\n)*(?:"?builtin\.module|module|"?func\.func|[#!]\w+)\b')  # how its text begins


def load(path: str | Path) -> HloModule:
    """The module in a file: HLO text, an HloModuleProto, an HloProto, an HloSnapshot, or StableHLO.

    Raises FileError where the file can't be read, what `parse_hlo` raises for text, BadProto for bytes that are none of
    these, ToolMissing for StableHLO without jaxlib.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"can't read {path}: {error.strerror}") from error
    return load_snapshot(data, str(path)).module


def load_snapshot(data: bytes, file: str = "<bytes>") -> Snapshot:
    """The module that `data` holds, with its arguments and results where they were saved.  Raises as `load` does."""
    if data.startswith(_BYTECODE):
        return _stablehlo(data, file)
    if _NOT_TEXT.search(data[:4096]) is not None:
        return read_proto(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if data.startswith(b"\n"):  # the first field of every form
            return read_proto(data)
        raise FileError(f"{file} isn't text (byte {error.start} isn't UTF-8)") from error
    if _MLIR.match(text) is not None and _STABLEHLO.search(text) is not None:
        return _stablehlo(text, file)
    return Snapshot(parse_hlo(text, file))


def _stablehlo(program: str | bytes, file: str) -> Snapshot:
    """HLO of a StableHLO program, by jaxlib's converter."""
    mlir = _jaxlib_mlir()
    if mlir is None:
        raise ToolMissing(f"{file} is StableHLO, which jaxlib reads", help="pip install 'warpsmith[jax]'")
    try:
        computation = mlir.mlir_module_to_xla_computation(program, use_tuple_args=False, return_tuple=False)
    except (RuntimeError, ValueError, TypeError) as error:
        first = str(error).strip().splitlines()
        raise BadProto(f"{file}: jaxlib doesn't convert this StableHLO: {first[0] if first else error}") from error
    return read_proto(computation.as_serialized_hlo_module_proto())


def _jaxlib_mlir() -> Any:
    """jaxlib's module of conversions, wherever this version keeps it; None without jaxlib."""
    for home in ("jaxlib._jax", "jaxlib.xla_extension"):
        try:
            return importlib.import_module(home).mlir
        except (ImportError, AttributeError):
            continue
    return None
