"""Create the account that runs servers and builds, and remove it together with its files.

shadow's programs create and remove user and group; they lock the files that they change, and replace them
atomically. They are killed when pgdyno exits. That leaves a complete account, a partial one or none, and
restoring handles all three. They inherit a lock that the next pgdyno waits for, because the kernel releases
pgdyno's own locks before it kills them.

A removed account's uid may be reused for another user. Therefore its files in the workspace are removed with
it: data sets, which can be loaded again, and unfinished builds.
"""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import OwnershipError, PrivilegeError, RefusedError, ServerError, StorageError
from pgdyno.base.ports import Found
from pgdyno.host.child_command import child_command
from pgdyno.host.files.lock import exclusive_lock
from pgdyno.host.own_account import (
    COMMENT,
    HOME,
    KEY,
    MAKING,
    MEASURING_LOCK,
    NAME,
    REMOVING,
    REMOVING_GROUP,
    SHELL,
    WANTED,
)
from pgdyno.model.plans.plan import ACCOUNT

FILES_BELOW = "files_below"  # key of Found.state: the workspace with the account's files
_WITHOUT_GROUP, _GROUP_ALONE = "user without its group", "group without its user"
_LOCK = "account.lock"
_PROGRAMS = (MAKING[0], REMOVING[0], REMOVING_GROUP[0])
_UIDS = re.compile(r"^Uid:\s+(.*)$", re.MULTILINE)  # real, effective, saved, of file systems: proc(5)
_PROCESS_NAME = re.compile(r"^Name:\s+(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class AccountWriter:
    """Creates and removes the account; the only key is ``KEY``.

    ``files_below``: the workspace, recorded in receipts: the account's files are removed only there. None:
    use the receipt's.
    """

    files_below: Path | None = None
    kind: str = ACCOUNT

    def read(self, key: str) -> Found:
        """Return the present account, and the workspace."""
        state = {} if self.files_below is None else {FILES_BELOW: str(self.files_below)}
        with _alone(self.files_below):
            return Found(self.value_if_any(key), state)

    def check(self, key: str) -> None:
        """Refuse without root or the required programs, or if the name is taken. Changes nothing.

        Raises: PrivilegeError, ServerError, OwnershipError.
        """
        if os.geteuid() != 0:
            raise PrivilegeError(f"only root can create the {KEY}", hint="sudo pgdyno setup --account")
        missing = [program for program in _PROGRAMS if shutil.which(program) is None]
        if missing:
            raise ServerError(
                f"the {KEY} cannot be created on this host",
                detail=f"missing: {', '.join(missing)}",
                hint="install the package passwd (Debian, Ubuntu) or shadow-utils (RHEL, Fedora)",
            )
        present = self.value_if_any(key)
        if present not in (None, WANTED):
            raise _taken(str(present))

    def rehearse(self, key: str, found: Found) -> None:
        """Do nothing: an account that can be created can be removed."""

    def write(self, key: str, value: str) -> None:  # noqa: ARG002 — the port's signature
        """Create user and group. Raises: ServerError with useradd's message."""
        with _alone(self.files_below) as lock:
            _run(MAKING, lock)

    def restore(self, key: str, found: Found) -> None:  # noqa: ARG002 — the port's signature
        """Remove the account with its files in the workspace.

        Raises: RefusedError while processes run as it, or for another workspace; LockHeldError while pgdyno
        measures or builds; OwnershipError if another user has that name now; StorageError, ServerError.
        """
        below = Path(found.state[FILES_BELOW])
        if self.files_below is not None and below.resolve() != self.files_below.resolve():
            raise RefusedError(
                f"the {KEY} belongs to a different workspace",
                detail=f"it was created for {below}, and the present one is {self.files_below}",
                hint=f"run PGDYNO_HOME={below} pgdyno revert --host-only, which uses the journal there",
            )
        with _alone(below) as lock:
            user = _user()
            if user is not None and user.pw_gecos != COMMENT:
                raise _taken(_described(user))
            if user is not None:
                with exclusive_lock(below / MEASURING_LOCK) if below.is_dir() else nullcontext():
                    _require_unused(user.pw_uid)
                    remove_files(below, user.pw_uid)
                    _run(REMOVING, lock)
            if _group() is not None:  # userdel keeps it if USERGROUPS_ENAB is no in login.defs
                _run(REMOVING_GROUP, lock)

    def verify(self, key: str) -> str | None:
        """Return the account as in the system's user database."""
        return self.value_if_any(key)

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's signature
        """Whether two accounts are the same."""
        return one == other

    def meets(self, key: str, wanted: str, effective: str) -> bool:  # noqa: ARG002 — the port's signature
        """Whether the account is the requested one."""
        return wanted == effective

    def value_if_any(self, key: str) -> str | None:  # noqa: ARG002 — the port's signature
        """Return a description of the account: ``WANTED`` if it is as created by pgdyno; None: no account."""
        user, group = _user(), _group()
        if user is None:
            return None if group is None else f"{_GROUP_ALONE}, gid {group.gr_gid}"
        if user.pw_gecos != COMMENT:
            return _described(user)
        if group is None or group.gr_gid != user.pw_gid:
            return _WITHOUT_GROUP
        return WANTED if (user.pw_dir, user.pw_shell) == (HOME, SHELL) else _described(user)

    def is_gone(self, found: Found) -> bool:  # noqa: ARG002 — the port's signature
        """Return False: an account outlives a restart."""
        return False

    def is_on_the_way(self, now: str, one: str, other: str) -> bool:  # noqa: ARG002 — the port's signature
        """Whether an interrupted useradd or userdel may have left this."""
        return now.startswith((_WITHOUT_GROUP, _GROUP_ALONE))


def remove_files(below: Path, uid: int) -> None:
    """Remove a user's files below a directory, and the user's directories with all contents.

    Names are looked up relative to open directories, so that no link is followed. Raises: StorageError.
    """
    try:
        for _, directories, files, place in os.fwalk(below):
            for name in (*directories, *files):
                status = os.stat(name, dir_fd=place, follow_symlinks=False)
                if status.st_uid != uid:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    directories.remove(name)
                    shutil.rmtree(name, dir_fd=place)
                else:
                    os.unlink(name, dir_fd=place)
    except OSError as error:
        raise StorageError(
            f"could not remove the files of the {KEY} below {below}", detail=str(error)
        ) from error


@contextmanager
def _alone(below: Path | None) -> Iterator[tuple[int, ...]]:
    """Wait for and hold the lock of programs that create or remove the account; they inherit it.

    Yields the lock's descriptor; empty without a workspace.
    """
    if below is None or not below.is_dir():
        yield ()
        return
    lock = os.open(below / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield (lock,)
    finally:
        os.close(lock)


def _run(argv: Sequence[str], inherited: tuple[int, ...]) -> None:
    """Run a program that is killed when pgdyno exits. Raises: ServerError with its error output."""
    done = subprocess.run(
        child_command(os.getpid(), argv),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        pass_fds=inherited,
    )
    if done.returncode != 0:
        raise ServerError(
            f"{argv[0]} failed with status {done.returncode}", detail=done.stderr.strip() or None
        )


def _require_unused(uid: int) -> None:
    """Raise RefusedError if processes run as a user."""
    if processes := _processes_of(uid):
        raise RefusedError(
            f"the {KEY} is in use",
            detail=f"processes that must end first: {', '.join(processes)}",
            hint="end them, or wait until pgdyno has ended",
        )


def _processes_of(uid: int) -> list[str]:
    found = []
    for entry in sorted(Path("/proc").iterdir(), key=lambda one: one.name.zfill(10)):
        if not entry.name.isdigit():
            continue
        with suppress(FileNotFoundError, ProcessLookupError):  # the process has exited
            status = (entry / "status").read_text(errors="replace")
            uids, name = _UIDS.search(status), _PROCESS_NAME.search(status)
            if uids is not None and str(uid) in uids[1].split():
                found.append(f"{entry.name} ({name[1] if name else '?'})")
    return found


def _user() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(NAME)
    except KeyError:
        return None


def _group() -> grp.struct_group | None:
    try:
        return grp.getgrnam(NAME)
    except KeyError:
        return None


def _described(user: pwd.struct_passwd) -> str:
    return (
        f'user with uid {user.pw_uid}, comment "{user.pw_gecos}", home {user.pw_dir}, shell {user.pw_shell}'
    )


def _taken(present: str) -> OwnershipError:
    return OwnershipError(
        f'the name "{NAME}" is taken by a user or group unlike the one pgdyno creates',
        detail=present,
        hint="pgdyno runs nothing as this user; rename or remove it, then try again",
    )
