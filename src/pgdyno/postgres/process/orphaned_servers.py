"""Records of scratch servers, to find and end orphaned servers of a killed pgdyno.

A record is an empty file next to a data directory, created before the server starts. All processes of the
server, and only these, inherit a lock on it. So the kernel knows whether any of them still runs, regardless
of its parent, name and process id. Data are removed when the lock is free.

A process's locks are listed in /proc/PID/fdinfo (proc(5)). Only processes of the data directory's owner are
signalled: a server could pass its lock to another user's process.

If the scratch directory's path is too long for sockets, they are in a separate directory. A record in the
scratch directory names it before it is created. Its owner, the servers' account, may have put anything there.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pgdyno.base.errors import ServerError

_SUFFIX = ".server"
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_ENDINGS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)  # fast shutdown; immediate shutdown; last resort
_LIMIT_S = 10.0  # per signal
_POLL_S = 0.05
_OF_SOCKETS = ".sockets"
_PREFIX = "pgdyno-"
_NAME = re.compile(rf"{_PREFIX}[0-9a-f]{{16}}")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def recorded(data_directory: Path) -> Iterator[int]:
    """Record a server before its start; yield the lock's file descriptor, which the server must inherit."""
    record = data_directory.with_name(data_directory.name + _SUFFIX)
    lock = os.open(record, _FLAGS | os.O_RDONLY | os.O_CREAT, 0o600)  # the server may not write to it
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield lock
    finally:
        os.close(lock)


def end_left(directory: Path) -> list[Path]:
    """End the servers recorded in a directory; return the data directories of those still running.

    Raises: ServerError if one does not end.
    """
    return [record.with_suffix("") for record in sorted(directory.glob(f"*{_SUFFIX}")) if _end(record)]


def _end(record: Path) -> bool:
    data_directory = record.with_suffix("")
    lock = os.open(record, _FLAGS | os.O_RDWR)
    try:
        if _is_free(lock):
            return False
        owner = data_directory.lstat().st_uid if data_directory.exists() else None
        for number in _ENDINGS:
            deadline = time.monotonic() + _LIMIT_S
            while time.monotonic() < deadline:
                _signal_holders(lock, owner, number)
                if _is_free(lock):
                    return True
                time.sleep(_POLL_S)
    finally:
        os.close(lock)
    raise ServerError(
        f"could not end a server on {data_directory} left running by a killed pgdyno",
        hint=f"kill the processes that have {record} open: fuser {record}",
    )


def _is_free(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _signal_holders(lock: int, owner: int | None, number: signal.Signals) -> None:
    """Send a signal to the processes of user id ``owner`` that hold a lock on this file."""
    file = os.fstat(lock)
    for entry in Path("/proc").iterdir():
        # The process may have exited, or may not be accessible.
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if entry.name.isdigit() and entry.stat().st_uid == owner:
                _signal_holder(entry, file, number)


def _signal_holder(entry: Path, file: os.stat_result, number: signal.Signals) -> None:
    process = os.pidfd_open(int(entry.name))  # the process id may be reused before the signal is sent
    try:
        if _holds(entry, file):
            for one in (number, signal.SIGCONT):  # a stopped process must continue to handle the first signal
                signal.pidfd_send_signal(process, one)
    finally:
        os.close(process)


def _holds(process: Path, file: os.stat_result) -> bool:
    return any(
        os.path.samestat(descriptor.stat(), file)
        and "FLOCK" in (process / "fdinfo" / descriptor.name).read_text()
        for descriptor in (process / "fd").iterdir()
    )


def make_sockets_elsewhere(scratch: Path, owner: int) -> Path:
    """Create a directory of mode 0700 in the system's directory for temporary files, and return it.

    The record contains ``owner``, the user id of its future owner. Raises: OSError.
    """
    path = Path(tempfile.gettempdir(), f"{_PREFIX}{secrets.token_hex(8)}")
    (scratch / f"{path.name}{_OF_SOCKETS}").write_text(f"{owner} {path}\n")
    path.mkdir(mode=0o700)
    return path


def remove_left_sockets(scratch: Path) -> None:
    """Remove the socket directories that are recorded in a scratch directory.

    A directory with other contents, or a changed owner or mode, is kept; only its record is removed.
    """
    for record in scratch.glob(f"*{_OF_SOCKETS}"):
        owner, _, name = record.read_text(errors="replace").rstrip("\n").partition(" ")
        if owner.isdigit() and _NAME.fullmatch(Path(name).name):
            # It may have been removed regularly, or its owner may be changing it at this moment.
            with suppress(OSError):
                _remove_sockets(Path(name), {int(owner), os.geteuid()})
        record.unlink()


def _remove_sockets(path: Path, owners: set[int]) -> None:
    directory = os.open(path, _DIRECTORY)
    try:
        status = os.fstat(directory)
        if status.st_uid not in owners or stat.S_IMODE(status.st_mode) != stat.S_IRWXU:
            return
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries]
        if all(name.startswith(".s.PGSQL.") for name in names):  # and their lock files
            for name in names:
                os.unlink(name, dir_fd=directory)
            path.rmdir()
    finally:
        os.close(directory)
