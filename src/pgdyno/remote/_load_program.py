"""Standalone program that runs the load generator on this host, and then removes everything it created.

It is sent through ssh like the runner (runner.py), and needs Python 3.7 with its standard library. Its
input continues with a line of JSON and the compressed generator program. After that, input and output belong
to the generator; when the generator has exited, its logs follow as events. The controller may disappear, so
the program ends at the end of its input, or when its time is over.
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

TEMPORARY = "/tmp"  # noqa: S108 — only a private directory is created in it
PROGRAM = "pgdyno-driver"
VERSION_LIMIT_S = 10.0
PART_BYTES = 128 << 10  # of a log, in one event
SET_DEATH_SIGNAL = 1  # linux/prctl.h
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ")
NOT_RUN = "does not run on this host: "  # parsed by the controller
ISSUES_LOAD = "another pgdyno issues load from this host"  # parsed by the controller
LOCK = "pgdyno-load-{}.lock"  # with the user ID
ALONE_WAIT_S, ALONE_POLL_S = 10.0, 0.1  # a load that was just ended needs a moment to exit


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Be this user's only program that issues load from this host; exit if another one does not end.

    Other users cannot open the locked file. If another user created a file of that name first, it is not used
    as a lock, and does not block this program.
    """
    path, ends = lock_directory() / LOCK.format(os.geteuid()), time.monotonic() + ALONE_WAIT_S
    while True:
        file = own_file(path)
        if file is None or is_locked(file, path):
            break
        os.close(file)
        if time.monotonic() > ends:
            sys.exit(
                f"{ISSUES_LOAD}, or a disconnected run, which ends by itself: twice its load's time "
                "and 15\u00a0minutes after its start"  # as in measure/arenas/on_load_hosts.py
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
    """Return a directory that is emptied at boot, preferably one where other users cannot create files."""
    for place in ("/run", f"/run/user/{os.geteuid()}", "/run/lock"):
        if os.access(place, os.W_OK | os.X_OK):
            return Path(place)
    return Path(TEMPORARY)


def own_file(path: Path) -> int | None:
    """Open a file of this user, creating it if missing; None if it has another owner or is not a file."""
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
    """Lock a file if it is unlocked; return whether that worked, and the file still has that name.

    Its last holder removes it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False


@contextlib.contextmanager
def working_in(place: str, program: str = PROGRAM) -> Iterator[None]:
    """Exit with the system's error if a directory for temporary files is not usable."""
    try:
        yield
    except OSError as error:
        sys.exit(f"{program} cannot work in {place}: {error.strerror or error}")


def placed(directory: Path, header: dict[str, Any]) -> Path:
    """Write the program, read from the input, to a file; return its path."""
    packed = sys.stdin.buffer.read(header["size"])
    if hashlib.sha256(packed).hexdigest() != header["sha256"]:
        sys.exit(f"{PROGRAM} was corrupted on the way: its checksum differs")
    path = directory / PROGRAM
    path.write_bytes(zlib.decompress(packed))
    path.chmod(0o700)
    return path


def require_runnable(program: Path) -> None:
    """Exit with the system's error if the program does not run here."""
    try:
        done = subprocess.run(
            [str(program), "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=VERSION_LIMIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"{PROGRAM} {NOT_RUN}{getattr(error, 'strerror', None) or error}")
    if done.returncode != 0:
        lines = done.stdout.decode(errors="replace").replace(f"{program.parent}/", "").splitlines()
        sys.exit(f"{PROGRAM} {NOT_RUN}{(lines or ['no output'])[-1][:300]}")


def run(program: Path, header: dict[str, Any]) -> None:
    """Run the generator in its directory, with this program's input and output, until either one ends."""
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment.update(header["environment"])
    ours = os.getpid()
    process = subprocess.Popen(
        [str(program), *header["arguments"]], cwd=program.parent, env=environment,
        preexec_fn=lambda: begin_child(ours),  # noqa: PLW1509 — this program has no threads
    )  # fmt: skip
    try:
        status = process.wait()
    finally:
        process.kill()
        process.wait()
    if status != 0:
        sys.exit(f"{PROGRAM} exited with status {status}")


def begin_child(parent: int, cpus: Sequence[int] = ()) -> None:
    """Make a child process die with its parent, even an already dead one; pin it to ``cpus`` if given."""
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    if cpus:
        os.sched_setaffinity(0, cpus)


def send_logs(directory: Path) -> None:
    """Send the generator's logs, the files named ARM.THREAD."""
    for path in sorted(directory.glob("*.*")):
        with path.open("rb") as file:
            for part in iter(functools.partial(file.read, PART_BYTES), b""):
                packed = base64.b64encode(zlib.compress(part, 1)).decode()
                write_line(json.dumps({"event": "log", "file": path.name, "part": packed}))
    write_line(json.dumps({"event": "logs-ended"}))


def end(*_: object) -> NoReturn:
    """Exit with cleanup."""
    sys.exit("the time of the load is over")


def main(greeting: str) -> None:
    """Receive the program, greet, run it, and send its logs. The start command has set the alarm."""
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
            write_line(greeting)
            run(program, header)
            send_logs(Path(directory))


def write_line(text: str) -> None:
    """Write one line to the output."""
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()
