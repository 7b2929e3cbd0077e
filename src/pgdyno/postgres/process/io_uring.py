"""Test whether a PostgreSQL can use io_uring on this host, without starting a server.

``postgres --check``, with which initdb probes a host's limits, sets up shared memory like a server start,
including one io_uring queue per possible server process. So the result covers this build, user, kernel and
limits together. The server's message identifies the cause.

Source: src/backend/storage/aio/method_io_uring.c of PostgreSQL 18; io_uring_setup(2).
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from pgdyno.base.errors import ServerError
from pgdyno.host.probes import IoUringCause, IoUringObstacle
from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.installation import Installation

SWITCH = Path("/proc/sys/kernel/io_uring_disabled")  # since Linux 6.6

_TIMEOUT_S = 20.0
_MESSAGE = re.compile(r"(FATAL|HINT): +(.*)")
_QUEUE = "could not setup io_uring queue: "
_NOT_ALLOWED = (os.strerror(errno.EPERM), os.strerror(errno.EACCES))

_BUILD_IT = "choose a build with liburing: pgdyno server install --from-source 18 --with-liburing"
_SECCOMP = (
    "look for a seccomp filter or a security module: containers forbid io_uring unless their seccomp "
    "profile allows io_uring_setup, io_uring_enter and io_uring_register"
)
_BY_SWITCH = {
    "1": "kernel.io_uring_disabled is 1: make the servers' user a member of the group that "
    "kernel.io_uring_group names, or set it to 0",
    "2": "kernel.io_uring_disabled is 2, which disables io_uring for all users: set it to 0 or 1",
}
_BY_REASON = {
    os.strerror(errno.ENOSYS): (
        IoUringCause.FORBIDDEN,
        "io_uring requires Linux 5.1, and a seccomp filter can hide it: use another kernel or profile",
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

    ``data_directory`` must be initialised and unused by a server; it is not changed.
    """
    argv = [installation.program("postgres"), "--check", "-D", str(data_directory)]
    try:
        done = account.run(
            [*argv, "-c", "io_method=io_uring"], limit_s=timeout_s, environment={"LC_ALL": "C"}
        )
    except ServerError as error:
        return IoUringObstacle(IoUringCause.UNCLEAR, error.message, "try again when the host is less busy")
    if done.returncode == 0:
        return None
    stderr = done.stderr.decode(errors="replace")
    return obstacle_of(stderr, switch.read_text().strip() if switch.is_file() else None)


def obstacle_of(stderr: str, switch: str | None) -> IoUringObstacle:
    """Return the obstacle to io_uring, by the server's error output.

    ``switch`` is the value of kernel.io_uring_disabled; None: the kernel does not have it.
    """
    parts = dict(_MESSAGE.findall(stderr))
    fatal, own_hint = parts.get("FATAL", stderr.strip()), parts.get("HINT", "")
    evidence = f"{fatal}. {own_hint}".rstrip(". ")
    if fatal.startswith(_QUEUE):
        cause, hint = _of_queue(fatal.removeprefix(_QUEUE), switch)
    elif "io_method" in fatal:
        cause, hint = IoUringCause.NOT_COMPILED_IN, _BUILD_IT
    else:
        cause, hint = IoUringCause.UNCLEAR, "see the server's log for the reason"
    return IoUringObstacle(cause, evidence, hint)


def _of_queue(reason: str, switch: str | None) -> tuple[IoUringCause, str]:
    if reason in _NOT_ALLOWED:
        return IoUringCause.FORBIDDEN, _BY_SWITCH.get(switch or "", _SECCOMP)
    return _BY_REASON.get(reason, (IoUringCause.UNCLEAR, "see io_uring_setup(2)"))
