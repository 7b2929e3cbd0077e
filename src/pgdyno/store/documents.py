"""Experiments as JSON documents with a schema version.

Bundles contain these documents, and other programs read them.

The form is that of ``base/document.py``. Unknown members of a document are ignored, so additions need no new
version; ``SCHEMA_VERSION`` counts changes of existing members.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import CoreSchema, SchemaValidator

from pgdyno.base.document import Json, to_document
from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.store.bundle_limits import first_problems

SCHEMA_VERSION = 1
_CONTAINERS = ("tuple", "dict")  # schemas of values with any number of members
_LONGEST_PLACE = 200  # arbitrary; a document may have member names of megabytes


def dump_experiment(experiment: Experiment) -> dict[str, Json]:
    """Return the experiment as a document."""
    body = to_document(experiment)
    assert isinstance(body, dict)  # noqa: S101 — a dataclass becomes an object
    return {"schema_version": SCHEMA_VERSION, **body}


def load_experiment(document: Mapping[str, Any]) -> Experiment:
    """Return the experiment of a document.

    Raises: StorageError for a document of another schema version, or one that is not an experiment; the
    detail then lists invalid members, only the first of each list or mapping.
    """
    _check_version(document.get("schema_version"))
    body = {key: value for key, value in document.items() if key != "schema_version"}
    try:
        return _validator().validate_python(body)  # type: ignore[no-any-return]  # the adapter's type
    except ValidationError as error:
        raise StorageError("the document is not an experiment", detail=problems(error)) from error


def experiment_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the documents that ``dump_experiment`` writes."""
    schema = _adapter().json_schema(mode="serialization")
    version = {"const": SCHEMA_VERSION, "description": "counts incompatible changes of this format"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "pgdyno experiment",
        "properties": {"schema_version": version, **schema["properties"]},
        "required": ["schema_version", *schema["required"]],
    }


def _check_version(version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StorageError(
            "the document has no valid schema version",
            detail=f"schema_version is {version!r}" if version is not None else "schema_version is missing",
        )
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"the document has schema version {version}",
            detail=f"this pgdyno reads versions up to {SCHEMA_VERSION}",
            hint="upgrade pgdyno: pip install --upgrade pgdyno",
        )


def problems(error: ValidationError) -> str:
    """Return one line per invalid member: its path and the error."""
    found = error.errors(include_url=False, include_input=False)
    places = ((".".join(map(str, one["loc"])), one["msg"].lower()) for one in found)
    lines = (f"{place[:_LONGEST_PLACE] or 'document'}: {message}" for place, message in places)
    return "\n".join(first_problems(lines))


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Experiment]:
    """Return the validator, built at first use because that takes longer than most commands."""
    return TypeAdapter(Experiment)


@lru_cache(maxsize=1)
def _validator() -> SchemaValidator:
    """Return a validator like the adapter's that stops at the first invalid member of a list or mapping.

    The adapter collects an error for each one: gigabytes, for a crafted document of 700 kB.
    """
    return SchemaValidator(cast("CoreSchema", _with_fail_fast(_adapter().core_schema)))


def _with_fail_fast(part: object) -> object:
    if isinstance(part, list):
        return [_with_fail_fast(one) for one in part]
    if not isinstance(part, dict):
        return part
    copy = {key: _with_fail_fast(value) for key, value in part.items()}
    return {**copy, "fail_fast": True} if part.get("type") in _CONTAINERS else copy
