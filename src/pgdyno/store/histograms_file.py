"""Read and check slice counts from a file of ``series.histograms_csv``."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.slices import Slice
from pgdyno.store.experiments import Place
from pgdyno.store.series import HISTOGRAM_COLUMNS

FILE = "histograms.csv"
_NUMBER = re.compile(r"[0-9]{1,19}")
_LARGEST = (1 << 63) - 1  # the largest integer of SQLite


def with_histograms(
    slices: Iterable[tuple[Place, Slice]],
    lines: Iterable[str],
    experiment: Experiment,
    check: Callable[[str], object],
) -> Iterator[tuple[Place, Slice]]:
    """Yield slices with their counts from the file, which is in the order of the slices.

    ``check`` parses a histogram, and raises ValueError if it is invalid.
    Raises: StorageError with the first line that is invalid or does not match a slice.
    """
    counts = _rows(lines, [variant.name for variant in experiment.variants], check)
    waiting = next(counts, None)
    for place, one in slices:
        if waiting is not None and waiting[0] == (place, one.arm, one.start_ns):
            completed, latencies = waiting[1]
            yield place, replace(one, completed=completed, latencies=latencies)
            waiting = next(counts, None)
        else:
            yield place, one
    if waiting is not None:
        place, _, start_ns = waiting[0]
        raise StorageError(
            f"{FILE} has a line without a matching slice, or out of order",
            detail=f"it begins at {start_ns} in block {place.block + 1} of round {place.round + 1} "
            f"of {place.workload}",
        )


def _rows(
    lines: Iterable[str], variants: list[str], check: Callable[[str], object]
) -> Iterator[tuple[tuple[Place, int, int], tuple[int, str]]]:
    rows = csv.reader(lines, strict=True)
    try:
        if (header := next(rows, [])) != [*HISTOGRAM_COLUMNS]:
            raise _wrong(
                rows.line_num, f"its columns are {', '.join(header)}, not {', '.join(HISTOGRAM_COLUMNS)}"
            )
        for row in rows:
            if len(row) != len(HISTOGRAM_COLUMNS):
                raise _wrong(rows.line_num, f"it has {len(row)} values, not {len(HISTOGRAM_COLUMNS)}")
            workload, round_, block, variant, start_ns, completed, latencies = row
            if variant not in variants:
                raise _wrong(rows.line_num, f'the experiment has no variant "{variant}"')
            for number in (round_, block, start_ns, completed):
                if not _NUMBER.fullmatch(number) or int(number) > _LARGEST:
                    raise _wrong(rows.line_num, f'"{number}" is not a time in nanoseconds or a count')
            check(latencies)
            place = Place(workload, int(round_) - 1, int(block) - 1)
            yield (place, variants.index(variant), int(start_ns)), (int(completed), latencies)
    except (csv.Error, ValueError) as error:
        raise _wrong(rows.line_num, str(error)) from error


def _wrong(line: int, why: str) -> StorageError:
    return StorageError(f"line {line} of {FILE} is not a count of a slice", detail=why)
