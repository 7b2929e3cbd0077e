"""Write files that set kernel values at boot, and restore their previous content.

A file is replaced atomically, so the machine never boots with a partial file. A killed process may leave a
temporary file next to it, with a name that no program reads; restoring removes it as well.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import OwnershipError, PgdynoError, PrivilegeError, StorageError
from pgdyno.base.ports import Found
from pgdyno.host.files.directory import failure, replace_file, roots_directory, sync_directory, temporary_name
from pgdyno.model.plans.journal import as_bytes, as_text, checksum
from pgdyno.model.plans.plan import PERSISTED_FILE

MADE = "made"  # key of Found.state: missing directories to create, outermost first
MODE, _OWNER, _GROUP = "mode", "owner", "group"
_NEW_MODE, _NEW_DIRECTORY = 0o644, 0o755


@dataclass(frozen=True)
class PersistedFileWriter:
    """Reads, writes and restores files below ``root``, which is ``/`` except in tests; a key is a path."""

    root: Path = Path("/")
    kind: str = PERSISTED_FILE

    def read(self, key: str) -> Found:
        """Return the text, the file's mode and owner, and the missing directories above it."""
        text = self.value_if_any(key)
        state = {"setting": checksum(text), MADE: "\n".join(self._missing(key))}
        if text is None:
            return Found(None, state)
        found = self._locate(key).stat()
        numbers = {MODE: stat.S_IMODE(found.st_mode), _OWNER: found.st_uid, _GROUP: found.st_gid}
        return Found(text, state | {name: str(number) for name, number in numbers.items()})

    def check(self, key: str) -> None:
        """Refuse a file that is not regular, and a directory that is not writable. Changes nothing.

        Raises: OwnershipError, PrivilegeError.
        """
        path = self._locate(key)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OwnershipError(
                f"{key} is not a regular file: it was replaced by something else",
                hint="remove it, or omit --persist",
            )
        directory = self._existing(key)
        try:
            with roots_directory(directory):
                pass
        except OSError as error:
            raise failure(OwnershipError, f"cannot write {key}", error) from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PrivilegeError(
                f"cannot write {key}",
                detail=f"{self._name_of(directory)} is not writable for this user",
                hint="run pgdyno as root, or omit --persist",
            )

    def rehearse(self, key: str, found: Found) -> None:
        """Do nothing: a file that can be replaced once can be replaced again."""

    def write(self, key: str, value: str) -> None:
        """Replace the file. Raises: StorageError, PrivilegeError."""
        try:
            self._replace(key, as_bytes(value), _NEW_MODE, owner=None)
        except OSError as error:
            raise _not_written(key, error) from error

    def restore(self, key: str, found: Found) -> None:
        """Restore the original file, or remove pgdyno's together with the directories created for it.

        Raises: StorageError, PrivilegeError.
        """
        try:
            if found.value is None:
                self._remove(key, found)
            elif self._is_as_found(key, found):
                with roots_directory(self._locate(key).parent) as directory:
                    directory.remove(temporary_name(self._locate(key).name))
            else:
                mode, owner, group = (int(found.state[name]) for name in (MODE, _OWNER, _GROUP))
                self._replace(key, as_bytes(found.value), mode, (owner, group))
        except OSError as error:
            raise _not_written(key, error) from error

    def verify(self, key: str) -> str:
        """Return the checksum of the file on disk."""
        return checksum(self.value_if_any(key))

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's signature
        """Whether two texts are identical."""
        return one == other

    def meets(self, key: str, wanted: str, effective: str) -> bool:  # noqa: ARG002 — the port's signature
        """Whether the checksum is that of the requested text."""
        return checksum(wanted) == effective

    def value_if_any(self, key: str) -> str | None:
        """Return the text; None if the file does not exist. Raises: PrivilegeError."""
        try:
            return as_text(self._locate(key).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise PrivilegeError(f"could not read {key}", detail=error.strerror) from error

    def is_gone(self, found: Found) -> bool:  # noqa: ARG002 — the port's signature
        """Return False: such a file survives a restart."""
        return False

    def is_on_the_way(self, now: str, one: str, other: str) -> bool:  # noqa: ARG002 — the port's signature
        """Return False: a file is replaced atomically."""
        return False

    def _is_as_found(self, key: str, found: Found) -> bool:
        """Whether the original file is still in place: it is not rewritten then, in case the disk is full."""
        if self.value_if_any(key) != found.value:
            return False
        status = self._locate(key).stat()
        present = (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
        return present == tuple(int(found.state[name]) for name in (MODE, _OWNER, _GROUP))

    def _replace(self, key: str, content: bytes, mode: int, owner: tuple[int, int] | None) -> None:
        """Replace content, mode and owner of the file atomically and durably."""
        path = self._locate(key)
        with roots_directory(self._existing(key)):  # so that only root can replace what is created in it
            pass
        for missing in self._missing(key):
            made = self._locate(missing)
            made.mkdir()
            made.chmod(_NEW_DIRECTORY)  # independent of the umask
            sync_directory(made.parent)
        with roots_directory(path.parent) as directory:
            replace_file(directory, path.name, content, mode, owner)

    def _remove(self, key: str, found: Found) -> None:
        path = self._locate(key)
        if path.parent.is_dir():
            with roots_directory(path.parent) as directory:
                for name in (path.name, temporary_name(path.name)):
                    directory.remove(name)
            sync_directory(path.parent)
        for name in reversed(list(filter(None, found.state[MADE].split("\n")))):
            made = self._locate(name)
            with suppress(OSError):  # someone else has added a file, or removed the directory
                made.rmdir()
                sync_directory(made.parent)

    def _missing(self, key: str) -> list[str]:
        """Return the missing directories above a file, outermost first."""
        parents = (parent for parent in self._locate(key).parents if not parent.exists())
        return [self._name_of(parent) for parent in parents][::-1]

    def _existing(self, key: str) -> Path:
        """Return the innermost existing directory above a file."""
        return next(parent for parent in self._locate(key).parents if parent.is_dir())

    def _locate(self, key: str) -> Path:
        return self.root / key.lstrip("/")

    def _name_of(self, path: Path) -> str:
        return f"/{path.relative_to(self.root)}" if path != self.root else "/"


def _not_written(key: str, error: OSError) -> PgdynoError:
    kind = PrivilegeError if isinstance(error, PermissionError) else StorageError
    return failure(kind, f"could not write {key}", error)
