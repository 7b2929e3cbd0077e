"""The Insert Benchmark's own figures, in its names and order, for comparison with published ones.

How they are computed, and where ours differ, is in ``measure/blocks/published.py``.

Source: github.com/mdcallag/mytools, bench/ibench/etl.sh; legend: mdcallag.github.io/ibench-results.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.base import numbers
from pgdyno.report.elements.tables import NOTHING, Column, Table
from pgdyno.studies.steps.step_series import Recorded, mean_of, of_variant

FIELDS: Mapping[str, str] = {
    "ips": "rows inserted per second",
    "qps": "queries per second",
    "rps": "reads from storage per second",
    "rmbps": "MiB read per second",
    "wps": "writes to storage per second",
    "wmbps": "MiB written per second",
    "rpq": "reads per operation",
    "rkbpq": "KiB read per operation",
    "wpi": "writes per inserted row",
    "wkbpi": "KiB written per inserted row",
    "csps": "context switches per second, whole machine",
    "cpups": "CPU busy in %, whole machine",
    "cspq": "context switches per operation, whole machine",
    "cpupq": "CPU µs per operation, whole machine: client and all else included",
    "dbgb1": "database in GiB",
    "dbgb2": "data directory in GiB, WAL included",
    "rss": "resident memory of the largest server process in GiB",
    "maxop": "longest response in s",
    "p50": "median of the rates second by second",
    "p99": "rate that was reached in 99 % of the seconds",
}
"""All but the 21st, ``tag``, which is the variant's name."""

_NUMBER_FROM_WHICH_OURS_FOLLOWS = "cpupq"


def published_table(
    records: Sequence[Recorded],
    variants: Sequence[str],
    server_cpu: Mapping[str, float | None],
    operation: str,
) -> Table | None:
    """Return the fields of every variant; None where no record has any.

    ``server_cpu`` is the CPU time in µs per operation of each variant's server alone: it stands below the
    published figure, which counts the whole machine.
    """
    if not any(one.record.published for one in records):
        return None
    rows = []
    for name, words in FIELDS.items():
        means = [_mean(records, variant, name) for variant in variants]
        rows.append((name, *(_number(mean) for mean in means), words))
        if name == _NUMBER_FROM_WHICH_OURS_FOLLOWS:
            own = [_number(server_cpu.get(variant)) for variant in variants]
            rows.append(("(server only)", *own, f"CPU µs per {operation} of the server's processes alone"))
    heads = (Column("Field"), *(Column(variant, is_number=True) for variant in variants), Column("Meaning"))
    return Table(
        "The benchmark's published figures, means over the rounds; the tag is the variant", heads, tuple(rows)
    )


def _mean(records: Sequence[Recorded], variant: str, name: str) -> float | None:
    return mean_of(of_variant(records, variant), lambda record: record.published.get(name))


def _number(value: float | None) -> str:
    return NOTHING if value is None else numbers.number(value)
