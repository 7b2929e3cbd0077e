"""The parts of a transaction's time, as a table and sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.base import numbers
from pgdyno.base.text import sentence
from pgdyno.measure.verdicts.transaction_split import TimePart, TransactionSplit
from pgdyno.model.experiments.workload import C_LOOP, CLIENT, PLPGSQL_LOOP
from pgdyno.report.elements.tables import NOTHING, Table, columns
from pgdyno.stats.mean_amount import Amount


def split_table(split: TransactionSplit) -> Table:
    """Return every part with its interval and share of the transaction, their sum, and PL/pgSQL's part."""
    level = numbers.share(split.whole_us.level)
    rows = [_row(part, has_share=True) for part in split.parts]
    rows.append(("a client-driven transaction", *_time(split.whole_us), numbers.share(1.0)))
    rows.append(_row(split.plpgsql, has_share=False))
    return Table(
        f"Parts of a transaction's time{_words(split)}, {split.variant} at one client: {split.rounds} rounds",
        columns("Part", "Time in µs", f"{level} interval", "Share", numbers_from=1),
        tuple(rows),
    )


def split_sentences(split: TransactionSplit) -> Iterator[str]:
    """Yield the throughput of one CPU, the cost of a loop, and indistinguishable parts."""
    rates = {load: _bounded(rate) for load, rate in split.per_cpu_s.items()}
    yield (
        f"In the server{_words(split)}, per second of CPU time: "
        f"{rates[C_LOOP]} executions in a loop in C, {rates[PLPGSQL_LOOP]} in PL/pgSQL; "
        f"{rates[CLIENT]} client-driven transactions, without the client's CPU time"
    )
    yield f"An empty loop takes {_bounded(split.loop_ns)} ns per iteration"
    for part in (*split.parts, split.plpgsql):
        if not part.is_distinguishable:
            yield f"{sentence(part.name)}: not distinguishable from zero"


def _words(split: TransactionSplit) -> str:
    return f", {split.words}" if split.words else ""


def _row(part: TimePart, *, has_share: bool) -> tuple[str, ...]:
    return (part.name, *_time(part.time_us), numbers.share(part.share) if has_share else NOTHING)


def _time(time_us: Amount) -> tuple[str, str]:
    return numbers.number(time_us.mean), _ends(time_us)


def _bounded(amount: Amount) -> str:
    return f"{numbers.number(amount.mean)} ({_ends(amount)})"


def _ends(amount: Amount) -> str:
    return f"{numbers.number(amount.low)}{numbers.SPACE}…{numbers.SPACE}{numbers.number(amount.high)}"
