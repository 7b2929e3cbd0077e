"""Searches on disk: one JSON document each, rewritten after every round.

After ``kill -9`` all completed rounds are present.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pgdyno.base.errors import StorageError, UsageError
from pgdyno.base.facts import to_document
from pgdyno.model.tuning.tuning import Tuning
from pgdyno.store.documents import problems
from pgdyno.store.files import write_whole

SUFFIX = ".tuning.json"
_SCHEMA_VERSION = 1
_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


def save_tuning(directory: Path, tuning: Tuning) -> None:
    """Write a search; replaces an earlier state of the same one. Raises: StorageError."""
    body = to_document(tuning)
    assert isinstance(body, dict)  # noqa: S101 — a dataclass becomes an object
    text = json.dumps({"schema_version": _SCHEMA_VERSION, **body}, indent=1)
    write_whole(directory / f"{tuning.id}{SUFFIX}", text.encode())


def tuning_of(directory: Path, experiment: str) -> Tuning | None:
    """Return the search that an experiment proves; None if none is found, or it cannot be read."""
    for path in sorted(directory.glob(f"*{SUFFIX}"), reverse=True):
        with suppress(StorageError):
            tuning = load_tuning(directory, path.name.removesuffix(SUFFIX))
            if tuning.experiment == experiment:
                return tuning
    return None


def load_tuning(directory: Path, tuning_id: str) -> Tuning:
    """Return a search. Raises: UsageError if no search has this id; StorageError."""
    known = sorted(path.name.removesuffix(SUFFIX) for path in directory.glob(f"*{SUFFIX}"))
    if tuning_id not in known:
        raise UsageError(
            f'search "{tuning_id}" does not exist',
            detail=f"known searches: {', '.join(known)}" if known else "no searches exist here yet",
        )
    try:
        document = _OBJECT.validate_json((directory / f"{tuning_id}{SUFFIX}").read_bytes())
        if document.pop("schema_version", None) != _SCHEMA_VERSION:
            raise StorageError(f'the search "{tuning_id}" was written by another version of pgdyno')
        return TypeAdapter(Tuning).validate_python(document)
    except (OSError, ValueError) as error:
        detail = problems(error) if isinstance(error, ValidationError) else str(error)
        raise StorageError(f'the search "{tuning_id}" could not be read', detail=detail) from error
