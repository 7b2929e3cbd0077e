"""Whether a PostgreSQL can use io_uring here: it tries, without being started.

``postgres --check``, which initdb uses to find out what a host allows, sets up shared memory as a start does,
and with it one io_uring queue for every process that the server may have. So the answer holds for this build,
this user, this kernel and these limits together; what the server says tells the causes apart.

Source: src/backend/storage/aio/method_io_uring.c of PostgreSQL 18; io_uring_setup(2).
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from pgdyno.base.errors import ServerError
from pgdyno.host.io_uring import IoUringCause, IoUringObstacle
from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.installation import Installation

SWITCH = Path("/proc/sys/kernel/io_uring_disabled")  # since Linux 6.6

_TIMEOUT_S = 20.0
_SAID = re.compile(r"(FATAL|HINT): +(.*)")
_QUEUE = "could not setup io_uring queue: "
_NOT_ALLOWED = (os.strerror(errno.EPERM), os.strerror(errno.EACCES))

_BUILD_IT = "choose a build with liburing: pgdyno server install --from-source 18 --with-liburing"
_SECCOMP = (
    "look for a seccomp filter or a security module: containers forbid it unless they are started with "
    "a profile that allows io_uring_setup, io_uring_enter and io_uring_register"
)
_BY_SWITCH = {
    "1": "kernel.io_uring_disabled is 1: make the servers' user a member of the group that "
    "kernel.io_uring_group names, or set it to 0",
    "2": "kernel.io_uring_disabled is 2, which forbids it to everybody: set it to 0 or 1",
}
_BY_REASON = {
    os.strerror(errno.ENOSYS): (
        IoUringCause.FORBIDDEN,
        "io_uring came with Linux 5.1, and a seccomp filter can hide it: choose another kernel or profile",
    ),
    os.strerror(errno.ENOMEM): (
        IoUringCause.MEMLOCK,
        "raise the limit for the servers' user: ulimit -l, or LimitMEMLOCK= of its systemd unit",
    ),
    os.strerror(errno.EMFILE): (
        IoUringCause.OPEN_FILES,
        "raise the limit for the servers' user: ulimit -n, or LimitNOFILE= of its systemd unit",
    ),
}


def io_uring_obstacle(
    installation: Installation,
    account: Account,
    data_directory: Path,
    *,
    switch: Path = SWITCH,
    timeout_s: float = _TIMEOUT_S,
) -> IoUringObstacle | None:
    """Return the obstacle to io_uring for servers of this account; None if none.

    ``data_directory`` is an initialised one that no server runs on; it stays as it is.
    """
    argv = [installation.program("postgres"), "--check", "-D", str(data_directory)]
    try:
        done = account.run(
            [*argv, "-c", "io_method=io_uring"], limit_s=timeout_s, environment={"LC_ALL": "C"}
        )
    except ServerError as error:
        return IoUringObstacle(IoUringCause.UNCLEAR, error.message, "try again when the host has less to do")
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace")
    return obstacle_of(said, switch.read_text().strip() if switch.is_file() else None)


def obstacle_of(said: str, switch: str | None) -> IoUringObstacle:
    """Return the obstacle to io_uring, from the server's own words.

    ``switch`` is the value of kernel.io_uring_disabled; None: the kernel has no such switch.
    """
    parts = dict(_SAID.findall(said))
    fatal, own_hint = parts.get("FATAL", said.strip()), parts.get("HINT", "")
    evidence = f"{fatal}. {own_hint}".rstrip(". ")
    if fatal.startswith(_QUEUE):
        cause, hint = _of_queue(fatal.removeprefix(_QUEUE), switch)
    elif "io_method" in fatal:
        cause, hint = IoUringCause.NOT_COMPILED_IN, _BUILD_IT
    else:
        cause, hint = IoUringCause.UNCLEAR, "the server's log may have the reason"
    return IoUringObstacle(cause, evidence, hint)


def _of_queue(reason: str, switch: str | None) -> tuple[IoUringCause, str]:
    """Return the cause and the hint for the kernel's reason."""
    if reason in _NOT_ALLOWED:
        return IoUringCause.FORBIDDEN, _BY_SWITCH.get(switch or "", _SECCOMP)
    return _BY_REASON.get(reason, (IoUringCause.UNCLEAR, "see io_uring_setup(2)"))
