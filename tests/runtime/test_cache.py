"""The cache on disk: what was put in comes out, and nothing else ever does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import warpsmith
from warpsmith.errors import UsageError
from warpsmith.runtime import cache as cache_module
from warpsmith.runtime.cache import Cache, cache_key

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions or signals")


def entry(cache: Cache, key: str) -> Path:
    assert cache.directory is not None
    return cache.directory / f"{key}.bin"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "deep" / "cache")


@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(256)) * 1000])
def test_what_was_put_comes_back_in_another_process_too(cache: Cache, payload: bytes) -> None:
    assert cache.get("key") is None
    cache.put("key", payload)
    assert cache.get("key") == payload
    assert Cache(cache.directory).get("key") == payload


def test_a_new_payload_replaces_the_old(cache: Cache) -> None:
    cache.put("key", b"old")
    cache.put("key", b"new")
    assert cache.get("key") == b"new"


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign", "longer"])
def test_a_damaged_entry_is_nothing_and_is_replaced(cache: Cache, damage: str) -> None:
    cache.put("key", b"payload of some length")
    path = entry(cache, "key")
    data = bytearray(path.read_bytes())
    damaged = {
        "cut": bytes(data[:-5]),
        "flip": bytes([*data[:-1], data[-1] ^ 1]),
        "empty": b"",
        "foreign": b"something else altogether",
        "longer": bytes(data) + b"more",
    }
    path.write_bytes(damaged[damage])
    assert cache.get("key") is None
    cache.put("key", b"payload of some length")
    assert cache.get("key") == b"payload of some length"


@POSIX
def test_the_directory_is_the_users_own(cache: Cache) -> None:
    cache.put("key", b"x")
    assert cache.directory is not None
    assert cache.directory.stat().st_mode & 0o777 == 0o700


@POSIX
def test_a_directory_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    private = Cache(shared)
    private.put("key", b"code")
    shared.chmod(0o777)
    assert Cache(shared).get("key") is None
    Cache(shared).put("other", b"code")
    assert not entry(Cache(shared), "other").exists()


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory", encoding="utf-8")
    cache = Cache(tmp_path / "file" / "cache")
    cache.put("key", b"x")
    assert cache.get("key") is None


def test_no_directory_is_no_cache() -> None:
    cache = Cache(None)
    cache.put("key", b"x")
    assert cache.get("key") is None
    assert cache.clear() == 0


def test_the_longest_unused_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=10_000)
    for number in range(8):
        cache.put(f"k{number}", bytes(1000))
        os.utime(entry(cache, f"k{number}"), (number * 1000, number * 1000))
    assert cache.get("k0") is not None  # used now, so no longer the oldest
    for number in range(8, 14):
        cache.put(f"k{number}", bytes(1000))
    assert cache.get("k0") is not None
    assert cache.get("k1") is None
    assert cache.get("k13") is not None
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 11_500


def test_files_of_dead_writers_are_swept(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=1000)
    cache.put("a", bytes(500))
    old, young = tmp_path / "cache" / "tmp-old", tmp_path / "cache" / "tmp-young"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.put("b", bytes(500))
    assert not old.exists()
    assert young.exists()


def test_clear_counts(cache: Cache) -> None:
    for number in range(3):
        cache.put(str(number), b"x")
    assert cache.clear() == 3
    assert cache.get("0") is None


def write_often(directory: str, seed: int) -> None:
    cache = Cache(Path(directory))
    for number in range(200):
        cache.put("key", bytes([seed]) * (1000 + number))


def test_concurrent_writers_leave_whole_entries(cache: Cache) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_often, args=(str(cache.directory), seed)) for seed in (1, 2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        seen = cache.get("key")
        assert seen is None or len(set(seen)) == 1
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    final = cache.get("key")
    assert final is not None
    assert len(final) == 1199


@POSIX
def test_a_killed_writer_leaves_no_half_entry(cache: Cache) -> None:
    script = textwrap.dedent(f"""
        from pathlib import Path
        from warpsmith.runtime.cache import Cache
        cache = Cache(Path({str(cache.directory)!r}))
        print("go", flush=True)
        while True:
            cache.put("key", b"a" * 5_000_000)
    """)
    environment = {**os.environ, "PYTHONPATH": str(Path(warpsmith.__file__).parents[1])}
    for pause in (0.01, 0.03):
        writer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(pause)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert cache.get("key") in (None, b"a" * 5_000_000)


def test_keys_differ_in_every_part() -> None:
    keys = [
        cache_key("object", "text"),
        cache_key("object", "other text"),
        cache_key("ptx", "text"),
        cache_key("object", "text", device="sm_80"),
        cache_key("object", "text", device="sm_90"),
    ]
    assert len(set(keys)) == len(keys)
    assert cache_key("object", "text") == keys[0]


def test_another_version_of_the_code_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_key("object", "text")
    monkeypatch.setattr(cache_module, "_our_version", lambda: "another")
    assert cache_key("object", "text") != before


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(cache_module, "default_cache", cache_module.default_cache.__wrapped__)
    for variable in ("WARPSMITH_CACHE_DIR", "WARPSMITH_CACHE_BYTES", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


def test_the_environment_names_the_directory(default: pytest.MonkeyPatch, tmp_path: Path) -> None:
    default.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_module.default_cache().directory == tmp_path / "warpsmith"
    default.setenv("WARPSMITH_CACHE_DIR", str(tmp_path / "own"))
    assert cache_module.default_cache().directory == tmp_path / "own"
    default.setenv("WARPSMITH_CACHE_DIR", "")
    assert cache_module.default_cache().directory is None


def test_a_wrong_limit_is_refused(default: pytest.MonkeyPatch) -> None:
    default.setenv("WARPSMITH_CACHE_BYTES", "1 GB")
    with pytest.raises(UsageError, match="WARPSMITH_CACHE_BYTES"):
        cache_module.default_cache()


def test_the_version_is_what_drives_llvm_and_not_when_a_file_was_touched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What comes before LLVM is in the text; a file's date says nothing about what is in it."""
    version = cache_module._our_version.__wrapped__
    copy = tmp_path / "llvm_jit.py"
    copy.write_bytes(Path(cache_module.llvm_jit.__file__).read_bytes())
    before = version()
    monkeypatch.setattr(cache_module.llvm_jit, "__file__", str(copy))
    os.utime(copy, (0, 0))
    assert version() == before
    copy.write_bytes(copy.read_bytes().replace(b"speed_level=2", b"speed_level=3"))
    assert version() != before
    assert version().startswith(f"{warpsmith.__version__}.")
