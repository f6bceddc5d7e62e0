"""Arrays in .npz files: named 0, 1, ...; dtypes that numpy lacks as raw bytes beside an entry `dtypes`."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from warpsmith.cli.files import write_bytes
from warpsmith.dtypes import by_name, from_numpy
from warpsmith.errors import FileError

__all__ = ["read_npz", "write_npz"]

Array = np.ndarray[Any, np.dtype[Any]]


def read_npz(path: str) -> list[Array]:
    """The arrays 0, 1, ... of a file.  Raises FileError when it isn't one or numbers are missing."""
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except OSError as error:
        raise FileError(f"can't read {path}: {error.strerror or error}") from error
    except (ValueError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} isn't an .npz file of plain arrays: {error}") from error
    dtypes = _names(path, arrays.pop("dtypes")) if "dtypes" in arrays else {}
    numbered = sorted((n for n in arrays if n.isdigit()), key=int)
    if numbered != [str(i) for i in range(len(arrays))]:
        raise FileError(f"{path} holds {', '.join(sorted(arrays)) or 'nothing'}", help="name its arrays 0, 1, 2, ...")
    return [_typed(path, n, arrays[n], dtypes[n]) if n in dtypes else arrays[n] for n in numbered]


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
    """Write arrays 0, 1, ...; those of bf16, f8, int4... as bytes of the same shape, their names in `dtypes`."""
    entries: dict[str, Any] = {}
    dtypes: dict[str, str] = {}
    for i, array in enumerate(arrays):
        name = str(i)
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
