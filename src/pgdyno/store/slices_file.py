"""Read and check slices from a file of ``series.slices_csv``.

The file comes from elsewhere.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import Experiment, Slice
from pgdyno.store.experiments import Place
from pgdyno.store.series import RECORDED

FILE = "slices.csv"
_PLACE = ("workload", "round", "block", "variant", "start_ns", "end_ns")
_COUNTED = "is_counted"  # older files lack it; what counts stands with the blocks
_SHARES = ("steal_share", "foreign_cpu_share")
_DECIMAL = re.compile(r"\d{1,20}(\.\d{1,25})?(e-?\d{1,3})?", re.ASCII)
_LARGEST = (1 << 63) - 1  # what a store can hold
_LONGEST_NUMBER = 19  # digits of that


def read_slices(lines: Iterable[str], experiment: Experiment) -> Iterator[tuple[Place, Slice]]:
    """Yield every slice with its place; rounds and blocks of the file count from 1, ours from 0.

    Raises: StorageError naming the first line that is no slice of this experiment.
    """
    arms = {variant.name: arm for arm, variant in enumerate(experiment.variants)}
    places = {Place(block.workload, block.round, block.index) for block in experiment.blocks}
    servers = [f"server_cpu_ns_{number}" for number in range(1, len(arms) + 1)]
    rows = csv.reader(lines, strict=True)
    try:
        header = next(rows, [])
        optional = [name for name in (_COUNTED, *RECORDED) if name in header]
        first = [*_PLACE, *optional]
        if header != (wanted := [*first, *servers]):
            raise _wrong(rows.line_num, f"its columns are {', '.join(header)}, not {', '.join(wanted)}")
        for row in rows:
            if not len(first) < len(row) <= len(header):  # in whole trials only one server is metered
                raise _wrong(rows.line_num, f"it has {len(row)} values, not up to {len(header)}")
            given = dict(zip(optional, row[len(_PLACE) : len(first)], strict=True))
            place, one = _slice([*row[: len(_PLACE)], *row[len(first) :]], rows.line_num, arms, places)
            yield place, replace(one, **_recorded(given, rows.line_num))
    except csv.Error as error:
        raise _wrong(rows.line_num, str(error)) from error


def _slice(row: list[str], line: int, arms: dict[str, int], places: set[Place]) -> tuple[Place, Slice]:
    workload, variant = row[0], row[3]
    round_, block, start_ns, end_ns, *cpu_ns = (_number(text, line) for text in (*row[1:3], *row[4:]))
    place = Place(workload, round_ - 1, block - 1)
    if place not in places:
        raise _wrong(line, f"the experiment has no block {block} of round {round_} of {workload}")
    if variant not in arms:
        raise _wrong(line, f'the experiment has no variant "{variant}"')
    return place, Slice(arms[variant], start_ns, end_ns, tuple(cpu_ns))


def _recorded(given: dict[str, str], line: int) -> dict[str, Any]:
    """Return the fields of a slice that not all files have; empty ones were not recorded."""
    if given.get(_COUNTED, "1") not in {"0", "1"}:
        raise _wrong(line, f'"{given[_COUNTED]}" is neither 0 nor 1')
    return {
        name: _share(given[name], line) if name in _SHARES else _number(given[name], line)
        for name in RECORDED
        if given.get(name)
    }


def _share(text: str, line: int) -> float:
    """Return a part of the CPUs' time, which is never negative."""
    if not _DECIMAL.fullmatch(text):
        raise _wrong(line, f'"{text}" is no share of the CPU time')
    return float(text)


def _number(text: str, line: int) -> int:
    """Return a count or a time; never negative, and no longer than a store can hold."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and int(text) <= _LARGEST):
        raise _wrong(line, f'"{text}" is no number of nanoseconds, and no count')
    return int(text)


def _wrong(line: int, why: str) -> StorageError:
    return StorageError(f"line {line} of {FILE} is no slice of the experiment", detail=why)
