"""Experiments as JSON documents with a schema version.

Bundles contain these documents, and other programs read them.

The form is that of ``base/facts.py``. Unknown members of a document are ignored, so additions need no new
version; ``SCHEMA_VERSION`` counts changes of existing members.

Limits of bundles: a bundle crafted to exhaust memory is refused before it can.

Measured bundles of whole experiments unpack to 13 MB, their largest document has 5 MB, and none of their
files is compressed to less than a sixteenth.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NoReturn, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import CoreSchema, SchemaValidator

from pgdyno.base.errors import StorageError
from pgdyno.base.facts import Json, to_document
from pgdyno.model.experiments.experiment import Experiment

DOCUMENT_BYTES = 32 << 20
TOTAL_BYTES = 512 << 20
LINE_BYTES = 256 << 10  # of series: a histogram has a few kilobytes
ROWS = 1_000_000
SEAL_BYTES = 16 << 10  # of the checksums, with some 90 bytes per file, and of their signature
_PROBLEMS = 8  # most problems listed at once: more do not help
_MEMBERS = 64
_RATIO = 100  # deflate reaches 1032 with zeros
_SMALL_BYTES = 1 << 20  # up to this size, which fits into any memory, no ratio is checked
_BYTES_PER_CONTAINER = 16  # Python needs 200 bytes for an object with one member
_DEPTH = 64
_DIGITS = 20  # of 64 bits
_CHARACTERS = 40  # of a decimal number: Python writes up to 24


def oversized(members: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    """Yield the reasons why an archive is not unpacked."""
    size_bytes = sum(member.file_size for member in members)
    if size_bytes > TOTAL_BYTES:
        yield f"it unpacks to {size_bytes} bytes, more than the {TOTAL_BYTES} that are read"
    if len(members) > _MEMBERS:
        yield f"it has {len(members)} files, more than the {_MEMBERS} that are read"
    for member in members:
        if member.file_size > _SMALL_BYTES + _RATIO * member.compress_size:
            yield f'"{member.filename}" unpacks to more than {_RATIO} times its size'


def first_problems(problems: Iterable[str]) -> tuple[str, ...]:
    """Return the first problems, and the number of the others."""
    rest = iter(problems)
    first = tuple(islice(rest, _PROBLEMS))
    more = sum(1 for _ in rest)
    return (*first, f"and {more} more") if more else first


def parse(text: str) -> Any:
    """Return a parsed JSON document, after checking its numbers, nesting and number of containers.

    Raises: ValueError, including json.JSONDecodeError; RecursionError.
    """
    containers = text.count("[") + text.count("{")
    if len(text) > _SMALL_BYTES and containers * _BYTES_PER_CONTAINER > len(text):
        raise ValueError(f"it has {containers} lists and objects in {len(text)} characters")
    document = json.loads(text, parse_constant=_no_constant, parse_int=_whole, parse_float=_decimal)
    _check(document)
    return document


def _check(document: object) -> None:
    """Raise ValueError for lone surrogates, which cannot be written to a file, and for too deep nesting."""
    open_ = [iter((document,))]
    while open_:
        for value in open_[-1]:
            if isinstance(value, str):
                value.encode()
            elif isinstance(value, list | dict):
                inner = value if isinstance(value, list) else chain(value, value.values())
                open_.append(iter(inner))
                break
        else:
            open_.pop()
        if len(open_) > _DEPTH + 1:
            raise ValueError(f"it is nested deeper than {_DEPTH}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _whole(text: str) -> int:
    if (digits := len(text.removeprefix("-"))) > _DIGITS:
        raise ValueError(f"a number has {digits} digits")
    return int(text)


def _decimal(text: str) -> float:
    if len(text) > _CHARACTERS or not math.isfinite(float(text)):
        raise ValueError(f"{text[:_CHARACTERS]} is not a number that can be stored")
    return float(text)


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
