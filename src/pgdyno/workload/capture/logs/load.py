"""The load in a log: counts of statements, transactions, and values of parameters."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.model.experiments.captured import Protocol
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.logs.entry import LogEntry, Logged, read_message
from pgdyno.workload.capture.logs.sequences import MOST_KINDS, LoggedSession, Sequences
from pgdyno.workload.capture.logs.texts import MOST_CHARACTERS, MOST_PARAMETERS, MOST_TEXTS, Execution, Texts
from pgdyno.workload.capture.logs.values import Values
from pgdyno.workload.capture.protocol import note_on_protocols
from pgdyno.workload.capture.statements import TransactionPart, is_about_statistics, is_query
from pgdyno.workload.capture.ties import Place
from pgdyno.workload.capture.transactions import SeenTransaction

_MOST_CALLS = 200  # compared per statement: arbitrary; parameters equal in all of them are equal in all calls
_MOST_PLACES = 100  # parameters compared per transaction, and per call: arbitrary
_MOST_PAIRS = 200_000  # in total: they take some ten megabytes
_LONGEST = 100  # characters of a compared value
_EQUAL = 0.95  # of the calls: some transactions may differ
_VARIED = 5  # distinct values needed: constants that happen to be equal are not a tie


@dataclass
class Equalities:
    """Pairs of parameters, the earlier first: how often they were compared, and how often equal."""

    _calls: Counter[int] = field(default_factory=Counter)
    _compared: Counter[tuple[Place, Place]] = field(default_factory=Counter)
    _equal: Counter[tuple[Place, Place]] = field(default_factory=Counter)
    _values: defaultdict[Place, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, before: dict[Place, str], statement: int, values: Mapping[int, str | None]) -> None:
        """Compare a call's values with the earlier ones of its transaction, and add them to ``before``."""
        self._calls[statement] += 1
        is_compared = self._calls[statement] <= _MOST_CALLS
        for number, value in sorted(values.items())[:_MOST_PLACES]:
            if value is None or len(value) > _LONGEST:
                continue
            place = statement, number
            if is_compared:
                self._compare(before, place, value)
            if len(before) < _MOST_PLACES:
                before.setdefault(place, value)

    def earlier(self) -> dict[Place, list[Place]]:
        """Return for each parameter the earlier ones that are the same value, without coincidences."""
        found: dict[Place, list[Place]] = {place: [] for _, place in self._compared}
        for (earlier, place), count in self._compared.items():
            is_same = self._equal[earlier, place] >= _EQUAL * count
            if is_same and len(self._values[place]) >= _VARIED:
                found[place].append(earlier)
        return found

    def _compare(self, before: Mapping[Place, str], place: Place, value: str) -> None:
        if len(self._values[place]) < _VARIED:
            self._values[place].add(value)
        for earlier, other in before.items():
            pair = earlier, place
            if earlier != place and (pair in self._compared or len(self._compared) < _MOST_PAIRS):
                self._compared[pair] += 1
                self._equal[pair] += value == other


_MOST_SESSIONS = 10_000  # open at a time: more than any server has; beyond it, the oldest are taken as ended
_MOST_PAUSES = 100_000  # the first ones are kept: they represent all
_OURS = "pgdyno"  # prefix of the application names of pgdyno's sessions
_FAILURES = frozenset({"ERROR", "FATAL", "PANIC"})
_CONNECTED = "connection "  # received, authenticated, authorized: a session's first entries
_CONTROL = (TransactionPart.BEGIN, TransactionPart.END)
_CHAINS = re.compile(r"\bAND\s+CHAIN\b", re.IGNORECASE)


@dataclass
class _Counts:
    calls: int = 0
    timed: int = 0
    time_ms: float = 0.0


@dataclass
class _Running:
    """A session with the statements for which the log may still have a duration."""

    session: LoggedSession
    text: str = ""
    waiting: tuple[Execution, ...] = ()
    logged: Logged | None = None
    began_s: float | None = None
    ended_s: float | None = None  # end of its latest transaction, if nothing began since
    values: dict[Place, str] = field(default_factory=dict)


