"""A note on the rows of a copy, beside it, for the experiments that run on it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pgdyno.base.errors import StorageError
from pgdyno.base.terminal import printable
from pgdyno.store.files import write_whole
from pgdyno.store.plain_file import open_plain

_SUFFIX = ".note"
_MOST_BYTES = 1000  # arbitrary: two sentences
_CHARACTERS = 16  # of the checksum: enough to tell copies apart


def digest_of(dump: Path) -> str:
    """Return a checksum, which tells a copy from others. Raises: OSError."""
    with open_plain(dump) as source:
        return hashlib.file_digest(source, "sha256").hexdigest()[:_CHARACTERS]


def write_copy_note(dump: Path, words: str) -> None:
    """Write the note on a copy's rows. Raises: StorageError."""
    try:
        text = f"{digest_of(dump)}\n{printable(words)}\n"
    except OSError as error:
        raise StorageError(f'could not read "{dump}"', detail=error.strerror) from error
    write_whole(_file(dump), text.encode())


def read_copy_note(dump: Path, digest: str) -> str | None:
    """Return the note on a copy's rows; None if there is none, or it is one on a former copy."""
    try:
        with open_plain(_file(dump)) as source:
            text = source.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
    of, _, words = text.partition("\n")
    return words.strip() or None if of == digest else None


def _file(dump: Path) -> Path:
    return dump.with_name(dump.name + _SUFFIX)
