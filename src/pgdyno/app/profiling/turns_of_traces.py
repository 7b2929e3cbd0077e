"""The traces of two sessions in turns: whether they can take any, where these end, and their limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgdyno.app.profiling.session_traces import SessionTrace
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.facts import Unknown
from pgdyno.model.profiles.data_misses import SessionsInTurns
from pgdyno.profiling.misses.loaded_program import LoadedProgram
from pgdyno.profiling.misses.lru import SplitCaches
from pgdyno.profiling.misses.session_turns import (
    TallyInTurns,
    compared,
    other_memory,
    parts_of,
    tally_in_turns,
)
from pgdyno.profiling.misses.tally import Naming, Tally

_LIMITS = (
    "simulated: the two sessions are of one server and draw different rows. Each was traced while the other "
    "rested; their traces take turns, one for each message from the client{and_flush}. Shared memory, code "
    "and constants are the same lines for both; where the other's own pages lie is made up. The kernel, "
    "whose switch from one to the other takes lines as well, is not seen; with more than two sessions on a "
    "CPU, less is left"
)
_AND_FLUSH = ", and one more where WAL is written to the disk"
_WRITES = (
    "simulated: no session waits for a row that the other one has changed{share}. They have changed rows one "
    "after the other, so that their WAL lies further apart than it would"
)
_ONE_ROW = Unknown(
    "simulated: two sessions that take turns are not told: all transactions change the same row, so that the "
    "second session would wait for the end of the first one's instead. A larger --scale has more of these "
    "rows"
)
_NO_NAME = Unknown(
    "simulated: two sessions that take turns are not told: the program has no name for where a session asks "
    "for its client's next message (secure_read). A build keeps the names of its functions; for a package, "
    "they are in its debug information"
)
_ASKS = ("secure_read", "pq_recvbuf")  # the latter where the former became a part of it
# Of WAL alone. gcc splits issue_xlog_fsync, whose beginning is then a part of its caller.
_FLUSHES = ("pg_fdatasync", "issue_xlog_fsync")


@dataclass(frozen=True)
class TracedTurns:
    """The first session's misses where the other has a turn after each of its own."""

    found: TallyInTurns
    flushes_at: int | None

    def compared(self, alone: Tally, structure_of: Naming, transactions: int) -> SessionsInTurns:
        """Return them beside those of the first session alone."""
        return compared(alone, self.found, structure_of, transactions, self.flushes_at)

    def limits(self, workload: Workload) -> tuple[str, ...]:
        """Return the limits of the figures, in words."""
        limits = _LIMITS.format(and_flush="" if self.flushes_at is None else _AND_FLUSH)
        if workload.is_read_only:
            return (limits,)
        hot = workload.hot_rows
        share = f"; on a real server, one transaction in {hot:,} would" if hot else ""
        return limits, _WRITES.format(share=share)


def traced_turns(
    program: LoadedProgram, one: SessionTrace, others: Sequence[SessionTrace], caches: SplitCaches
) -> TracedTurns | Unknown:
    """Let traces take turns; or return why they do not: a second one is missing where sessions would wait."""
    if not others:
        return _ONE_ROW
    asks_at, flushes_at = program.beginning_of(_ASKS), program.beginning_of(_FLUSHES)
    if asks_at is None:
        return _NO_NAME
    [other] = others
    waits = [at for at in (asks_at, flushes_at) if at is not None]
    memory = other_memory(one.mappings, other.mappings)

    def play(mine: Iterable[bytes], of_other: Iterable[bytes]) -> TallyInTurns:
        return tally_in_turns(parts_of(mine, waits), map(memory.place, parts_of(of_other, waits)), caches)

    play(one.filling(), other.filling())
    return TracedTurns(play(one.counted(), other.counted()), flushes_at)
