"""Restore settings of a stopped server by writing ``postgresql.auto.conf``.

Other entries are kept. If nobody else has written to the file, it gets its original bytes back.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.apply.configuration.auto_conf import (
    differs_only_in_format,
    equal_values,
    parse,
    render,
    values,
    with_value,
)
from pgdyno.apply.configuration.foreign_edits import former_content, kept
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.base.errors import StorageError
from pgdyno.base.ports import Found


@dataclass
class AutoConfFileWriter:
    """Reads, writes and restores entries in a stopped server's file."""

    files: ServerFiles
    kind: str = "setting"

    def read(self, key: str) -> Found:
        """Return the key's entry and the whole file. Raises: StorageError if the file cannot be parsed."""
        content = self.files.read_auto_conf()
        return Found(values(parse(content)).get(key.lower()), kept(content))

    def write(self, key: str, value: str) -> None:
        """Write the entry as ALTER SYSTEM would, without checking the value."""
        self._put(key, value, former=None)

    def restore(self, key: str, found: Found) -> None:
        """Restore the entry, and the file's original bytes once all entries are restored."""
        self._put(key, found.value, former_content(found.state))

    def verify(self, key: str) -> str | None:  # noqa: ARG002 — the port's signature
        """Return None: a stopped server has no effective values."""
        return None

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        """Whether two entries are written alike; their meaning is unknown without a running server."""
        return equal_values(key, one, other)

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether two values are written alike."""
        return equal_values(key, wanted, effective)

    def _put(self, key: str, value: str | None, former: bytes | None) -> None:
        current = content = self.files.read_auto_conf()
        entries = parse(current)
        if values(entries).get(key.lower()) != value:
            content = render(with_value(entries, key, value))
        if former is not None and differs_only_in_format(content, former):
            content = former
        if content != current and not self.files.replace_auto_conf(content, expected=current):
            raise StorageError(
                f"another process wrote {self.files.path}/postgresql.auto.conf at the same moment",
                hint="try again",
            )
