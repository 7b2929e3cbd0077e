"""pgdyno's storage: copies of binaries, data sets, scratch directories, sockets.

For root it is ``/var/lib/pgdyno``, which an unprivileged server can traverse, else the XDG state directory.
Permissions of directories that pgdyno did not create are never changed.

Root never opens a file by name in a directory that the servers' user can write to: that user could have
placed a link there. So scratch directories belong to the caller, and only files written by servers and
generators (data directories, sockets, transaction logs) belong to their account.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pgdyno.base import numbers
from pgdyno.base.errors import LeftServerWarning, LockHeldError, StorageError
from pgdyno.host.own_account import MEASURING_LOCK
from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.memory_limit import remove_recorded
from pgdyno.postgres.process.orphaned_servers import end_left, make_sockets_elsewhere, remove_left_sockets

JOURNAL_FILE = "journal.jsonl"  # of apply/ledger; a workspace is trusted only if this file is
USER_STATE = Path(".local/state")  # in a home directory, unless XDG_STATE_HOME is set
_IN_USE = "in-use.lock"
_TRAVERSABLE = 0o711  # the servers' account can open known names, but cannot list the directory
_SOCKET = "/.s.PGSQL.65535.lock"
_SPACE_HINT = "choose a smaller --scale, or set PGDYNO_HOME to a directory on a larger disk"
_SOCKET_PATH_BYTES = 107  # sun_path in unix(7), without its final zero byte


@dataclass(frozen=True)
class Workspace:
    """A directory tree owned by pgdyno.

    Every public method that returns a directory creates it.
    """

    root: Path
    account: Account

    def installations(self) -> Path:
        """Return the directory for copies of server binaries that the account can reach."""
        return self._directory("installations", mode=0o755)

    def servers(self) -> Path:
        """Return the directory for servers built by pgdyno, by name; each is an installation prefix."""
        return self._directory("servers", mode=0o755)

    def builds(self) -> Path:
        """Return the directory for downloaded sources and build logs."""
        return self._directory("builds", mode=0o755)

    def datasets(self) -> Path:
        """Return the directory for loaded data directories, by key; they are copied, never started."""
        return self._directory("datasets", mode=_TRAVERSABLE)

    def extensions(self) -> Path:
        """Return the directory for extension libraries compiled by pgdyno and not installed in a server."""
        return self._directory("extensions", mode=0o755)

    def transactions(self) -> Path:
        """Return the directory for generators' logs, which are kept until their round has been read."""
        path = self._directory("transactions", mode=0o700, is_ours=False)
        self.account.own(path)
        return path

    def experiments(self) -> Path:
        """Return the directory for the store and the raw series of experiments."""
        return self._directory("experiments", mode=0o700)

    def fleets(self) -> Path:
        """Return the directory for result bundles from machines of fleets."""
        return self._directory("fleets", mode=0o700)

    def databases(self) -> Path:
        """Return the directory for the records of databases created on users' servers."""
        return self._directory("databases", mode=0o700)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Reserve this host for a measurement, and clean up after killed processes.

        Raises: LockHeldError if another pgdyno is measuring here: the measurements would disturb each other.
        """
        self._make_root()
        with _own_lock(self.root / MEASURING_LOCK) as lock:
            if not _try_lock(lock):
                raise LockHeldError(
                    "another pgdyno is measuring on this host",
                    detail=f"process {lock.read().strip() or 'unknown'} holds {self.root / MEASURING_LOCK}",
                    hint="wait until it has finished",
                )
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            self.remove_orphans()
            yield

    def remove_orphans(self) -> None:
        """End the servers of killed processes, with a warning, and remove their scratch directories.

        Raises: ServerError if a server does not end; its directory is kept.
        """
        scratch = self.root / "scratch"
        for directory in scratch.iterdir() if scratch.is_dir() else ():
            _remove_if_abandoned(directory)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Provide a directory for scratch data directories and logs, removed at the end.

        Control groups and socket directories that are recorded in it are removed, too.
        Raises: ServerError if a group cannot be removed.
        """
        path = Path(tempfile.mkdtemp(prefix="run-", dir=self._directory("scratch", mode=_TRAVERSABLE)))
        path.chmod(_TRAVERSABLE)
        new = path / f"{_IN_USE}.new"
        with _own_lock(new) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            new.rename(path / _IN_USE)  # already locked when it gets the name that other processes check
            try:
                yield path
            finally:
                _remove(path)  # if this fails, the records remain for the next run's attempt

    @contextmanager
    def sockets(self, scratch: Path) -> Iterator[Path]:
        """Provide a 0700 directory for sockets: in ``scratch``, or elsewhere if that path is too long."""
        if len(f"{scratch}/sockets-12345678{_SOCKET}") <= _SOCKET_PATH_BYTES:
            path = Path(tempfile.mkdtemp(prefix="sockets-", dir=scratch))
        else:
            path = make_sockets_elsewhere(scratch, self.account.uid)
        self.account.own(path)
        try:
            yield path
        finally:
            shutil.rmtree(path)

    def room_hint(self) -> str:
        """Return the hint for data sets that do not fit on the disk."""
        return (
            f"remove data kept for SQL that is no longer compared ({self.datasets() / '*-sql*'}), "
            "or set PGDYNO_HOME to a directory on a larger disk"
        )

    def require_free(self, needed_bytes: int, purpose: str, hint: str = _SPACE_HINT) -> None:
        """Check for free disk space before a copy or a load. Raises: StorageError."""
        self._make_root()
        free_bytes = shutil.disk_usage(self.root).free
        if free_bytes < needed_bytes:
            raise StorageError(
                f"not enough disk space in {self.root} for {purpose}",
                detail=f"needed {numbers.size(needed_bytes)}, free {numbers.size(free_bytes)}",
                hint=hint,
            )

    def _directory(self, name: str, *, mode: int, is_ours: bool = True) -> Path:
        self._make_root()
        path = self.root / name
        if not path.is_dir():
            path.mkdir(mode=mode)
            path.chmod(mode)  # whatever the umask
        if is_ours:
            _require_ours(path)
        return path

    def _make_root(self) -> None:
        """Create the root directory with its parents, traversable for the account if it is another user."""
        missing = [path for path in (self.root, *self.root.parents) if not path.is_dir()]
        for path in reversed(missing):
            path.mkdir(exist_ok=True)  # the same user's other pgdyno may create it concurrently
            _require_ours(path)
            if self.account.is_other:
                path.chmod(0o755)  # whatever the umask