@dataclass
class LoggedLoad:
    """A database's load according to a log.

    ``entries`` counts the entries read, ``unread`` unreadable ones, ``elsewhere`` those of other databases.
    """

    database: str
    values: Values
    entries: int = 0
    unread: int = 0
    elsewhere: int = 0
    equalities: Equalities = field(default_factory=Equalities)
    texts: Texts = field(default_factory=Texts)
    sequences: Sequences = field(default_factory=Sequences)
    _sent: Counter[Protocol] = field(default_factory=Counter)  # executed queries
    _named: int = 0  # parse messages of queries with a statement name
    _counts: dict[int, _Counts] = field(default_factory=dict)
    _sessions: dict[str, _Running] = field(default_factory=dict)
    _busy_s: float = 0.0
    _pauses: list[float] = field(default_factory=list)
    _has_milliseconds: bool = False
    _spans: list[list[float]] = field(default_factory=list)  # first and last time of each file

    def read(self, entries: Iterable[LogEntry | None]) -> None:
        """Add the entries of a file; those of a session are in order."""
        self._spans.append([])
        for entry in entries:
            if entry is None:
                self.unread += 1
                continue
            self.entries += 1
            if entry.database is not None and entry.database != self.database:
                self.elsewhere += 1
            elif not entry.application.startswith(_OURS):
                self._take(entry)

    def finish(self) -> None:
        """Complete all sessions at the end of the log."""
        for one in self._sessions.values():
            self._leave(one)
        self._sessions.clear()

    @property
    def calls(self) -> int:
        """Number of statements executed."""
        return sum(one.calls for one in self._counts.values())

    @property
    def has_durations(self) -> bool:
        """Whether the log has durations of statements."""
        return any(one.timed for one in self._counts.values())

    @property
    def seconds(self) -> float:
        """Time covered by the files, from first to last entry; overlaps count once. 0 if unknown."""
        total, until_s = 0.0, -math.inf
        for first_s, last_s in sorted(span for span in self._spans if span):
            total += max(0.0, last_s - max(first_s, until_s))
            until_s = max(until_s, last_s)
        return total

    @property
    def clients(self) -> float:
        """The mean number of sessions in transactions."""
        return self._busy_s / self.seconds if self.seconds > 0 else 1.0

    @property
    def pauses_s(self) -> Sequence[float]:
        """Times between two transactions of a session, in seconds; empty if the log does not show them.

        This requires durations, and timestamps in milliseconds.
        """
        return self._pauses if self._has_milliseconds else ()

    @property
    def sent(self) -> Mapping[Protocol, int]:
        """Numbers of query calls by protocol.

        A named statement that is parsed again for each call counts as unnamed: no plan is kept.
        """
        parsed = min(self._named, self._sent["prepared"])
        sent = Counter(self._sent)
        sent["prepared"] -= parsed
        sent["extended"] += parsed
        return +sent  # without zeros

    def seen(self) -> dict[int, Seen]:
        """Return counts by statement; calls without a duration are assumed to take as long as the others."""
        return {
            one: Seen(its.calls, its.time_ms * its.calls / its.timed if its.timed else 0.0, 0, 0, 0)
            for one, its in self._counts.items()
        }

    def transactions(self) -> tuple[SeenTransaction, ...]:
        """Return the kinds of transaction."""
        return tuple(self.sequences.kinds())

    def notes(self) -> Iterator[str]:
        """Yield the gaps in the log."""
        if not any(self._spans):
            yield (
                "the log has no timestamps: the rate of transactions and the number of clients are unknown; "
                "%m in log_line_prefix adds timestamps"
            )
        if not self.has_durations:
            yield "the log has no durations: log_min_duration_statement = 0 or log_duration adds them"
        if self.texts.more:
            yield (
                f"{self.texts.more} calls left out: their statements came after the first "
                f"{MOST_TEXTS}, or {MOST_CHARACTERS} characters"
            )
        if self.texts.long:
            yield (
                f"{self.texts.long} calls left out: their statements have more than {MOST_PARAMETERS} "
                "parameters"
            )
        if self.sequences.cut:
            yield f"{self.sequences.cut} transactions left out: incomplete at the beginning or end of the log"
        if self.sequences.late:
            yield f"{self.sequences.late} transactions left out: they are not of the first {MOST_KINDS} kinds"
        if self.unread:
            yield f"{self.unread} entries could not be read: they are too long, incomplete or ambiguous"
        if note := note_on_protocols(self.sent):
            yield note
        yield from self.values.notes()

    def _take(self, entry: LogEntry) -> None:
        if entry.at_s is not None:
            times = (*self._spans[-1], entry.at_s)
            self._spans[-1] = [min(times), max(times)]
            self._has_milliseconds |= not entry.at_s.is_integer()
        if entry.severity in _FAILURES:
            self._fail(entry)
            return
        running = self._running(entry)
        logged = read_message(entry.message, entry.detail)
        if logged is None:
            return
        if logged.sql is None:
            self._count(running, logged.ms, entry.at_s)
            return
        self._count(running)
        if logged.is_parse and logged.protocol == "prepared" and is_query(logged.sql):
            self._named += 1
        if not logged.is_execution or is_about_statistics(logged.sql):
            return
        running.text, running.logged = logged.sql, logged
        running.began_s = None if entry.at_s is None else entry.at_s - (logged.ms or 0.0) / 1000
        running.waiting = self.texts.executions(logged.sql, is_simple=logged.is_simple)
        if logged.ms is not None:
            self._count(running, logged.ms, entry.at_s)

    def _running(self, entry: LogEntry) -> _Running:
        running = self._sessions.get(entry.session)
        if running is None:
            is_known = entry.line == 1 or entry.message.startswith(_CONNECTED)
            running = self._sessions[entry.session] = _Running(LoggedSession(self.sequences, is_known))
            if len(self._sessions) > _MOST_SESSIONS:
                self._leave(self._sessions.pop(next(iter(self._sessions))))
        return running

    def _fail(self, entry: LogEntry) -> None:
        """Discard a failed statement, which pg_stat_statements does not count either."""
        running = self._sessions.get(entry.session)
        if running is not None and entry.query in {"", running.text}:
            running.waiting = ()
            running.ended_s = None

    def _leave(self, running: _Running) -> None:
        self._count(running)
        running.session.leave()
        self._busy_s += running.session.busy_s

    def _count(self, running: _Running, ms: float | None = None, ended_s: float | None = None) -> None:
        """Count the statements that a session executed in ``ms`` milliseconds together."""
        has_ended = ms is not None and ended_s is not None
        ended_s = running.began_s if ended_s is None else ended_s
        waiting, running.waiting = running.waiting, ()
        waiting = self._in_a_transaction(running, waiting)
        if waiting:
            self._take_pause(running)
        for one in waiting:
            counts = self._counts.setdefault(one.statement, _Counts())
            counts.calls += 1
            if one.part is TransactionPart.QUERY and running.logged is not None and running.logged.protocol:
                self._sent[running.logged.protocol] += 1
            if ms is not None:
                counts.timed += 1
                counts.time_ms += ms / len(waiting)
            if not running.session.is_in_block and ms is not None:
                self._busy_s += ms / len(waiting) / 1000
            chains = one.part is not None and _CHAINS.search(self.texts.sql[one.statement]) is not None
            running.session.run(one.statement, one.part, (running.began_s, ended_s), chains=chains)
            self._take_values(running, one)
        if waiting and has_ended and not running.session.is_in_block:
            running.ended_s = ended_s

    def _take_pause(self, running: _Running) -> None:
        """Record the time from a session's latest transaction to the one that begins."""
        ended_s, running.ended_s = running.ended_s, None
        if ended_s is None or running.began_s is None or not running.session.is_known:
            return
        if len(self._pauses) < _MOST_PAUSES:
            self._pauses.append(max(0.0, running.began_s - ended_s))

    def _take_values(self, running: _Running, one: Execution) -> None:
        values = {**(running.logged.values if running.logged is not None else {}), **one.values}
        self.values.add(one.statement, values)
        if one.part is TransactionPart.BEGIN or not running.session.is_in_block:
            running.values.clear()
        self.equalities.add(running.values, one.statement, values)

    def _in_a_transaction(self, running: _Running, waiting: tuple[Execution, ...]) -> tuple[Execution, ...]:
        """Add BEGIN and COMMIT around several statements that were sent in one text outside a block."""
        is_block = running.session.is_in_block or any(one.part in _CONTROL for one in waiting)
        if len(waiting) < 2 or is_block:
            return waiting
        control = self.texts.executions("BEGIN; COMMIT", is_simple=True)
        return (control[0], *waiting, control[-1]) if len(control) == 2 else waiting
