"""Storage of pgdyno: copies of binaries, data sets, scratch directories, sockets.

As root this is ``/var/lib/pgdyno``, which an unprivileged server can traverse; else the XDG state
directory. Permissions of directories that pgdyno did not create are never changed.

Root never opens a file by name in a directory that the servers' user may write to: that user could have put
a link there. So scratch directories belong to the caller, and only what servers write themselves (data
directories, sockets, transaction logs) belongs to their account.
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
from pgdyno.postgres.process.left_servers import end_left, make_sockets_elsewhere, remove_left_sockets
from pgdyno.postgres.process.memory_limit import remove_recorded

JOURNAL_FILE = "journal.jsonl"  # of apply/ledger; a home is trusted only if this file is
USER_STATE = Path(".local/state")  # in a home, unless XDG_STATE_HOME names another place
_IN_USE = "in-use.lock"
_TRAVERSABLE = 0o711  # the servers' account reaches what it knows the name of, and lists nothing
_SOCKET = "/.s.PGSQL.65535.lock"
_SMALLER_OR_ELSEWHERE = "choose a smaller --scale, or set PGDYNO_HOME to a directory on a larger disk"
_SOCKET_PATH_BYTES = 107  # sun_path in unix(7), without its final zero byte


@dataclass(frozen=True)
class Workspace:
    """A directory tree owned by pgdyno.

    Every public method creates the directory that it returns.
    """

    root: Path
    account: Account

    def installations(self) -> Path:
        """Return the place of copies of server binaries that the account can reach."""
        return self._directory("installations", mode=0o755)

    def servers(self) -> Path:
        """Return the place of servers that pgdyno built, by name; each is an installation prefix."""
        return self._directory("servers", mode=0o755)

    def builds(self) -> Path:
        """Return the place of downloaded sources and of the logs of builds."""
        return self._directory("builds", mode=0o755)

    def datasets(self) -> Path:
        """Return the place of loaded data directories, by key; never started, only copied."""
        return self._directory("datasets", mode=_TRAVERSABLE)

    def extensions(self) -> Path:
        """Return the place of extensions' libraries that pgdyno compiled, which no server has installed."""
        return self._directory("extensions", mode=0o755)

    def transactions(self) -> Path:
        """Return the place of generators' logs until their round has been read."""
        path = self._directory("transactions", mode=0o700, is_ours=False)
        self.account.own(path)
        return path

    def experiments(self) -> Path:
        """Return the place of the store and the raw series of experiments."""
        return self._directory("experiments", mode=0o700)

    def fleets(self) -> Path:
        """Return the place of the bundles that machines of fleets have answered with."""
        return self._directory("fleets", mode=0o700)

    def databases(self) -> Path:
        """Return the place of the records of databases that were made on other people's servers."""
        return self._directory("databases", mode=0o700)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Reserve this host for measuring, and clean up after killed processes.

        Raises: LockHeldError if another pgdyno measures here: both would only measure each other.
        """
        self._make_root()
        with _own_lock(self.root / MEASURING_LOCK) as lock:
            if not _try_lock(lock):
                raise LockHeldError(
                    "another pgdyno is measuring on this host",
                    detail=f"process {lock.read().strip() or 'unknown'} holds {self.root / MEASURING_LOCK}",
                    hint="wait until it has ended",
                )
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            self.clear_abandoned()
            yield

    def clear_abandoned(self) -> None:
        """Remove the scratch directories of killed processes, and end their servers before, with a warning.

        Raises: ServerError if a server does not end; nothing is removed under it.
        """
        scratch = self.root / "scratch"
        for directory in scratch.iterdir() if scratch.is_dir() else ():
            _remove_if_abandoned(directory)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Provide a directory for scratch data directories and logs, removed at the end.

        Control groups, and directories for sockets, that are recorded in it go with it.
        Raises: ServerError if a group does not.
        """
        path = Path(tempfile.mkdtemp(prefix="run-", dir=self._directory("scratch", mode=_TRAVERSABLE)))
        path.chmod(_TRAVERSABLE)
        new = path / f"{_IN_USE}.new"
        with _own_lock(new) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            new.rename(path / _IN_USE)  # locked, before another process looks at it
            try:
                yield path
            finally:
                _remove(path)  # if that fails, its records stay for the next run to try again

    @contextmanager
    def sockets(self, scratch: Path) -> Iterator[Path]:
        """Provide a 0700 directory for sockets: in ``scratch``, or where the kernel takes its path."""
        if len(f"{scratch}/sockets-12345678{_SOCKET}") <= _SOCKET_PATH_BYTES:
            path = Path(tempfile.mkdtemp(prefix="sockets-", dir=scratch))
        else:
            path = make_sockets_elsewhere(scratch, self.account.uid)
        self.account.own(path)
        try:
            yield path
        finally:
            shutil.rmtree(path)

    def require_free(self, needed_bytes: int, purpose: str, hint: str = _SMALLER_OR_ELSEWHERE) -> None:
        """Raise StorageError now rather than in the middle of a copy or a load."""
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
        """Make the directory, and those above it. Where the account is another user, it gets through them."""
        missing = [path for path in (self.root, *self.root.parents) if not path.is_dir()]
        for path in reversed(missing):
            path.mkdir(exist_ok=True)  # another pgdyno of ours may make it at the same moment
            _require_ours(path)
            if self.account.is_other:
                path.chmod(0o755)  # whatever the umask


def _own_lock(path: Path, *, may_make: bool = True) -> IO[str]:
    """Open a lock file, made if need be; no link is followed.

    Raises: StorageError; FileNotFoundError if it is not there and may not be made.
    """
    made = os.O_CREAT if may_make else 0
    try:
        descriptor = os.open(path, os.O_RDWR | made | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"could not open {path}", detail=error.strerror) from error
    return os.fdopen(descriptor, "r+")


def _require_ours(path: Path) -> None:
    """Raise StorageError for a directory, or a link, of another user."""
    owner, caller = path.lstat().st_uid, os.geteuid()
    if owner != caller:
        raise StorageError(
            f"{path} belongs to user {owner}, and you are user {caller}",
            detail="pgdyno removes and runs what it finds there",
            hint="remove it if nothing in it is needed, or set PGDYNO_HOME to another directory",
        )


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_if_abandoned(directory: Path) -> None:
    """Remove a scratch directory whose process was killed: nobody holds its lock any more."""
    in_use = directory / _IN_USE
    try:
        lock = _own_lock(in_use, may_make=False)
    except FileNotFoundError:
        return  # it is being made, or removed, at this very moment
    with lock:
        if _try_lock(lock) and in_use.exists():
            for data_directory in _remove(directory):
                message = f"ended a server that a killed pgdyno had left running: {data_directory}"
                warnings.warn(message, LeftServerWarning, stacklevel=2)


def _remove(directory: Path) -> list[Path]:
    """Remove a scratch directory; return the data directories whose servers had to be ended before."""
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
    """Return the command by which root runs pgdyno as another user, in a home of that user's.

    It has none of root's variables but PATH, which that user could read, and a terminal of its own: in
    root's, the user could type commands.
    """
    is_usual = home == Path(pwd.getpwnam(name).pw_dir) / USER_STATE / "pgdyno"
    place = [] if is_usual else [f"PGDYNO_HOME={home}"]
    return f'env -i PATH="$PATH" {shlex.join([*place, "runuser", "--pty", "-u", name, "--", *words])}'
