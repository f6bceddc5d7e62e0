"""Arrays in .npz files, by number or by name; dtypes that numpy lacks as raw bytes beside an entry `dtypes`."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from warpsmith.arrays import Array
from warpsmith.cli.files import write_bytes
from warpsmith.dtypes import by_name, from_numpy
from warpsmith.errors import FileError

__all__ = ["read_named", "read_npz", "write_named", "write_npz"]


def read_npz(path: str) -> list[Array]:
    """The arrays 0, 1, ... of a file.  Raises FileError when it isn't one or numbers are missing."""
    arrays = read_named(path)
    numbered = [str(i) for i in range(len(arrays))]
    if set(numbered) != set(arrays):
        raise FileError(f"{path} holds {', '.join(sorted(arrays)) or 'nothing'}", help="name its arrays 0, 1, 2, ...")
    return [arrays[n] for n in numbered]


def read_named(path: str) -> dict[str, Array]:
    """The arrays of a file by name.  Raises FileError when it isn't an .npz file."""
    try:
        with open(path, "rb") as file:  # numpy would leave open what it can't read
            if file.peek(1) and not file.peek(6).startswith((b"PK", b"\x93NUMPY")):
                raise FileError(f"{path} isn't an .npz file", help="np.savez writes one: arrays 0, 1, ... or by name")
            found: Any = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise FileError(
                    f"{path} isn't an .npz file: it holds one array", help="np.savez writes several, by name"
                )
            arrays: dict[str, Any] = {name: found[name] for name in found.files}
    except OSError as error:
        raise FileError(f"can't read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} isn't an .npz file of plain arrays: {error}") from error
    for name, each in arrays.items():
        if not isinstance(each, np.ndarray):  # numpy gives other files' bytes
            raise FileError(f"{path} isn't an .npz file of plain arrays: '{name}' is none")
    dtypes = _names(path, arrays.pop("dtypes")) if "dtypes" in arrays else {}
    for name, each in arrays.items():
        if each.dtype.kind == "V" and name not in dtypes:  # as np.savez writes ml_dtypes' types
            size = each.dtype.itemsize
            example = json.dumps({name: "bf16" if size == 2 else "f8e4m3fn"})
            raise FileError(
                f"{path} doesn't say of which type the elements of array {name} are, of {size} bytes each",
                help=f"add an entry `dtypes`, a JSON object such as {example}",
            )
    return {n: _typed(path, n, each, dtypes[n]) if n in dtypes else each for n, each in arrays.items()}


def _names(path: str, entry: Array) -> dict[str, str]:
    """The dtypes' names by array; FileError when the entry doesn't hold a JSON object of them."""
    try:
        found: Any = json.loads(str(entry))
    except ValueError as error:
        raise FileError(f"the entry `dtypes` of {path} isn't JSON: {error}") from error
    names = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in names.values()):
        raise FileError(
            f"the entry `dtypes` of {path} isn't a JSON object of names", help='write it like this: {"0": "bf16"}'
        )
    return names


def _typed(path: str, name: str, codes: Array, dtype_name: str) -> Array:
    """Raw bytes as what they stand for."""
    dtype = by_name(dtype_name).numpy
    if codes.dtype.itemsize != dtype.itemsize:
        raise FileError(
            f"array {name} of {path} has elements of {codes.dtype.itemsize} bytes, {dtype_name} has {dtype.itemsize}",
            help=f"give it as u{dtype.itemsize} of the same shape",
        )
    return codes.view(dtype)


def write_npz(path: str, arrays: Sequence[Array]) -> None:
    """Write arrays 0, 1, ...; as `write_named`."""
    write_named(path, {str(i): array for i, array in enumerate(arrays)})


def write_named(path: str, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name; those of bf16, f8, int4... as bytes of the same shape, their names in `dtypes`."""
    entries: dict[str, Any] = {}
    dtypes: dict[str, str] = {}
    for name, array in arrays.items():
        if array.dtype.isbuiltin == 1:
            entries[name] = array
        else:
            dtypes[name] = from_numpy(array.dtype).name
            entries[name] = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    if dtypes:
        entries["dtypes"] = np.array(json.dumps(dtypes))
    stream = io.BytesIO()
    np.savez(stream, **entries)
    write_bytes(path, stream.getvalue())
