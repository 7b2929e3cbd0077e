"""Settings for the journal: values in use, and values in configuration files.

Values are read as they are, secrets included: they never leave the journal, and messages name settings
and lines of files only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from pgdyno.apply.session.query import AUTO_CONF, Connection, ask, run
from pgdyno.base.errors import SettingError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.guc import SETTINGS_QUERY, TAKE_BACK, Guc, guc_of

# Reading pg_file_settings first matters: it makes this session mark what waits for a restart.
_FILES: LiteralString = """
    SELECT sourcefile, sourceline, name, setting, applied, error
      FROM pg_catalog.pg_file_settings
     ORDER BY seqno"""
_PATIENCE_MS = 1000  # arbitrary; reading settings takes milliseconds
_BY_NAME: LiteralString = " WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) pg_catalog.lower(%s)"


@dataclass(frozen=True)
class FileEntry:
    """A line of a configuration file, read by the server. ``name`` is empty where a line is no setting."""

    file: str
    line: int
    name: str
    value: str | None
    is_applied: bool  # whether this is the entry that counts and its value could be used
    error: str | None

    @property
    def is_in_auto_conf(self) -> bool:
        """Whether ALTER SYSTEM is responsible for it."""
        return self.file.endswith("/" + AUTO_CONF)


@answers_of_postgresql()
def read_file_entries(connection: Connection) -> Fact[tuple[FileEntry, ...]]:
    """Return the entries of the configuration files, loaded or not.

    Unknown if the role may not see them.
    """
    rows = ask(connection, _FILES, "pg_file_settings")
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, rows.source)
    return Fact(
        tuple(
            FileEntry(file or "", line or 0, name or "", value, bool(applied), error)
            for file, line, name, value, applied, error in rows.value
        ),
        rows.source,
    )


@answers_of_postgresql()
def read_gucs(connection: Connection) -> dict[str, Guc]:
    """Return the settings that sessions begin with, by name."""
    with connection.transaction(force_rollback=True):
        run(connection, TAKE_BACK, ([], 0, _PATIENCE_MS))
        rows = run(connection, SETTINGS_QUERY)
    return {guc.name: guc.of_new_sessions() for guc in map(guc_of, rows)}


@answers_of_postgresql()
def read_guc(connection: Connection, name: str) -> Guc:
    """Return one setting. Raises: SettingError if the server does not know it."""
    rows = run(connection, SETTINGS_QUERY + _BY_NAME, (name,))
    if not rows:
        raise SettingError(f'unrecognized configuration parameter "{name}"')
    return guc_of(rows[0]).of_new_sessions()
