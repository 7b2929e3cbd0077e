"""The operating-system user that servers and generators run as.

PostgreSQL refuses to run as root, and load programs have no business with root either. As root, pgdyno
therefore runs both, and builds, as the account of ``pgdyno setup --account`` where that was made, else as
``postgres`` where that user exists, else as ``nobody``; otherwise as the caller. No program gains privileges
by executing another one, and another account sees little of root's environment.
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

_NO_GROUP = 65534  # as the kernel calls what it cannot tell: DEFAULT_OVERFLOWGID in linux/highuid.h
_ONE_OFF_IDS = range(61184, 65520)  # of systemd's DynamicUser=, which no package and no person has
_OTHERS = ("postgres", "nobody")  # where there is no account of our own
_NO_CAPABILITIES = ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all")
_KEPT_VARIABLES = frozenset({"PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "QEMU_LD_PREFIX"})
_MOST_BYTES = 256 << 20  # of a program's outputs; the largest is a dump of a new server's databases
_CHUNK_BYTES = 1 << 16
_LOOK_S = 1.0  # arbitrary
_OF_THE_CALLER = frozenset({"HOME", "USER", "LOGNAME"})


@dataclass(frozen=True)
class Account:
    """A user to run processes as. ``is_other`` means privileges have to be dropped first."""

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
        """Return ``argv`` wrapped so that it runs as this user, on ``cpus``, and never outlives pgdyno.

        The kernel sends ``death_signal`` when pgdyno's thread ends for whatever reason. This is why a
        generator is never left frozen and a scratch server never left running, also after ``kill -9``.
        """
        pinned = [] if cpus is None else ["taskset", "--cpu-list", ",".join(str(cpu) for cpu in cpus)]
        name = death_signal.name.removeprefix("SIG")
        return child_command(os.getpid(), [*pinned, *argv], death_signal=name, rights=self._rights())

    def run_as(self, argv: Sequence[str]) -> list[str]:
        """Return ``argv`` wrapped so that it runs as this user, for one who sees to its end."""
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
        """Run a program as this user, with variables besides its own, and return its outputs.

        It has a session of its own: in ours it could type commands into our terminal. What it leaves running
        is ended if that keeps an output open.
        Raises: ServerError if it does not end in time, or says more than 256 MB; all of it is ended then.
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
                if process.returncode is None:  # not waited for: its group is still its own
                    os.killpg(process.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(argv, process.returncode, output, errors)

    def _rights(self) -> list[str]:
        if not self.is_other:
            return ["--no-new-privs"]
        groups = "--init-groups" if self.name else "--clear-groups"
        return ["--no-new-privs", f"--reuid={self.uid}", f"--regid={self.gid}", groups, *_NO_CAPABILITIES]

    def environment(self) -> dict[str, str]:
        """Return the variables that programs of this user start with.

        Only a few of the caller's are kept. Others may hold passwords and tokens, which the user could read
        in /proc; libpq's would lead elsewhere. Another account has a fixed PATH.
        """
        kept = _KEPT_VARIABLES if self.is_other else _KEPT_VARIABLES | _OF_THE_CALLER
        found = {name: value for name, value in os.environ.items() if name in kept or name.startswith("LC_")}
        return {**found, "PATH": SYSTEM_PATH} if self.is_other else found

    def require_entry(self, path: Path) -> None:
        """Raise PrivilegeError if a directory above a path is closed to this user."""
        if not self.is_other:
            return
        with acting_as(self.uid):
            above = reversed(path.absolute().parents)
            closed = next((one for one in above if not os.access(one, os.X_OK, effective_ids=True)), None)
        if closed is not None:
            raise PrivilegeError(
                f'user "{self.name}" cannot enter the directory "{closed}"',
                detail=f"servers, load generators and builds of root run as that user, and need {path}",
                hint="choose a directory that it reaches: pgdyno's own files lie in PGDYNO_HOME, or in "
                f"/var/lib/pgdyno; or let it through: chmod o+x {closed}",
            )

    def own(self, *paths: os.PathLike[str]) -> None:
        """Give paths that pgdyno created to this user; of links, the links themselves."""
        if self.is_other:
            for path in paths:
                os.chown(path, self.uid, self.gid, follow_symlinks=False)


def _outputs(process: subprocess.Popen[bytes], program: str, limit_s: float | None) -> tuple[bytes, bytes]:
    """Return both outputs at a program's end. Raises: ServerError, as ``Account.run``."""
    assert process.stdout is not None  # noqa: S101 — both were opened as pipes
    assert process.stderr is not None  # noqa: S101 — as well
    said = {process.stdout: bytearray(), process.stderr: bytearray()}
    ends_s = math.inf if limit_s is None else time.monotonic() + limit_s
    with selectors.DefaultSelector() as selector:
        for stream, buffer in said.items():
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
            if sum(map(len, said.values())) > _MOST_BYTES:
                raise ServerError(
                    f'"{program}" says more than {numbers.size(_MOST_BYTES)}, and was ended',
                    hint="look at the program: it is none of PostgreSQL's, or is broken",
                )
    try:
        process.wait(None if limit_s is None else max(0.0, ends_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _too_slow(program, limit_s) from None
    output, errors = (bytes(buffer) for buffer in said.values())
    return output, errors


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, without waiting for it: its number stays its own."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _too_slow(program: str, limit_s: float | None) -> ServerError:
    return ServerError(f'"{program}" did not end within {limit_s:g} s')


def one_off_account() -> Account:
    """Return a user without a name that nobody and no process is, for a program that reads hostile files.

    Not even the servers' account can look into such a program. Without root, it is the caller.
    """
    if os.geteuid() != 0:
        return caller()
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    for entry in Path("/proc").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            taken.add(entry.stat().st_uid)
    free = next(uid for uid in reversed(_ONE_OFF_IDS) if uid not in taken)
    return Account("", free, free, is_other=True)


def with_environment(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return ``argv`` wrapped so that it alone has these variables, besides those of ``Account.environment``.

    Wrapped once more by ``Account.command``, it gets them when privileges have been dropped: a library that
    they preload never runs as root. Raises: ValueError for what is no name of a variable.
    """
    if any(not name or "=" in name or name.startswith("-") for name in environment):
        raise ValueError("illegal environment variable name")  # as subprocess says
    assignments = [f"{name}={value}" for name, value in environment.items()]
    return ["env", *assignments, *argv] if assignments else [*argv]


def with_scheduling_policy(argv: Sequence[str], policy: str) -> list[str]:
    """Return ``argv`` wrapped so that it and its children run under a policy of sched(7): other, batch."""
    return ["chrt", f"--{policy}", "0", *argv]


def current_account() -> Account:
    """Return the user for servers and generators, by the rule in the module's docstring."""
    if os.geteuid() != 0:
        return caller()
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    own = [NAME] if NAME in known and known[NAME].pw_gecos == COMMENT else []
    entry = next(known[name] for name in (*own, *_OTHERS) if name in known)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, is_other=True)


def account_of(uid: int) -> Account:
    """Return the user of a number, to run something as him if we are root.

    Raises: KeyError if there is no such user.
    """
    entry = pwd.getpwuid(uid)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, is_other=os.geteuid() == 0 and uid != 0)


@contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """As root, be another user where the kernel asks who opens a file or connects: credentials(7).

    Root's groups are left as well: they may read files that are closed to that user.
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
    except KeyError:  # a container's user has no name outside, and no groups that we know
        return _NO_GROUP, []
    return entry.pw_gid, os.getgrouplist(entry.pw_name, entry.pw_gid)


def caller() -> Account:
    """Return the user that pgdyno itself runs as."""
    entry = pwd.getpwuid(os.geteuid())
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, is_other=False)
