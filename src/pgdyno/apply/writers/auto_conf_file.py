"""Restore PostgreSQL settings by writing ``postgresql.auto.conf`` itself.

For a server that is down.

Entries of others stay. When ours are back and nobody else has written, the file has its former bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.apply.configuration.auto_conf import parse, render, says_the_same, values, with_value
from pgdyno.apply.configuration.foreign_edits import former_content, kept
from pgdyno.apply.configuration.statements import equal_values
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.base.errors import StorageError
from pgdyno.base.ports import Found


@dataclass
class AutoConfFileWriter:
    """Reads, writes and restores entries of the file of a server that does not run."""

    files: ServerFiles
    kind: str = "setting"

    def read(self, key: str) -> Found:
        """Return the key's entry and the whole file. Raises: StorageError if the file cannot be parsed."""
        content = self.files.read_auto_conf()
        return Found(values(parse(content)).get(key.lower()), kept(content))

    def write(self, key: str, value: str) -> None:
        """Write the entry as ALTER SYSTEM would; nobody checks the value."""
        self._put(key, value, former=None)

    def restore(self, key: str, found: Found) -> None:
        """Put the entry back, and the file's former bytes once all entries are as they were."""
        self._put(key, found.value, former_content(found.state))

    def verify(self, key: str) -> str | None:  # noqa: ARG002 — the port's signature
        """Return None: a server that is down uses nothing."""
        return None

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        """Whether two entries are written alike; without a server there is nobody to ask for more."""
        return equal_values(key, one, other)

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether two values are written alike."""
        return equal_values(key, wanted, effective)

    def _put(self, key: str, value: str | None, former: bytes | None) -> None:
        current = content = self.files.read_auto_conf()
        entries = parse(current)
        if values(entries).get(key.lower()) != value:
            content = render(with_value(entries, key, value))
        if former is not None and says_the_same(content, former):
            content = former
        if content != current and not self.files.replace_auto_conf(content, expected=current):
            raise StorageError(
                f"another process wrote {self.files.path}/postgresql.auto.conf at the same moment",
                hint="try again",
            )
