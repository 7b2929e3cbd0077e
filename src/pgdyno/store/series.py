"""Raw series as CSV (RFC 4180), for spreadsheets and statistics programs.

Rounds and blocks count from 1.

Files of slices may be from untrusted bundles: they are checked while they are read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.failures import added_up
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.step_record import RoleRecord, StepRecord
from pgdyno.store.experiments import Place

RECORDED = ("drained_ns", "steal_share", "foreign_cpu_share", "apart_ns")
"""Optional columns of a slice, in their order."""
SlicesOf = Callable[[str, int, int], Sequence[Slice]]
"""Returns the slices of a block: workload, round, block (both from 0, as in ``Block``)."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that spreadsheets interpret as formulas (OWASP, CSV injection)."""
HISTOGRAM_COLUMNS = ("workload", "round", "block", "variant", "start_ns", "completed", "latency_us")
SLICES_FILE = "slices.csv"
_PLACE = ("workload", "round", "block", "variant", "start_ns", "end_ns")
_COUNTED = "is_counted"  # missing in older files; blocks have the same information
_SHARES = ("steal_share", "foreign_cpu_share")
_DECIMAL = re.compile(r"\d{1,20}(\.\d{1,25})?(e-?\d{1,3})?", re.ASCII)
_LARGEST = (1 << 63) - 1  # the largest integer of SQLite
_LONGEST_NUMBER = 19  # its digits


def blocks_csv(blocks: Iterable[Block]) -> str:
    """Return a line per block, arm and metric.

    Optional columns, present only if any transaction failed: ``failed``, which ``transactions`` does not
    include, and ``failed_by_sqlstate``, the most frequent first.
    """
    blocks = list(blocks)
    header = ("workload", "round", "block", "started_ns", "void", "variant", "transactions", "running_s")
    has_failures = any(arm.failures for block in blocks for arm in block.arms)
    return _csv(
        (*header, *(("failed", "failed_by_sqlstate") if has_failures else ()), "metric", "value"),
        (
            (
                *(
                    block.workload,
                    block.round + 1,
                    block.index + 1,
                    block.started_ns,
                    block.void_for(arm.variant) or "",
                ),
                *(arm.variant, arm.transactions, arm.running_s),
                *(_failed(arm) if has_failures else ()),
                *(metric, value),
            )
            for block in blocks
            for arm in block.arms
            for metric, value in arm.values.items()
        ),
    )


def _failed(arm: ArmBlock) -> tuple[int, str]:
    """Return the number of failed transactions, and that of each SQLSTATE: "40001=12 40P01=3"."""
    by_code = added_up(replace(one, statement="") for one in arm.failures)
    return sum(one.count for one in by_code), " ".join(f"{one.sqlstate}={one.count}" for one in by_code)


def slices_csv(blocks: Iterable[Block], slices_of: SlicesOf, variants: Sequence[str]) -> str:
    """Return a line per slice, in the order in which they ran.

    Units: nanoseconds, shares of CPU time; ``server_cpu_ns_N`` is the CPU time of the N-th variant's server
    in the slice. ``is_counted`` is 1 if the slice counts, else 0. Optional columns, present only if recorded:
    ``drained_ns`` is the time when the last transaction ended, ``steal_share`` and ``foreign_cpu_share`` are
    the CPU time taken by others since the previous line that has them, and ``apart_ns`` is the largest
    difference between the starts of load hosts.
    """
    slices = [
        (block, one, int(position not in block.left_out and not block.void_for(variants[one.arm])))
        for block in blocks
        for position, one in enumerate(slices_of(block.workload, block.round, block.index))
    ]
    recorded = [name for name in RECORDED if any(getattr(one, name) is not None for _, one, _ in slices)]
    columns = (f"server_cpu_ns_{number}" for number in range(1, len(variants) + 1))
    return _csv(
        ("workload", "round", "block", "variant", "start_ns", "end_ns", "is_counted", *recorded, *columns),
        (
            (
                *(block.workload, block.round + 1, block.index + 1),
                *(variants[one.arm], one.start_ns, one.end_ns, is_counted),
                *(getattr(one, name) for name in recorded),  # None becomes an empty cell
                *one.server_cpu_ns,
            )
            for block, one, is_counted in slices
        ),
    )


def histograms_csv(blocks: Iterable[Block], slices_of: SlicesOf, variants: Sequence[str]) -> str | None:
    """Return a line per slice with counts, in the order of ``slices_csv``; None if no slice has any.

    ``completed`` transactions ended in the counted part of the slice. ``latency_us`` is the histogram of
    those whose latency counts, in us: HdrHistogram V2, deflated, base64.
    """
    rows = [
        (
            *(block.workload, block.round + 1, block.index + 1),
            *(variants[one.arm], one.start_ns, one.completed, one.latencies),
        )
        for block in blocks
        for one in slices_of(block.workload, block.round, block.index)
        if one.latencies is not None
    ]
    return _csv(HISTOGRAM_COLUMNS, rows) if rows else None


def steps_csv(blocks: Iterable[Block]) -> str:
    """Return a line per step, round, variant and figure recorded next to its metrics.

    ``kind`` is "step", "role" (clients of one kind, by name), "wait" (share of samples), "counter"
    (difference over the step) or "published" (the benchmark's own fields).
    """
    return _csv(
        ("workload", "round", "void", "variant", "kind", "name", "value"),
        (
            (block.workload, block.round + 1, block.void_for(arm.variant) or "", arm.variant, *figure)
            for block in blocks
            for arm in block.arms
            if arm.step is not None
            for figure in _figures(arm.step)
        ),
    )


