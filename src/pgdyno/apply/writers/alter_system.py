"""Change PostgreSQL settings with ALTER SYSTEM over a connection.

Works without access to any file.

The original value is the entry in ``postgresql.auto.conf``, not the value in force: a setting without an
entry is restored by removing the entry again, whatever other files contain. If the file is accessible and
nobody else has written to it, an undo restores its original bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pgdyno.apply.configuration.auto_conf import (
    Entry,
    differs_only_in_format,
    equal_values,
    names_in_order,
    parse,
    render,
    restore_statement,
    set_statement,
    values,
    with_value,
)
from pgdyno.apply.configuration.foreign_edits import former_content, kept
from pgdyno.apply.session.query import Connection, ask, run
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.session import Session
from pgdyno.apply.session.settings import FileEntry, read_file_entries, read_guc
from pgdyno.base.errors import PrivilegeError, SettingError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Found
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.secrets import redacted


@dataclass
class AlterSystemWriter:
    """Reads, writes and restores entries of ``postgresql.auto.conf``.

    ``files``: the server's data directory; None: not accessible.
    """

    session: Session
    files: ServerFiles | None = None
    kind: str = "setting"

    def read(self, key: str) -> Found:
        """Return the key's entry in postgresql.auto.conf, the file and the value in force.

        Raises: SettingError for an unknown setting; PrivilegeError if the role may not see enough to
        restore it later.
        """
        entries = read_file_entries(self._connection)
        guc = read_guc(self._connection, key)
        content = self._content()
        if isinstance(entries.value, Unknown):
            value = _value_without_entries(guc, content, entries.value.reason)
        else:
            value = _last_value(key, entries.value)
        state = {
            "setting": guc.setting,
            "source": guc.source,
            "pending_restart": "on" if guc.pending_restart else "off",
        }
        return Found(value, state if content is None else {**state, **kept(content)})

    def write(self, key: str, value: str) -> None:
        """Set the key. The server checks the value, and syncs the file before it returns."""
        run(self._connection, set_statement(key, value))

    def restore(self, key: str, found: Found) -> None:
        """Restore the key's entry; ``restore_file`` undoes ALTER SYSTEM's changes of the file's format."""
        if not equal_values(key, self.read(key).value, found.value):
            run(self._connection, restore_statement(key, found.value))

    def restore_file(self, found: Iterable[Found]) -> bool:
        """Restore the first original file content that changes no setting, or at least the order of entries.

        Call it once, when all entries are restored: another user's ALTER SYSTEM may come between reading the
        file and replacing it, see ``ServerFiles.replace_auto_conf``.
        Returns: whether the file was written, so that a reload is needed to update line numbers.
        """
        current = self._content()
        formers = [former for one in found if (former := former_content(one.state)) is not None]
        if current is None:
            return False
        former = next((one for one in formers if differs_only_in_format(current, one)), current)
        if former == current:
            return False
        if self.files is None:
            return self._restore_order(parse(current), parse(former))
        return self._replace(self.files, current, former)

    def verify(self, key: str) -> str | None:
        """Return the ``pg_settings`` value of a new session; None if a restart is pending."""
        with self.session.connect() as connection:
            guc = read_guc(connection, key)
        return None if guc.pending_restart else guc.setting

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        """Whether two entries of postgresql.auto.conf mean the same."""
        if equal_values(key, one, other):
            return True
        if one is None or other is None:
            return False
        return _mean_the_same(read_guc(self._connection, key), one, other)

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the server uses the requested value, or a value of its choice for a requested -1."""
        guc = read_guc(self._connection, key)
        if guc.vartype == "string":
            # The server normalises the spelling of some values: "ISO" for "iso".
            return equal_values(key, wanted, effective) or wanted.casefold() == effective.casefold()
        is_automatic = guc.boot_val == "-1" == guc.check(wanted)
        return is_automatic or _mean_the_same(guc, wanted, effective)

    @property
    def _connection(self) -> Connection:
        return self.session.connection

    def _content(self) -> bytes | None:
        """Return the bytes of postgresql.auto.conf, from the file system or the server; None: no access."""
        if self.files is not None:
            return self.files.read_auto_conf()
        rows = ask(
            self._connection, "SELECT pg_catalog.pg_read_binary_file('postgresql.auto.conf')", "the file"
        )
        return None if isinstance(rows.value, Unknown) else bytes(rows.value[0][0])

    def _replace(self, files: ServerFiles, current: bytes, former: bytes) -> bool:
        """Replace the file unless another process has written it; then verify it through the server."""
        before = self._entries_in_file()
        if not files.replace_auto_conf(former, expected=current):
            return False
        if self._entries_in_file() != before:
            # The server parses it differently than we do: undo the replacement, unless it has changed again.
            files.replace_auto_conf(current, expected=former)
        return True

    def _entries_in_file(self) -> dict[str, str | None]:
        """Return the effective entries of postgresql.auto.conf as read by the server; empty: not visible."""
        entries = read_file_entries(self._connection).or_else(())
        return {entry.name.lower(): entry.value for entry in entries if entry.is_in_auto_conf}

    def _restore_order(self, current: tuple[Entry, ...], former: tuple[Entry, ...]) -> bool:
        """Set entries again to their current values until they are in their original order.

        ALTER SYSTEM moves an entry to the end, and pg_file_settings and pg_settings show line numbers. An
        entry with a secret is not set again, because the statement could be logged: then the order is not
        restored.
        """
        present, wanted = names_in_order(current), names_in_order(former)
        same = next(
            (i for i, pair in enumerate(zip(present, wanted, strict=True)) if pair[0] != pair[1]), None
        )
        if same is None:
            return False
        by_name = values(former)
        if any(redacted(name, by_name[name.lower()]) != by_name[name.lower()] for name in wanted[same:]):
            return False
        for name in wanted[same:]:
            if self._content() != render(current):
                break  # someone else has set an entry, which must not get its original value
            try:
                run(self._connection, set_statement(name, by_name[name.lower()]))
            except SettingError:
                break  # the server now rejects this entry; keep it in the wrong order
            current = with_value(current, name, by_name[name.lower()])
        return True


def _last_value(key: str, entries: tuple[FileEntry, ...]) -> str | None:
    found = [entry.value for entry in entries if entry.is_in_auto_conf and entry.name.lower() == key.lower()]
    return found[-1] if found else None


def _value_without_entries(guc: Guc, content: bytes | None, reason: str) -> str | None:
    """Return the entry in postgresql.auto.conf for a role that may not see pg_file_settings."""
    if content is not None:
        return values(parse(content)).get(guc.name.lower())
    if not guc.pending_restart and guc.source == "default":
        return None
    if not guc.pending_restart and guc.source == "configuration file" and guc.sourcefile is not None:
        return guc.display() if guc.sourcefile.endswith("/postgresql.auto.conf") else None
    raise PrivilegeError(
        f"this role cannot read postgresql.auto.conf's entry for {guc.name}, so it could not be restored",
        detail=reason,
        hint="connect as a superuser, or GRANT pg_read_all_settings and "
        "GRANT SELECT ON pg_file_settings, EXECUTE ON FUNCTION pg_show_all_file_settings() to the role",
    )


def _mean_the_same(guc: Guc, one: str, other: str) -> bool:
    if guc.vartype == "string":
        return False
    try:
        return guc.check(one) == guc.check(other)
    except SettingError:
        return False  # the file's value is no longer valid, so it is not ours
