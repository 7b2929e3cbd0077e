"""Mistakes in a TOML file, each with its place in it."""

from __future__ import annotations

from pathlib import Path
from reprlib import Repr
from typing import Any

from pydantic import ValidationError

from pgdyno.base.errors import UsageError

_MOST_MISTAKES = 8  # listed at once: more do not help
_SHORT = Repr()  # of a value that may nest deep, or be as long as the file
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200


def mistakes(path: Path, error: ValidationError, kind: type[UsageError]) -> UsageError:
    """Return one error of this ``kind`` that lists a file's mistakes."""
    listed = [_described(dict(one)) for one in error.errors()[:_MOST_MISTAKES]]
    more = error.error_count() - len(listed)
    count = f"{error.error_count()} mistakes" if error.error_count() > 1 else "a mistake"
    return kind(f'"{path}" has {count}', detail="; ".join([*listed, f"and {more} more"] if more else listed))


def _described(error: dict[str, Any]) -> str:
    """Describe a mistake in one phrase: its place, its kind, and the value found."""
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f'unknown key "{place}"'
    if error["type"] == "missing":
        return f'key "{place}" is missing'
    said = str(error["ctx"]["error"]) if error["type"] == "value_error" else error["msg"].lower()
    return f'"{place}": {said}, found {_SHORT.repr(error["input"])}'
