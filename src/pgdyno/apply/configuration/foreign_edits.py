"""Edits of configuration files by other users that are not in force yet.

A reload by pgdyno would put them into effect, a restart even more of them, and a revert could not undo that.
Therefore they are detected before anything is changed. Pure, apart from ``read_foreign_edits``.
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
"""The server shows the values of the current connection, 0 over a socket, not those of its files."""
_NOT_SHOWN = "(disabled)"  # shown for archive_command while archive_mode is off
_BYTES, _HASH = "auto_conf", "auto_conf_sha256"


@dataclass(frozen=True)
class ForeignEdits:
    """Pending edits in the configuration files, as texts.

    ``unknown``: why the files could not be read; None: they were.
    """

    errors: tuple[str, ...] = ()
    for_reload: tuple[str, ...] = ()
    for_restart: tuple[str, ...] = ()
    unknown: str | None = None

    def check(self, *, with_restart: bool) -> None:
        """Refuse to continue if a reload or restart would put other users' edits into effect.

        Raises: RefusedError with every such line.
        """
        if self.errors:
            raise RefusedError(
                "the server would load nothing from its configuration files, because they contain errors",
                detail="; ".join(self.errors),
                hint="correct them, then try again",
            )
        if self.for_reload:
            raise RefusedError(
                "the server's configuration files contain edits that are not loaded yet",
                detail=f"a reload would put them into effect: {'; '.join(self.for_reload)}",
                hint="load them first (SELECT pg_reload_conf()) or undo them, then try again",
            )
        if with_restart and self.for_restart:
            raise RefusedError(
                f"settings changed by others wait for a restart: {', '.join(self.for_restart)}",
                detail="the plan's restart would put them into effect, and revert could not undo that",
                hint="restart the server first or undo them, then try again",
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
                f"{guc.name} is no longer in any file"
                for name, guc in known.items()
                if _is_gone(guc, name, last)
            ),
        ),
        for_restart=tuple(sorted(guc.name for name, guc in known.items() if _awaits(last.get(name), guc))),
    )


def _place(entry: FileEntry) -> str:
    """Return the entry's place, without its value, which may be a secret."""
    what = entry.name or "a line"
    return f"{what} in {entry.file}, line {entry.line}" + (f": {entry.error}" if entry.error else "")


def _waits(entry: FileEntry, known: Mapping[str, Guc]) -> bool:
    """Whether a valid value waits for a restart: its error is also "could not be applied"."""
    guc = known.get(entry.name.lower())
    return guc is not None and guc.pending_restart


def _awaits(entry: FileEntry | None, guc: Guc) -> bool:
    """Whether a restart would really change the setting.

    The server keeps pending_restart when a setting was added to a file and removed again.
    """
    if not guc.pending_restart:
        return False
    return guc.source == "configuration file" if entry is None else not _is_same(entry, guc)


def _differs(entry: FileEntry, guc: Guc) -> bool:
    """Whether a reload would put the effective entry into effect."""
    if not entry.is_applied or guc.pending_restart or guc.needs_restart:
        return False
    if guc.source == "default":
        return True  # a loaded entry would be the source, even with the default's value
    # The command line, a role or this session overrides the files.
    return guc.source == "configuration file" and not _is_same(entry, guc)


def _is_same(entry: FileEntry, guc: Guc) -> bool:
    if entry.value is None or guc.name in _OF_THE_CONNECTION or guc.setting == _NOT_SHOWN:
        return True
    if guc.vartype == "string":
        return _folded(entry.value) == _folded(guc.setting)
    try:
        return guc.equals(entry.value)
    except SettingError:
        return True  # an alias missing in enumvals; the server accepted it


def _is_gone(guc: Guc, name: str, last: Mapping[str, FileEntry]) -> bool:
    return guc.source == "configuration file" and not guc.pending_restart and name not in last


def _folded(text: str) -> str:
    """Return a text without the server's normalisation: it shows "ISO, DMY" for "iso,dmy"."""
    return re.sub(r"\s*,\s*", ",", text).casefold()


def kept(content: bytes) -> dict[str, str]:
    """Return a file's content as part of a receipt's state."""
    return {_BYTES: base64.b64encode(content).decode(), _HASH: hashlib.sha256(content).hexdigest()}


def former_content(state: Mapping[str, str]) -> bytes | None:
    """Return the file's content in a receipt's state; None if it could not be read at the time.

    Raises: StorageError if the content does not match its checksum.
    """
    if _BYTES not in state:
        return None
    content = base64.b64decode(state[_BYTES], validate=True)
    if hashlib.sha256(content).hexdigest() != state[_HASH]:
        raise StorageError("the receipt's copy of postgresql.auto.conf does not match its checksum")
    return content
