"""The cache of compiled code on disk: a key in, the bytes that were stored under it out, or nothing.

An entry is a file named by the SHA-256 of everything that the bytes depend on: our version, LLVM's, the CPU's name and
features, and the text.  Only object code for CPUs is kept: PTX takes LLVM some 10 ms a kernel.  It holds a magic word,
the SHA-256 of the payload, and the payload; anything else found there is ignored and replaced.  A writer makes a
temporary file in the same directory and renames it, so that a reader, another writer, or a kill at any time never
leaves half an entry.  The directory is the user's own (mode 0700): one that others may write to isn't used, since code
from it is executed.  When it grows past its size limit the entries that were unused longest go.

`WARPSMITH_CACHE_DIR` names the directory (empty: no cache); the default is `warpsmith` under `XDG_CACHE_HOME` or
`~/.cache`.  `WARPSMITH_CACHE_BYTES` is the limit.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.errors import UsageError
from warpsmith.version import __version__

__all__ = ["Cache", "cache_key", "default_cache"]

_MAGIC = b"WSC1"
_DIGEST_BYTES = 32
_DEFAULT_LIMIT = 512 << 20
_STALE_SECONDS = 3600.0  # a temporary file this old belongs to a writer that died
_TOUCH_SECONDS = 3600.0  # how exact the order of use is
_SUFFIX = ".bin"


@functools.cache
def _our_version() -> str:
    """What decides which bytes come of a text: the code that drives LLVM.  All that comes before it is in the text."""
    driver = Path(llvm_jit.__file__).read_bytes()
    return f"{__version__}.{hashlib.sha256(driver).hexdigest()}"


def cache_key(kind: str, text: str, device: str | None = None) -> str:
    """The key of what `kind` ("object", "object2"...) names, made from `text` for `device` (default: this CPU)."""
    if device is None:
        triple, cpu, features, _ = llvm_jit.host_target()
        device = f"{triple} {cpu} {features}"
    parts = (kind, _our_version(), llvm_jit.llvm_version(), device, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Cache:
    """A directory of entries.  `None` for the directory is a cache that holds nothing."""

    def __init__(self, directory: Path | None, limit: int = _DEFAULT_LIMIT) -> None:
        self.directory = directory
        self.limit = limit
        self._written = limit  # so that the first write of a process looks at the size
        self._trusted: bool | None = None

    def key(self, kind: str, text: str) -> str:
        """The key of what `kind` names, made from `text` for this CPU; empty where nothing is kept."""
        return cache_key(kind, text) if self.directory is not None else ""

    def get(self, key: str) -> bytes | None:
        """The bytes stored under `key`; None when there are none, or when the entry is damaged."""
        if self.directory is None or not self._is_trusted(self.directory):
            return None
        path = self.directory / (key + _SUFFIX)
        try:
            with path.open("rb") as file:
                data = file.read()
                age = time.time() - os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        payload = data[len(_MAGIC) + _DIGEST_BYTES :]
        if not data.startswith(_MAGIC) or data[len(_MAGIC) :][:_DIGEST_BYTES] != hashlib.sha256(payload).digest():
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        if age > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store bytes.  A directory that can't be used, or a full disk, makes this do nothing."""
        if self.directory is None or not self._is_trusted(self.directory):
            return
        try:
            handle, name = tempfile.mkstemp(dir=self.directory, prefix="tmp-")
        except OSError:
            return
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest())
                file.write(payload)
            temporary.replace(self.directory / (key + _SUFFIX))
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            return
        self._written += len(payload)
        if self._written > self.limit // 8:
            self._written = 0
            self._shrink(self.directory)

    def object_for(self, text: str, make: Callable[[], bytes]) -> bytes:
        """The object code of LLVM IR `text` for this CPU, made by `make` when it isn't here."""
        key = cache_key("object", text)
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def clear(self) -> int:
        """Remove all entries; how many there were."""
        count = 0
        for path in self._entries():
            with contextlib.suppress(OSError):
                path.unlink()
                count += 1
        return count

    def _is_trusted(self, directory: Path) -> bool:
        if self._trusted is None or not directory.is_dir():
            self._trusted = _own_directory(directory)
        return self._trusted

    def _entries(self) -> list[Path]:
        if self.directory is None or not self.directory.is_dir():
            return []
        return list(self.directory.glob(f"*{_SUFFIX}"))

    def _shrink(self, directory: Path) -> None:
        now = time.time()
        for path in directory.glob("tmp-*"):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()
        sizes: list[tuple[float, int, Path]] = []
        for path in self._entries():
            with contextlib.suppress(OSError):
                state = path.stat()
                sizes.append((state.st_mtime, state.st_size, path))
        total = sum(size for _, size, _ in sizes)
        for _, size, path in sorted(sizes):
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


def _own_directory(path: Path) -> bool:
    """Make the directory if it isn't there; whether it is this user's and closed to others."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = path.stat()
    except OSError:
        return False
    if os.name != "posix":
        return True
    return state.st_uid == os.geteuid() and not stat.S_IMODE(state.st_mode) & 0o022


@functools.cache
def default_cache() -> Cache:
    """The user's cache, as the environment has it at the first call."""
    asked = os.environ.get("WARPSMITH_CACHE_DIR")
    limit = os.environ.get("WARPSMITH_CACHE_BYTES", str(_DEFAULT_LIMIT))
    if not limit.isdecimal():
        raise UsageError(f"WARPSMITH_CACHE_BYTES is '{limit}', which isn't a number")
    if asked is not None:
        return Cache(Path(asked) if asked else None, int(limit))
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return Cache(root / "warpsmith", int(limit))
