"""Settings for the journal: values in effect, and values in configuration files.

Values are read unchanged, including secrets: they never leave the journal, and messages contain only names of
settings and lines of files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from pgdyno.apply.session.query import AUTO_CONF, Connection, ask, run
from pgdyno.base.errors import SettingError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.guc import RESET_SESSION_SETTINGS, SETTINGS_QUERY, Guc, guc_of

# pg_file_settings must be read first: that updates pending_restart in this session.
_FILES: LiteralString = """
    SELECT sourcefile, sourceline, name, setting, applied, error
      FROM pg_catalog.pg_file_settings
     ORDER BY seqno"""
_PATIENCE_MS = 1000  # arbitrary; reading settings takes milliseconds
_BY_NAME: LiteralString = " WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) pg_catalog.lower(%s)"


@dataclass(frozen=True)
class FileEntry:
    """A line of a configuration file, as read by the server. ``name`` empty: the line is not a setting."""

    file: str
    line: int
    name: str
    value: str | None
    is_applied: bool  # whether this is the effective entry and its value could be applied
    error: str | None

    @property
    def is_in_auto_conf(self) -> bool:
        """Whether it is in postgresql.auto.conf, which ALTER SYSTEM writes."""
        return self.file.endswith("/" + AUTO_CONF)


@checked_results()
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


@checked_results()
def read_gucs(connection: Connection) -> dict[str, Guc]:
    """Return the settings of new sessions, by name."""
    with connection.transaction(force_rollback=True):
        run(connection, RESET_SESSION_SETTINGS, ([], 0, _PATIENCE_MS))
        rows = run(connection, SETTINGS_QUERY)
    return {guc.name: guc.of_new_sessions() for guc in map(guc_of, rows)}


@checked_results()
def read_guc(connection: Connection, name: str) -> Guc:
    """Return one setting. Raises: SettingError if the server does not know it."""
    rows = run(connection, SETTINGS_QUERY + _BY_NAME, (name,))
    if not rows:
        raise SettingError(f'unrecognized configuration parameter "{name}"')
    return guc_of(rows[0]).of_new_sessions()
