"""LLVM in worker processes: because it can abort, and because llvmlite holds one lock for all threads.

LLVM IR text and options go in, code comes out, and a worker that dies (`LLVM ERROR: Cannot select`, a
failed assertion, `exit(1)` from a diagnostic) becomes a `LoweringError` with LLVM's last words, not the end of the
user's process.  The same workers compile many kernels at once: two kernels took 2.35 s in two threads and 1.08 s in
two processes.

A worker is a fresh interpreter (never a fork: the caller may have threads) that imports only llvmlite.  It reads
requests from its standard input (4 bytes of length, JSON), answers on its standard output (1 byte of status, 4 of
length, bytes), ignores Ctrl-C, and leaves at end of file or after a minute of idleness.  Workers start when first
needed (about 0.15 s).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.util
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.devices import core_count
from warpsmith.errors import InternalError, LoweringError, WarpsmithError

__all__ = [
    "Batch",
    "Request",
    "compile_objects",
    "object_batch",
    "object_code",
    "ping",
    "run_isolated",
    "serve",
    "stop_workers",
    "submit_object",
    "worker_count",
]

_IDLE_SECONDS = 60.0
_MAX_WORKERS = 8
_SECONDS_PER_CHARACTER = 1e-6  # compile time per character of IR, measured on elementwise kernels
_WORTH_STARTING = 0.4  # seconds of work that pay for starting workers
_WORTH_SENDING = 0.02  # seconds of work that pay for a round trip when workers run already
_OK, _REFUSED, _BUG = 0, 1, 2
_ERRORS: dict[int, type[WarpsmithError]] = {_REFUSED: LoweringError, _BUG: InternalError}

Request = dict[str, str | int | None]
"""What to compile: `text`, the options, and under `make` the name of the function that does it."""

Make = Callable[[Request], bytes]
"""A module's own function, which a worker finds by name: what a kind of code needs is in its back end."""


# The worker's side


def object_code(request: Request) -> bytes:
    """Object code for a CPU."""
    cpu, features = request.get("cpu"), request.get("features")
    code = llvm_jit.compile_object(
        str(request["text"]),
        cpu=None if cpu is None else str(cpu),
        features=None if features is None else str(features),
        opt=int(request.get("opt") or 0),
        check=False,
    )
    return code.data


def ping(request: Request) -> bytes:
    """An answer that costs nothing."""
    return llvm_jit.host_target()[1].encode()


def _answer(request: Request) -> tuple[int, bytes]:
    try:
        module, _, name = str(request["make"]).partition(":")
        make: Make = getattr(importlib.import_module(module), name)
        return _OK, make(request)
    except InternalError as error:
        return _BUG, error.cause.encode()
    except WarpsmithError as error:
        return _REFUSED, error.cause.encode()


def serve() -> None:
    """A worker's main loop: answer requests until the parent closes the pipe, or nothing came for a minute."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    sink = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever LLVM prints must not look like an answer
    while _readable(source):
        head = _read_exactly(source, 4)
        if head is None:
            return
        body = _read_exactly(source, struct.unpack("<I", head)[0])
        if body is None:
            return
        status, answer = _answer(json.loads(body))
        _write_all(sink, struct.pack("<BI", status, len(answer)) + answer)


def _readable(source: IO[bytes]) -> bool:
    if os.name == "nt":
        return True  # select takes only sockets there; the parent's end closes the pipe
    return bool(select.select([source], [], [], _IDLE_SECONDS)[0])


def _read_exactly(source: IO[bytes], count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        part = source.read(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _write_all(sink: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[sink.write(view) :]


# The parent's side


class _Worker:
    """One worker process.  `request` is called by one thread at a time."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as stack:
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                env=_worker_environment(),
            )
            self._files = stack.pop_all()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to: IO[bytes] = self._process.stdin
        self._from: IO[bytes] = self._process.stdout

    def request(self, request: Request) -> bytes:
        """The answer's bytes.  `EOFError` when the worker had left before the request, `WarpsmithError` otherwise."""
        body = json.dumps(request).encode()
        try:
            _write_all(self._to, struct.pack("<I", len(body)) + body)
        except OSError as error:
            raise EOFError from error
        head = _read_exactly(self._from, 5)
        answer = _read_exactly(self._from, struct.unpack_from("<I", head, 1)[0]) if head else None
        if head is None or answer is None:
            raise self._obituary()
        if head[0] != _OK:
            raise _ERRORS[head[0]](answer.decode())
        return answer

    def _obituary(self) -> EOFError | LoweringError:
        code = self._process.wait()
        if code == 0:
            return EOFError()
        self._errors.seek(0)
        words = last_words(self._errors.read().decode(errors="replace"))
        return LoweringError(
            f"LLVM stopped (status {code}) on this kernel: {words or 'no message'}",
            help="an op in it has no lowering on this target; `--stage llvm` shows the IR",
        )

    def close(self) -> None:
        """Let the process end, and reap it."""
        with contextlib.suppress(OSError):
            self._to.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._from.close()
        self._files.close()


_TELLING = re.compile(r"LLVM ERROR|^error:|[Aa]ssertion|UNREACHABLE|libcall|Error:")


def last_words(text: str) -> str:
    """The first line of a dead worker's stderr that says why, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = next((line for line in lines if _TELLING.search(line)), lines[-1] if lines else "")
    return telling[:300]


@functools.cache
def _worker_environment() -> dict[str, str]:
    """The parent's environment, with the places of this package and of llvmlite put on the path."""
    roots = [str(Path(__file__).resolve().parents[3])]
    spec = importlib.util.find_spec("llvmlite")
    if spec is not None and spec.origin is not None:
        roots.append(str(Path(spec.origin).resolve().parents[1]))
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(roots + ([inherited] if inherited else []))}


