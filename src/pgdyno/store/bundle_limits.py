"""Limits of bundles: a bundle crafted to exhaust memory is refused before it can. Pure.

Measured bundles of whole experiments unpack to 13 MB, their largest document has 5 MB, and none of their
files is compressed to less than a sixteenth.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NoReturn

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
