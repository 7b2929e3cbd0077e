"""Edits of configuration files by other users that are not in force yet.

Our reload would put them in force, our restart even more of them, and no revert of ours could take that
back. They are therefore found before anything is changed. Pure, apart from ``read_foreign_edits``.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pgdyno.apply.session.query import Connection
from pgdyno.apply.session.settings import FileEntry, read_file_entries, read_gucs
from pgdyno.base.errors import RefusedError, SettingError, StorageError
from pgdyno.base.facts import Unknown
from pgdyno.postgres.guc import Guc

_OF_THE_CONNECTION = frozenset(
    {"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"}
)
"""The server shows those of the asking connection, 0 over a socket, and not what its files say."""
_NOT_SHOWN = "(disabled)"  # archive_command, while archive_mode is off
_BYTES, _HASH = "auto_conf", "auto_conf_sha256"


@dataclass(frozen=True)
class ForeignEdits:
    """Pending edits in the configuration files, in words.

    ``unknown`` gives the reason why the files could not be read.
    """

    errors: tuple[str, ...] = ()
    for_reload: tuple[str, ...] = ()
    for_restart: tuple[str, ...] = ()
    unknown: str | None = None

    def check(self, *, with_restart: bool) -> None:
        """Refuse to continue if our reload or restart would activate other users' edits.

        Raises: RefusedError with every such line.
        """
        if self.errors:
            raise RefusedError(
                "the server's configuration files contain errors: nothing would be loaded from them",
                detail="; ".join(self.errors),
                hint="correct them, then try again",
            )
        if self.for_reload:
            raise RefusedError(
                "the server's configuration files contain edits that are not loaded yet",
                detail=f"a reload would put them in force: {'; '.join(self.for_reload)}",
                hint="load them first (SELECT pg_reload_conf()) or take them back, then try again",
            )
        if with_restart and self.for_restart:
            raise RefusedError(
                f"settings changed by others wait for a restart: {', '.join(self.for_restart)}",
                detail="the restart that the plan needs would put them in force, which revert could not undo",
                hint="restart the server first or take them back, then try again",
            )


def read_foreign_edits(connection: Connection) -> ForeignEdits:
    """Compare the configuration files with the server's values in use. Reads only."""
    entries = read_file_entries(connection)  # before pg_settings: see apply/session/settings.py
    gucs = read_gucs(connection)
    if isinstance(entries.value, Unknown):
        waiting = tuple(sorted(guc.name for guc in gucs.values() if guc.pending_restart))
        return ForeignEdits(for_restart=waiting, unknown=entries.value.reason)
    return foreign_edits(entries.value, gucs)


def foreign_edits(entries: Iterable[FileEntry], gucs: Mapping[str, Guc]) -> ForeignEdits:
    """Find errors, unloaded edits, and settings that wait for a restart."""
    known = {name.lower(): guc for name, guc in gucs.items()}
    entries = tuple(entries)
    last = {entry.name.lower(): entry for entry in entries if entry.name}
    return ForeignEdits(
        errors=tuple(_place(entry) for entry in entries if entry.error and not _waits(entry, known)),
        for_reload=(
            *(
                _place(entry)
                for name, entry in last.items()
                if name in known and _differs(entry, known[name])
            ),
            *(
                f"{guc.name} is in no file any more"
                for name, guc in known.items()
                if _is_gone(guc, name, last)
            ),
        ),
        for_restart=tuple(sorted(guc.name for name, guc in known.items() if _awaits(last.get(name), guc))),
    )


def _place(entry: FileEntry) -> str:
    """Name the line, not the value, which may be a secret."""
    what = entry.name or "a line"
    return f"{what} in {entry.file}, line {entry.line}" + (f": {entry.error}" if entry.error else "")


def _waits(entry: FileEntry, known: Mapping[str, Guc]) -> bool:
    """Tell an error from a good value that waits for a restart: both "could not be applied"."""
    guc = known.get(entry.name.lower())
    return guc is not None and guc.pending_restart


def _awaits(entry: FileEntry | None, guc: Guc) -> bool:
    """Whether a restart would really change it.

    The server keeps the mark when a setting that had been added to a file was taken out again.
    """
    if not guc.pending_restart:
        return False
    return guc.source == "configuration file" if entry is None else not _is_same(entry, guc)


def _differs(entry: FileEntry, guc: Guc) -> bool:
    """Whether a reload would take over the entry that counts."""
    if not entry.is_applied or guc.pending_restart or guc.needs_restart:
        return False
    if guc.source == "default":
        return True  # a loaded entry would be the source, also with the default's value
    # The command line, a role or this session hides what is configured.
    return guc.source == "configuration file" and not _is_same(entry, guc)


def _is_same(entry: FileEntry, guc: Guc) -> bool:
    if entry.value is None or guc.name in _OF_THE_CONNECTION or guc.setting == _NOT_SHOWN:
        return True
    if guc.vartype == "string":
        return _folded(entry.value) == _folded(guc.setting)
    try:
        return guc.equals(entry.value)
    except SettingError:
        return True  # an alias that enumvals does not show; the server itself accepted it


def _is_gone(guc: Guc, name: str, last: Mapping[str, FileEntry]) -> bool:
    return guc.source == "configuration file" and not guc.pending_restart and name not in last


def _folded(text: str) -> str:
    """Return a text without the differences that the server makes: it shows "ISO, DMY" for "iso,dmy"."""
    return re.sub(r"\s*,\s*", ",", text).casefold()


def kept(content: bytes) -> dict[str, str]:
    """Return the part of a receipt's state that holds a file."""
    return {_BYTES: base64.b64encode(content).decode(), _HASH: hashlib.sha256(content).hexdigest()}


def former_content(state: Mapping[str, str]) -> bytes | None:
    """Return the file that a receipt holds; None if it could not be read at the time.

    Raises: StorageError if the bytes are not those that were put in.
    """
    if _BYTES not in state:
        return None
    content = base64.b64decode(state[_BYTES], validate=True)
    if hashlib.sha256(content).hexdigest() != state[_HASH]:
        raise StorageError("the receipt's copy of postgresql.auto.conf does not fit its checksum")
    return content