def _own_lock(path: Path, *, may_make: bool = True) -> IO[str]:
    """Open a lock file without following links, and create it if ``may_make``.

    Raises: StorageError; FileNotFoundError if it does not exist and is not created.
    """
    create = os.O_CREAT if may_make else 0
    try:
        descriptor = os.open(path, os.O_RDWR | create | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"could not open {path}", detail=error.strerror) from error
    return os.fdopen(descriptor, "r+")


def _require_ours(path: Path) -> None:
    """Check that a directory, or a link itself, belongs to the caller. Raises: StorageError."""
    owner, caller = path.lstat().st_uid, os.geteuid()
    if owner != caller:
        raise StorageError(
            f"{path} belongs to user {owner}, but you are user {caller}",
            detail="pgdyno deletes and executes files in it",
            hint="remove it if its contents are not needed, or set PGDYNO_HOME to another directory",
        )


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_if_abandoned(directory: Path) -> None:
    """Remove a scratch directory of a killed process: its lock is free."""
    in_use = directory / _IN_USE
    try:
        lock = _own_lock(in_use, may_make=False)
    except FileNotFoundError:
        return  # it is being created or removed at this moment
    with lock:
        if _try_lock(lock) and in_use.exists():
            for data_directory in _remove(directory):
                message = f"ended a server left running by a killed pgdyno: {data_directory}"
                warnings.warn(message, LeftServerWarning, stacklevel=2)


def _remove(directory: Path) -> list[Path]:
    """Remove a scratch directory; return the data directories of servers that had to be ended."""
    ended = end_left(directory)
    remove_recorded(directory)
    remove_left_sockets(directory)
    shutil.rmtree(directory)
    return ended


def default_root() -> Path:
    """Return ``$PGDYNO_HOME``, else ``/var/lib/pgdyno`` as root, else the XDG state directory."""
    if home := os.environ.get("PGDYNO_HOME"):
        return Path(home)
    if os.geteuid() == 0:
        return Path("/var/lib/pgdyno")
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / USER_STATE)
    return Path(state) / "pgdyno"


def as_owner(name: str, home: Path, words: Sequence[str]) -> str:
    """Return a shell command with which root runs pgdyno as another user, in that user's workspace.

    It passes none of root's environment variables but PATH, because that user could read them. It uses a new
    pseudo-terminal, because the user could inject commands into root's terminal.
    """
    is_usual = home == Path(pwd.getpwnam(name).pw_dir) / USER_STATE / "pgdyno"
    place = [] if is_usual else [f"PGDYNO_HOME={home}"]
    return f'env -i PATH="$PATH" {shlex.join([*place, "runuser", "--pty", "-u", name, "--", *words])}'
