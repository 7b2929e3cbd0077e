"""Standalone program that runs the load generator on this host, and takes everything away again.

It is sent through ssh like the runner (sent_program.py), and needs Python 3.7 with its standard library. On
its input follow a line of JSON, and the generator's program, compressed. Then input and output are the
generator's; when it has ended, its logs follow as events. Nobody may be there any more to end it: it ends
with its input, or when its time is over.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import fcntl
import functools
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

TEMPORARY = "/tmp"  # noqa: S108 — a directory of our own is made in it
PROGRAM = "pgdyno-driver"
VERSION_LIMIT_S = 10.0
PART_BYTES = 128 << 10  # of a log, in one event
SET_DEATH_SIGNAL = 1  # linux/prctl.h
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ")
NOT_RUN = "does not run on this host: "  # the controller looks for it
ISSUES_LOAD = "another pgdyno issues load from this host"  # and for that
LOCK = "pgdyno-load-{}.lock"  # with our user's number
ALONE_WAIT_S, ALONE_POLL_S = 10.0, 0.1  # a load that has just been ended takes a moment


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Be the only program of our user that issues load from this host; leave if another one does for long.

    Nobody else can open the file that is locked. Where another user could make one of that name before us, it
    is no lock of ours, and keeps us from nothing.
    """
    path, ends = lock_directory() / LOCK.format(os.geteuid()), time.monotonic() + ALONE_WAIT_S
    while True:
        file = own_file(path)
        if file is None or is_locked(file, path):
            break
        os.close(file)
        if time.monotonic() > ends:
            sys.exit(
                f"{ISSUES_LOAD}, or a run that was cut off, which ends by itself: twice its load's time "
                "and 15\u00a0minutes after it began"  # as measure/arenas/on_load_hosts.py has it
            )
        time.sleep(ALONE_POLL_S)
    try:
        yield
    finally:
        if file is not None:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            os.close(file)


def lock_directory() -> Path:
    """Return a directory of this host, best one where nobody else can make files, until its next start."""
    for place in ("/run", f"/run/user/{os.geteuid()}", "/run/lock"):
        if os.access(place, os.W_OK | os.X_OK):
            return Path(place)
    return Path(TEMPORARY)


def own_file(path: Path) -> int | None:
    """Open a file of our own, made if there is none; None if it is of another user, or no file."""
    try:
        file = os.open(
            str(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600
        )
    except OSError:
        return None
    status = os.fstat(file)
    if status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode):
        return file
    os.close(file)
    return None


def is_locked(file: int, path: Path) -> bool:
    """Lock a file, if it is not locked, and still the one of that name: its last holder removes it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False


@contextlib.contextmanager
def working_in(place: str, program: str = PROGRAM) -> Iterator[None]:
    """Leave, with the system's words, if a directory of temporary files cannot be worked in."""
    try:
        yield
    except OSError as error:
        sys.exit(f"{program} cannot work in {place}: {error.strerror or error}")


def placed(directory: Path, header: dict[str, Any]) -> Path:
    """Write the program that follows on the input; return its path."""
    packed = sys.stdin.buffer.read(header["size"])
    if hashlib.sha256(packed).hexdigest() != header["sha256"]:
        sys.exit(f"{PROGRAM} did not arrive as it was sent: its checksum differs")
    path = directory / PROGRAM
    path.write_bytes(zlib.decompress(packed))
    path.chmod(0o700)
    return path


def require_runnable(program: Path) -> None:
    """Leave, with the system's words, if the program does not run here."""
    try:
        done = subprocess.run(
            [str(program), "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=VERSION_LIMIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"{PROGRAM} {NOT_RUN}{getattr(error, 'strerror', None) or error}")
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").replace(f"{program.parent}/", "").splitlines()
        sys.exit(f"{PROGRAM} {NOT_RUN}{(said or ['it says nothing'])[-1][:300]}")


def run(program: Path, header: dict[str, Any]) -> None:
    """Run the generator in its directory, with our input and output, until it ends, or we do."""
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment.update(header["environment"])
    ours = os.getpid()
    process = subprocess.Popen(
        [str(program), *header["arguments"]], cwd=program.parent, env=environment,
        preexec_fn=lambda: begin_child(ours),  # noqa: PLW1509 — we have no threads
    )  # fmt: skip
    try:
        status = process.wait()
    finally:
        process.kill()
        process.wait()
    if status != 0:
        sys.exit(f"{PROGRAM} ended with status {status}")


def begin_child(parent: int, cpus: Sequence[int] = ()) -> None:
    """Die with our program, also if it is gone already; keep to some CPUs, if there are any."""
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    if cpus:
        os.sched_setaffinity(0, cpus)


def send_logs(directory: Path) -> None:
    """Send the generator's logs: ARM.THREAD are the names of its files."""
    for path in sorted(directory.glob("*.*")):
        with path.open("rb") as file:
            for part in iter(functools.partial(file.read, PART_BYTES), b""):
                packed = base64.b64encode(zlib.compress(part, 1)).decode()
                say(json.dumps({"event": "log", "file": path.name, "part": packed}))
    say(json.dumps({"event": "logs-ended"}))


def end(*_: object) -> NoReturn:
    """Leave, by way of everything that is taken away."""
    sys.exit("the time of the load is over")


def main(greeting: str) -> None:
    """Take the program, greet, run it, and send its logs. The alarm was set as we began to arrive."""
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    place = os.environ.get("TMPDIR") or TEMPORARY
    with alone():
        header = json.loads(sys.stdin.buffer.readline())
        with working_in(place):
            own = tempfile.TemporaryDirectory(prefix=f"{greeting}-", dir=place)
        with own as directory:
            with working_in(place):
                program = placed(Path(directory), header)
            require_runnable(program)
            say(greeting)
            run(program, header)
            send_logs(Path(directory))


def say(text: str) -> None:
    """Write one line."""
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()
