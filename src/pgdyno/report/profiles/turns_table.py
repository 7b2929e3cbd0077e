"""A session's data misses beside another session on its CPU, as a table and a sentence."""

from __future__ import annotations

from pgdyno.model import numbers
from pgdyno.model.profiles.data_misses import MissesInTurns, SessionsInTurns, total
from pgdyno.report.elements.tables import Table, columns

_COLUMNS = columns(
    "Simulated", "L1d, alone", "in turns", "more", "L2, alone", "in turns", "more", numbers_from=1
)
_NAMED = 2  # structures in the sentence


def in_turns_table(found: SessionsInTurns) -> Table:
    """Return the structures, those with most additional misses first, their sum, and its lesson."""
    whole = total("all data misses", found.structures)
    return Table(
        "Data misses of a session beside another one on its CPU, simulated, per transaction",
        _COLUMNS,
        tuple(_row(one) for one in (*found.structures, whole)),
        totals=1,
        lesson=_lesson(found, whole),
    )


def _row(one: MissesInTurns) -> tuple[str, ...]:
    return (
        one.structure,
        *(numbers.plain(count) for count in (one.l1d_alone, one.l1d)),
        _more(one.more_l1d),
        *(numbers.plain(count) for count in (one.l2_alone, one.l2)),
        _more(one.more_l2),
    )


def _more(count: float) -> str:
    return f"+{numbers.plain(count)}" if count > 0 else numbers.plain(count)


def _lesson(found: SessionsInTurns, whole: MissesInTurns) -> str:
    grown = [one.structure for one in found.structures if one.more_l1d > 0][:_NAMED]
    often = _often(found.turns)
    where = f", most of them in {' and '.join(grown)}" if grown else ""
    return (
        f"simulated: a session that leaves its CPU to another one {often} in a transaction, whenever it "
        f"waits for its client{_disk(found)}, finds less of its data in L1d, {_more(whole.more_l1d)} misses "
        f"per transaction (L2: {_more(whole.more_l2)}){where}: this is a part of the price of more busy "
        "sessions than CPUs, which a connection pool keeps lower"
    )


def _disk(found: SessionsInTurns) -> str:
    return f" or, {_often(found.flushes)}, for WAL to be on the disk" if found.flushes else ""


def _often(count: float) -> str:
    return "once" if count == 1 else f"{count:.3g} times"