def intervals_csv(blocks: Iterable[Block]) -> str:
    """Return a line per interval and role of every step. Times are seconds from the step's beginning."""
    return _csv(
        (
            *("workload", "round", "void", "variant", "start_s", "length_s"),
            *("role", "transactions", "latency_ms_max"),
        ),
        (
            (
                *(block.workload, block.round + 1, block.void_for(arm.variant) or "", arm.variant),
                *(one.start_s, one.length_s),
                *(role, transactions, one.latency_ms_max.get(role, "")),
            )
            for block in blocks
            for arm in block.arms
            if arm.step is not None
            for one in arm.step.intervals
            for role, transactions in one.transactions.items()
        ),
    )


def _figures(step: StepRecord) -> Iterator[tuple[str, str, object]]:
    """Yield kind, name and value of all figures of a step's record except intervals and stalls."""
    whole = {
        "completed": step.completed,
        "running_s": step.running_s,
        "chores_s": step.chores_s,
        "dead_tuples": step.dead_tuples,
        "target_rows_per_s": step.target_rows_per_s,
        "stalls": len(step.stalls),
        "stalled_s": sum(stall.end_s - stall.start_s for stall in step.stalls),
        "wait_samples": step.wait_samples,
    }
    yield from (("step", name, value) for name, value in whole.items() if value is not None)
    for role in step.roles:
        yield from (("role", f"{role.name}.{name}", value) for name, value in _role_figures(role))
    for kind, figures in (("wait", step.waits), ("counter", step.counters), ("published", step.published)):
        yield from ((kind, name, value) for name, value in figures.items())


def _role_figures(role: RoleRecord) -> Iterator[tuple[str, object]]:
    yield "transactions", role.transactions
    yield from ((f"latency_ms_{name}", value) for name, value in role.latency_ms.items())
    yield from ((f"lag_ms_{name}", value) for name, value in role.lag_ms.items())
    for kind, by_name in (
        ("statements", role.statements),
        ("retries", role.retries),
        ("errors", role.errors),
    ):
        yield from ((f"{kind}.{name}", count) for name, count in by_name.items())
    for number, client in enumerate(role.clients, 1):
        yield f"client_{number}.transactions", client.transactions
        yield f"client_{number}.ended_s", client.ended_s


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([_no_formula(cell) for cell in row] for row in rows)
    return text.getvalue()


def _no_formula(cell: object) -> object:
    """Return a cell that spreadsheets do not evaluate: untrusted texts may begin like a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def read_slices(lines: Iterable[str], experiment: Experiment) -> Iterator[tuple[Place, Slice]]:
    """Yield every slice with its place; rounds and blocks count from 1 in the file, from 0 in the result.

    Raises: StorageError with the first line that is not a slice of this experiment.
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
            if not len(first) < len(row) <= len(header):  # in whole trials only one server has CPU times
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
    """Return the optional fields of a slice; empty ones were not recorded."""
    if given.get(_COUNTED, "1") not in {"0", "1"}:
        raise _wrong(line, f'"{given[_COUNTED]}" is neither 0 nor 1')
    return {
        name: _share(given[name], line) if name in _SHARES else _number(given[name], line)
        for name in RECORDED
        if given.get(name)
    }


def _share(text: str, line: int) -> float:
    """Return a share of CPU time, never negative."""
    if not _DECIMAL.fullmatch(text):
        raise _wrong(line, f'"{text}" is not a share of CPU time')
    return float(text)


def _number(text: str, line: int) -> int:
    """Return a count or a time, never negative, within SQLite's range."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and int(text) <= _LARGEST):
        raise _wrong(line, f'"{text}" is not a time in nanoseconds or a count')
    return int(text)


def _wrong(line: int, why: str) -> StorageError:
    return StorageError(f"line {line} of {SLICES_FILE} is not a slice of the experiment", detail=why)


FILE = "histograms.csv"
_NUMBER = re.compile(r"[0-9]{1,19}")


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
            raise _wrong_histogram(
                rows.line_num, f"its columns are {', '.join(header)}, not {', '.join(HISTOGRAM_COLUMNS)}"
            )
        for row in rows:
            if len(row) != len(HISTOGRAM_COLUMNS):
                raise _wrong_histogram(
                    rows.line_num, f"it has {len(row)} values, not {len(HISTOGRAM_COLUMNS)}"
                )
            workload, round_, block, variant, start_ns, completed, latencies = row
            if variant not in variants:
                raise _wrong_histogram(rows.line_num, f'the experiment has no variant "{variant}"')
            for number in (round_, block, start_ns, completed):
                if not _NUMBER.fullmatch(number) or int(number) > _LARGEST:
                    raise _wrong_histogram(
                        rows.line_num, f'"{number}" is not a time in nanoseconds or a count'
                    )
            check(latencies)
            place = Place(workload, int(round_) - 1, int(block) - 1)
            yield (place, variants.index(variant), int(start_ns)), (int(completed), latencies)
    except (csv.Error, ValueError) as error:
        raise _wrong_histogram(rows.line_num, str(error)) from error


def _wrong_histogram(line: int, why: str) -> StorageError:
    return StorageError(f"line {line} of {FILE} is not a count of a slice", detail=why)
