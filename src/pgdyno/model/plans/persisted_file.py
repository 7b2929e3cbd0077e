"""Files that set kernel values at boot. The value of a change is a file's whole text. Pure.

A text is too long to be shown: people see its checksum, the beginning of what sha256sum(1) prints.
"""

from __future__ import annotations

import hashlib
from typing import TypeVar

from pgdyno.model.plans.plan import PERSISTED_FILE

Value = TypeVar("Value", str, str | None)

_DIGITS = 12


def shown(kind: str, value: Value) -> Value:
    """Return a value of a change of this kind as people see it; only files are not shown as they are."""
    return checksum(value) if kind == PERSISTED_FILE else value


def checksum(text: str | None) -> str:
    """Return the checksum of a text; None stands for no file."""
    return "no file" if text is None else f"sha256 {hashlib.sha256(as_bytes(text)).hexdigest()[:_DIGITS]}"


def as_text(content: bytes) -> str:
    """Return a file's content as a value, without loss for any content."""
    return content.decode(errors="surrogateescape")


def as_bytes(text: str) -> bytes:
    """Return the content that a value stands for."""
    return text.encode(errors="surrogateescape")
