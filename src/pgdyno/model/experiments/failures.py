"""Failed transactions: aborted by an error and not retried. They do not count in any rate.

A rollback requested by a script is not a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.errors import GeneratorFailedError

MOST_FAILED_SHARE = 0.05
"""Of a server's transactions. Arbitrary: with more, a rate mostly measures error handling."""
_MOST_NAMED = 4


@dataclass(frozen=True)
class Failures:
    """Transactions that failed for one reason; ``statement`` is empty if the generator reports none."""

    sqlstate: str
    count: int
    statement: str = ""


def failed_share(transactions: int, failures: Iterable[Failures]) -> float:
    """Return the failed share of all transactions; ``transactions`` is the number of successful ones."""
    failed = sum(one.count for one in failures)
    return failed / (failed + transactions) if failed else 0.0


def added_up(failures: Iterable[Failures]) -> tuple[Failures, ...]:
    """Return one entry for each reason, the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in failures:
        counts[one.sqlstate, one.statement] += one.count
    return tuple(Failures(code, count, statement) for (code, statement), count in counts.most_common())


def failures_text(failures: Iterable[Failures]) -> str:
    """Return the failures in words, the most frequent first."""
    found = added_up(failures)
    listed = ", ".join(
        f"{one.count} of SQLSTATE {one.sqlstate}{f' in {one.statement}' if one.statement else ''}"
        for one in found[:_MOST_NAMED]
    )
    return f"{listed}, and {len(found) - _MOST_NAMED} other reasons" if len(found) > _MOST_NAMED else listed


def require_few(server: str, transactions: int, failures: Iterable[Failures]) -> None:
    """Raise GeneratorFailedError if more than ``MOST_FAILED_SHARE`` of a server's transactions failed."""
    found = added_up(failures)
    share = failed_share(transactions, found)
    if share > MOST_FAILED_SHARE:
        raise GeneratorFailedError(
            f"{numbers.share(share)} of the transactions failed on the server of {server}",
            detail=f"{failures_text(found)}; at most {numbers.share(MOST_FAILED_SHARE)} may fail",
            hint="the server's log shows the errors: fix the script, or the statements' parameters in the "
            "workload's file",
        )
