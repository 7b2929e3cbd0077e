"""The operating-system user that servers and generators run as.

PostgreSQL refuses to run as root, and load programs should not either. So root runs both, and builds, as the
account created by ``pgdyno setup --account``, else as the user ``postgres``, else as ``nobody``. Other users
run them as themselves. Programs cannot gain privileges by execve(2), and another account gets only a few of
root's environment variables.
"""

from __future__ import annotations

import math
import os
import pwd
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pgdyno.base import numbers
from pgdyno.base.errors import PrivilegeError, ServerError
from pgdyno.host.child_command import child_command
from pgdyno.host.own_account import COMMENT, NAME, SYSTEM_PATH

_NO_GROUP = 65534  # the kernel's overflow group id: DEFAULT_OVERFLOWGID in linux/highuid.h
_ONE_OFF_IDS = range(61184, 65520)  # systemd's DynamicUser= range, not used by packages or people
_OTHERS = ("postgres", "nobody")  # without pgdyno's own account
_NO_CAPABILITIES = ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all")
_KEPT_VARIABLES = frozenset({"PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "QEMU_LD_PREFIX"})
_MOST_BYTES = 256 << 20  # limit of a program's outputs; the largest is a dump of a new server's databases
_CHUNK_BYTES = 1 << 16
_LOOK_S = 1.0  # arbitrary
_OF_THE_CALLER = frozenset({"HOME", "USER", "LOGNAME"})


@dataclass(frozen=True)
class Account:
    """A user to run processes as. ``is_other``: pgdyno runs as root and has to drop privileges first."""

    name: str
    uid: int
    gid: int
    is_other: bool

    def command(
        self,
        argv: Sequence[str],
        *,
        cpus: Iterable[int] | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
    ) -> list[str]:
        """Return ``argv`` wrapped to run as this user, on ``cpus``, and to end with pgdyno.

        The kernel sends ``death_signal`` when pgdyno's thread ends for any reason, including ``kill -9``. So
        no generator is left frozen, and no scratch server is left running.
        """
        pinned = [] if cpus is None else ["taskset", "--cpu-list", ",".join(str(cpu) for cpu in cpus)]
        name = death_signal.name.removeprefix("SIG")
        return child_command(os.getpid(), [*pinned, *argv], death_signal=name, rights=self._rights())

    def run_as(self, argv: Sequence[str]) -> list[str]:
        """Return ``argv`` wrapped to run as this user, without ``death_signal``: the caller must end it."""
        return ["setpriv", *self._rights(), *argv]

    def run(
        self,
        argv: Sequence[str],
        *,
        limit_s: float | None = None,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
        umask: int = -1,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program as this user, with additional variables, and return its outputs.

        It gets a new session: in pgdyno's session, it could inject commands into the terminal. Processes that
        it leaves running are killed if they keep an output open.
        Raises: ServerError if it does not end in time or prints more than 256 MB; its group is killed then.
        """
        process = subprocess.Popen(
            self.command(argv),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environment(), **(environment or {})},
            start_new_session=True,
            umask=umask,
            pass_fds=pass_fds,
        )
        with process:
            try:
                output, errors = _outputs(process, argv[0], limit_s)
            finally:
                if process.returncode is None:  # not reaped yet, so its process group id is not reused
                    os.killpg(process.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(argv, process.returncode, output, errors)

    def _rights(self) -> list[str]:
        if not self.is_other:
            return ["--no-new-privs"]
        groups = "--init-groups" if self.name else "--clear-groups"
        return ["--no-new-privs", f"--reuid={self.uid}", f"--regid={self.gid}", groups, *_NO_CAPABILITIES]

    def environment(self) -> dict[str, str]:
        """Return the environment of this user's programs.

        Only a few of the caller's variables are kept. Others may hold passwords and tokens, which this user
        could read in /proc; libpq's variables would change the target. Another account gets a fixed PATH.
        """
        kept = _KEPT_VARIABLES if self.is_other else _KEPT_VARIABLES | _OF_THE_CALLER
        found = {name: value for name, value in os.environ.items() if name in kept or name.startswith("LC_")}
        return {**found, "PATH": SYSTEM_PATH} if self.is_other else found

    def require_entry(self, path: Path) -> None:
        """Check that this user can traverse the directories above a path. Raises: PrivilegeError."""
        if not self.is_other:
            return
        with acting_as(self.uid):
            above = reversed(path.absolute().parents)
            closed = next((one for one in above if not os.access(one, os.X_OK, effective_ids=True)), None)
        if closed is not None:
            raise PrivilegeError(
                f'user "{self.name}" cannot enter the directory "{closed}"',
                detail=f"root runs servers, load generators and builds as that user; they need {path}",
                hint="choose a directory that it can reach: pgdyno's files are in PGDYNO_HOME, or in "
                f"/var/lib/pgdyno; or give it access: chmod o+x {closed}",
            )

    def own(self, *paths: os.PathLike[str]) -> None:
        """Make this user the owner of paths created by pgdyno, without following links."""
        if self.is_other:
            for path in paths:
                os.chown(path, self.uid, self.gid, follow_symlinks=False)


def _outputs(process: subprocess.Popen[bytes], program: str, limit_s: float | None) -> tuple[bytes, bytes]:
    """Return stdout and stderr after a program's end. Raises: ServerError, as ``Account.run``."""
    assert process.stdout is not None  # noqa: S101 — both were opened as pipes
    assert process.stderr is not None  # noqa: S101 — as well
    received = {process.stdout: bytearray(), process.stderr: bytearray()}
    ends_s = math.inf if limit_s is None else time.monotonic() + limit_s
    with selectors.DefaultSelector() as selector:
        for stream, buffer in received.items():
            selector.register(stream, selectors.EVENT_READ, buffer)
        while selector.get_map():
            if time.monotonic() >= ends_s:
                raise _too_slow(program, limit_s)
            ready = selector.select(_LOOK_S)
            if not ready and _has_ended(process):
                os.killpg(process.pid, signal.SIGKILL)
                break
            for key, _ in ready:
                if chunk := os.read(key.fd, _CHUNK_BYTES):
                    key.data.extend(chunk)
                else:
                    selector.unregister(key.fileobj)
            if sum(map(len, received.values())) > _MOST_BYTES:
                raise ServerError(
                    f'"{program}" printed more than {numbers.size(_MOST_BYTES)} and was killed',
                    hint="check the program: it is not PostgreSQL's, or it is broken",
                )
    try:
        process.wait(None if limit_s is None else max(0.0, ends_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _too_slow(program, limit_s) from None
    output, errors = (bytes(buffer) for buffer in received.values())
    return output, errors


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, without reaping it: its process id is not reused."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _too_slow(program: str, limit_s: float | None) -> ServerError:
    return ServerError(f'"{program}" did not end within {limit_s:g} s')


def one_off_account() -> Account:
    """Return an unnamed user id that no user or process has, for a program that reads hostile files.

    Not even the servers' account can inspect such a program. Without root, it is the caller.
    """
    if os.geteuid() != 0:
        return caller()
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    for entry in Path("/proc").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the process has ended
            taken.add(entry.stat().st_uid)
    free = next(uid for uid in reversed(_ONE_OFF_IDS) if uid not in taken)
    return Account("", free, free, is_other=True)


def with_environment(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return ``argv`` wrapped so that only it gets these variables, in addition to ``Account.environment``.

    If ``Account.command`` wraps the result, the variables are set after privileges are dropped: a library in
    LD_PRELOAD never runs as root. Raises: ValueError for an invalid variable name.
    """
    if any(not name or "=" in name or name.startswith("-") for name in environment):
        raise ValueError("illegal environment variable name")  # subprocess's message
    assignments = [f"{name}={value}" for name, value in environment.items()]
    return ["env", *assignments, *argv] if assignments else [*argv]


def with_scheduling_policy(argv: Sequence[str], policy: str) -> list[str]:
    """Return ``argv`` wrapped to run, with its children, under a sched(7) policy: other, batch."""
    return ["chrt", f"--{policy}", "0", *argv]


def current_account() -> Account:
    """Return the user for servers and generators, as described in the module's docstring."""
    if os.geteuid() != 0:
        return caller()
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    own = [NAME] if NAME in known and known[NAME].pw_gecos == COMMENT else []
    entry = next(known[name] for name in (*own, *_OTHERS) if name in known)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, is_other=True)


def account_of(uid: int) -> Account:
    """Return the account with a user id. Raises: KeyError if there is no such user."""
    entry = pwd.getpwuid(uid)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, is_other=os.geteuid() == 0 and uid != 0)


@contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """As root, open files and connect with another user's effective ids in the block: credentials(7).

    Root's supplementary groups are dropped, too: they may grant access that the user does not have.
    """
    former = os.getegid(), os.getgroups()
    group, groups = _groups_of(uid)
    os.setgroups(groups)
    try:
        os.setegid(group)
        os.seteuid(uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(former[0])
        os.setgroups(former[1])


def _groups_of(uid: int) -> tuple[int, list[int]]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a container's user has no name on the host, and unknown groups
        return _NO_GROUP, []
    return entry.pw_gid, os.getgrouplist(entry.pw_name, entry.pw_gid)


def caller() -> Account:
    """Return the user that pgdyno itself runs as."""
    entry = pwd.getpwuid(os.geteuid())
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, is_other=False)