def worker_count() -> int:
    """How many workers there may be: one a core but for the caller's own, eight at most."""
    return max(1, min(core_count() - 1, _MAX_WORKERS))


class _Team:
    """Workers, each driven by one thread of an executor."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(worker_count(), "warpsmith-llvm")
        self._mine = threading.local()
        self._all: list[_Worker] = []

    def request(self, request: Request) -> bytes:
        """Called on a thread of the executor.  A worker that left (idle, or killed by its last kernel) is replaced."""
        worker: _Worker | None = getattr(self._mine, "worker", None)
        if worker is not None:
            try:
                return worker.request(request)
            except EOFError:
                self._all.remove(worker)
                worker.close()
        self._mine.worker = worker = _Worker()
        self._all.append(worker)
        try:
            return worker.request(request)
        except EOFError as error:
            raise LoweringError("the compile worker left without an answer") from error

    def submit(self, request: Request) -> Future[bytes]:
        return self._executor.submit(self.request, request)

    def close(self) -> None:
        self._executor.shutdown()
        for worker in self._all:
            worker.close()


class _Teams:
    """The process's team, made when first needed and forgotten in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._team: _Team | None = None

    @property
    def running(self) -> bool:
        return self._team is not None

    def get(self) -> _Team:
        with self._lock:
            if self._team is None:
                self._team = _Team()
            return self._team

    def close(self) -> None:
        with self._lock:
            team, self._team = self._team, None
        if team is not None:
            team.close()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._team = None


_teams = _Teams()
atexit.register(_teams.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_teams.forget)


def stop_workers() -> None:
    """Let the workers end; the next request starts others."""
    _teams.close()


def run_isolated(make: Make, text: str, **options: str | int | None) -> bytes:
    """One request in a worker, whatever LLVM does to that process.  `LoweringError` if it dies."""
    return _teams.get().submit(_request(make, text, options)).result()


def submit_object(text: str, *, cpu: str | None = None, features: str | None = None, opt: int = 2) -> Future[bytes]:
    """Compile in a worker while the caller goes on; the future's result is the object's bytes."""
    return _teams.get().submit(_request(object_code, text, {"cpu": cpu, "features": features, "opt": opt}))


def _request(make: Make, text: str, options: Mapping[str, str | int | None]) -> Request:
    return {"make": f"{make.__module__}:{make.__qualname__}", "text": text, **options}


class Batch:
    """Modules compiled while the caller still makes more of them: `add` each, then take `results`.

    `make` compiles one, with `options`; `risky(text)` says that LLVM may die of a module, which then goes to a worker
    whatever the rest does.  Other modules are sent to workers when `expected` of them are work enough for several
    cores.  What no worker has begun by the time of `results` is compiled on the caller's thread, so that little work
    costs no worker's start and much work keeps every core busy.
    """

    def __init__(
        self, make: Make, expected: int, risky: Callable[[str], bool], options: Mapping[str, str | int | None]
    ) -> None:
        self._make = make
        self._options = dict(options)
        self._risky = risky
        self._expected = expected
        self._items: list[tuple[Request, Future[bytes] | None, bool]] = []

    def add(self, text: str) -> None:
        """One more text to compile; workers may start on it at once."""
        request = _request(self._make, text, self._options)
        alone = self._risky(text)
        left = max(1, self._expected - len(self._items))
        threshold = _WORTH_SENDING if _teams.running else _WORTH_STARTING
        shared = left > 1 and core_count() > 1 and _SECONDS_PER_CHARACTER * len(text) * left > threshold
        future = _teams.get().submit(request) if alone or shared else None
        self._items.append((request, future, alone))

    def results(self) -> list[bytes]:
        """Code for each module in the order of `add`; the first error, if any, is raised when all have ended."""
        answers: list[bytes | WarpsmithError | None] = [None] * len(self._items)
        # From the end: workers take modules from the front.
        for index in reversed(range(len(self._items))):
            request, future, alone = self._items[index]
            if future is None or (not alone and future.cancel()):
                answers[index] = _caught(functools.partial(self._make, request))
        for index, (_, future, _) in enumerate(self._items):
            if answers[index] is None and future is not None:
                answers[index] = _caught(future.result)
        finished: list[bytes] = []
        for answer in answers:
            if isinstance(answer, WarpsmithError):
                raise answer
            assert answer is not None
            finished.append(answer)
        return finished


def _caught(make: Callable[[], bytes]) -> bytes | WarpsmithError:
    try:
        return make()
    except WarpsmithError as error:
        return error


def object_batch(expected: int, *, cpu: str | None = None, features: str | None = None, opt: int = 2) -> Batch:
    """A batch whose results are object code.  Modules with intrinsics outside the tested table go to workers."""
    options: dict[str, str | int | None] = {"cpu": cpu, "features": features, "opt": opt}
    return Batch(object_code, expected, lambda text: bool(llvm_jit.untested_intrinsics(text)), options)


def compile_objects(
    texts: Sequence[str], *, cpu: str | None = None, features: str | None = None, opt: int = 2
) -> list[bytes]:
    """Object code for each module, in order, as `Batch` makes it."""
    batch = object_batch(len(texts), cpu=cpu, features=features, opt=opt)
    for text in texts:
        batch.add(text)
    return batch.results()
