"""The load in a log: counts of statements, transactions, and values of parameters."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.model.experiments.captured import Protocol
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.logs.dependencies import Dependencies, TransactionSoFar
from pgdyno.workload.capture.logs.entry import LogEntry, Logged, is_foreign, read_message
from pgdyno.workload.capture.logs.line_prefix import UNKNOWN
from pgdyno.workload.capture.logs.sequences import LoggedSession, Sequences
from pgdyno.workload.capture.logs.texts import MOST_CHARACTERS, MOST_PARAMETERS, MOST_TEXTS, Execution, Texts
from pgdyno.workload.capture.logs.values import Values
from pgdyno.workload.capture.protocol import note_on_protocols
from pgdyno.workload.capture.statements import ENDS, TransactionPart, is_query
from pgdyno.workload.capture.transactions import SeenTransaction

_MOST_SESSIONS = 10_000  # open at a time: more than any server has; beyond it, the oldest are taken as ended
_MOST_PAUSES = 100_000  # the first ones are kept: they represent all
_MOST_DATABASES = 1000  # counted separately: arbitrary
_OURS = "pgdyno"  # prefix of the application names of pgdyno's sessions
# The first messages of pgdyno's sessions, and all messages of those that a pooler shares: without %a in
# log_line_prefix, the log has no name of theirs. postgres/connection/control_connection.py makes them. The
# transaction that reads settings (postgres/guc.py) has no name either: it resets application_name.
_OWN = re.compile(
    r"(?P<statement>SELECT pg_catalog\.set_config\('transaction_read_only', 'on', true\)"
    r'|SET LOCAL "[a-z_]+" TO .*; SELECT pg_catalog\.pg_backend_pid\(\)$)'
    r"|(?P<transaction>BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT pg_catalog\.set_config\("
    r"|\s*SELECT pg_catalog\.count\(pg_catalog\.set_config\(name, NULL, true\)\)"
    r"|\s*SELECT name, setting, unit, vartype, context, source, boot_val, reset_val, min_val, max_val,\s)"
    r"""|(?P<session>SET "statement_timeout" TO '\w+'; """
    r"""(SET "transaction_timeout" TO '0'; )?SET "lock_timeout" TO '\w+'; SET "search_path" TO '';)"""
)
_FAILURES = frozenset({"ERROR", "FATAL", "PANIC"})
_CONNECTED = "connection "  # received, authenticated, authorized: a session's first entries
_CONTROL = (TransactionPart.BEGIN, *ENDS)
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
    so_far: TransactionSoFar = field(default_factory=TransactionSoFar)
    first_s: float = math.inf  # start of its first statement, or its first entry
    last_s: float = -math.inf
    is_working: bool = False  # it has executed a statement
    own: str | None = None  # pgdyno's from now on: a statement, a transaction, or the whole session


@dataclass
class LoggedLoad:
    """A database's load according to a log.

    ``entries`` counts the entries read, ``unread`` unreadable ones, ``elsewhere`` those of other databases by
    name, ``foreign`` messages about statements in another language than English. ``is_sample``: the log has
    statements of some transactions, but failures of all.
    """

    database: str
    values: Values
    entries: int = 0
    unread: int = 0
    elsewhere: Counter[str] = field(default_factory=Counter)
    foreign: int = 0
    is_sample: bool = False
    dependencies: Dependencies = field(default_factory=Dependencies)
    texts: Texts = field(default_factory=Texts)
    sequences: Sequences = field(default_factory=Sequences)
    _sent: Counter[Protocol] = field(default_factory=Counter)  # executed queries
    _named: int = 0  # parse messages of queries with a statement name
    _counts: dict[int, _Counts] = field(default_factory=dict)
    _sessions: dict[str, _Running] = field(default_factory=dict)
    _busy_s: float = 0.0
    _pauses: list[float] = field(default_factory=list)
    _failed: int = 0
    _has_milliseconds: bool = False
    _spans: list[list[float]] = field(default_factory=list)  # first and last time of each file
    _connected_s: float = 0.0  # of sessions that executed statements: from the first one to the last entry

    def read(self, entries: Iterable[LogEntry | None]) -> None:
        """Add the entries of a file; those of a session are in order."""
        self._spans.append([])
        for entry in entries:
            if entry is None:
                self.unread += 1
                continue
            self.entries += 1
            if entry.database is not None and entry.database != self.database:
                self._pass(entry.database)
            elif not entry.application.startswith(_OURS):
                self._take(entry)
            elif entry.message.endswith("ROLLBACK") and entry.session in self._sessions:
                _is_own(self._sessions[entry.session], "ROLLBACK")

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
        return self._covered_s(-math.inf, math.inf)

    @property
    def clients(self) -> float:
        """The mean number of sessions in transactions."""
        return self._busy_s / self.seconds if self.seconds > 0 else 1.0

    @property
    def sessions(self) -> float | None:
        """The mean number of sessions that executed statements; None without milliseconds."""
        is_known = self._has_milliseconds and self.seconds > 0
        return self._connected_s / self.seconds if is_known else None

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
        return tuple(self.sequences.kinds(self.texts.sql))

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
        yield from self.sequences.notes(self.texts.sql)
        if self.unread:
            yield f"{self.unread} entries could not be read: they are too long, incomplete or ambiguous"
        if self._failed:
            yield f"{self._failed} statements failed and are left out; others of their transactions are not"
        if self.foreign:
            yield f"{self.foreign} messages are not in English: their statements are left out"
        if note := note_on_protocols(self.sent):
            yield note
        yield from self.values.notes()

    def _pass(self, database: str) -> None:
        """Count an entry of another database."""
        if database and database != UNKNOWN:
            is_room = database in self.elsewhere or len(self.elsewhere) < _MOST_DATABASES
            self.elsewhere[database if is_room else "…"] += 1

    def _extend_span(self, at_s: float) -> None:
        """Extend the time covered by the current file."""
        span = self._spans[-1]
        if not span:
            span.extend((at_s, at_s))
        elif at_s > span[1]:
            span[1] = at_s
        elif at_s < span[0]:
            span[0] = at_s
        self._has_milliseconds |= not at_s.is_integer()

    def _covered_s(self, first_s: float, last_s: float) -> float:
        """Return how much of a period the files cover; overlaps count once."""
        total, until_s = 0.0, first_s
        for begin_s, end_s in sorted(span for span in self._spans if span):
            total += max(0.0, min(end_s, last_s) - max(begin_s, until_s))
            until_s = max(until_s, end_s)
        return total

    def _take(self, entry: LogEntry) -> None:
        if entry.at_s is not None:
            self._extend_span(entry.at_s)
        if entry.severity in _FAILURES:
            self._fail(entry)
            return
        running = self._running(entry)
        # The server hides the statement in messages about statements alone; RAISE LOG 'statement: …' has one.
        logged = None if entry.query else read_message(entry.message, entry.detail)
        if logged is None:
            self.foreign += is_foreign(entry)
            return
        if logged.sql is None:
            self._count(running, logged.ms, entry.at_s)
            return
        self._count(running)
        if _is_own(running, logged.sent or logged.sql):
            return
        if logged.is_parse and logged.protocol == "prepared" and is_query(logged.sql):
            self._named += 1
        if not logged.is_execution:
            return
        running.text, running.logged = logged.sent or logged.sql, logged
        running.began_s = None if entry.at_s is None else entry.at_s - (logged.ms or 0.0) / 1000
        if running.began_s is not None:
            running.first_s = min(running.first_s, running.began_s)
        running.waiting = self.texts.executions(logged.sql, is_simple=logged.is_simple)
        if logged.ms is not None:
            self._count(running, logged.ms, entry.at_s)

    def _running(self, entry: LogEntry) -> _Running:
        running = self._sessions.get(entry.session)
        is_known = entry.line == 1 or entry.message.startswith(_CONNECTED)
        if running is not None and is_known:
            running.own = None  # a process id is used again
        if running is None:
            running = self._sessions[entry.session] = _Running(LoggedSession(self.sequences, is_known))
            if len(self._sessions) > _MOST_SESSIONS:
                self._leave(self._sessions.pop(next(iter(self._sessions))))
        if entry.at_s is not None:
            running.first_s = min(running.first_s, entry.at_s)
            running.last_s = max(running.last_s, entry.at_s)
        return running

    def _fail(self, entry: LogEntry) -> None:
        """Discard a failed statement, which pg_stat_statements does not count either."""
        running = self._sessions.get(entry.session)
        if running is not None and running.own is not None:
            return
        if not self.is_sample or (running is not None and running.session.is_in_block):
            self._failed += bool(entry.query)
        if running is not None and entry.query in {"", running.text}:
            running.waiting = ()
            running.ended_s = None

    def _leave(self, running: _Running) -> None:
        self._count(running)
        running.session.leave()
        busy_s = running.session.busy_s
        if running.is_working and running.first_s <= running.last_s:
            # Statements may have begun before the log, and durations be rounded.
            connected_s = self._covered_s(running.first_s, running.last_s)
            self._connected_s += connected_s
            busy_s = min(busy_s, connected_s)
        self._busy_s += busy_s

    def _count(self, running: _Running, ms: float | None = None, ended_s: float | None = None) -> None:
        """Count the statements that a session executed in ``ms`` milliseconds together."""
        if not running.waiting:
            return
        has_ended = ms is not None and ended_s is not None
        ended_s = running.began_s if ended_s is None else ended_s
        waiting, running.waiting = self._in_a_transaction(running, running.waiting), ()
        running.is_working = True
        self._take_pause(running)
        each_ms = None if ms is None else ms / len(waiting)
        protocol = None if running.logged is None else running.logged.protocol
        for one in waiting:
            counts = self._counts.get(one.statement)
            if counts is None:
                counts = self._counts[one.statement] = _Counts()
            counts.calls += 1
            is_control = one.part in _CONTROL
            if protocol is not None and one.part is TransactionPart.QUERY:
                self._sent[protocol] += 1
            if each_ms is not None:
                counts.timed += 1
                counts.time_ms += each_ms
                if not is_control and not running.session.is_in_block:
                    running.session.busy_s += each_ms / 1000
            chains = is_control and _CHAINS.search(self.texts.sql[one.statement]) is not None
            running.session.run(one.statement, one.part, (running.began_s, ended_s), chains=chains)
            self._take_values(running, one)
        if has_ended and not running.session.is_in_block:
            running.ended_s = ended_s

    def _take_pause(self, running: _Running) -> None:
        """Record the time from a session's latest transaction to the one that begins."""
        ended_s, running.ended_s = running.ended_s, None
        if ended_s is None or running.began_s is None or not running.session.is_known:
            return
        if len(self._pauses) < _MOST_PAUSES:
            self._pauses.append(max(0.0, running.began_s - ended_s))

    def _take_values(self, running: _Running, one: Execution) -> None:
        values = one.values if running.logged is None else running.logged.values | one.values
        self.values.add(one.statement, values, running.began_s)
        if one.part is TransactionPart.BEGIN or not running.session.is_in_block:
            running.so_far.clear()
        self.dependencies.add(running.so_far, one.statement, values)

    def _in_a_transaction(self, running: _Running, waiting: tuple[Execution, ...]) -> tuple[Execution, ...]:
        """Add BEGIN and COMMIT around several statements that were sent in one text outside a block."""
        if len(waiting) < 2 or running.session.is_in_block or any(one.part in _CONTROL for one in waiting):
            return waiting
        control = self.texts.executions("BEGIN; COMMIT", is_simple=True)
        return (control[0], *waiting, control[-1]) if len(control) == 2 else waiting


def _is_own(running: _Running, text: str) -> bool:
    """Whether a statement is pgdyno's, in a session of its own or in one that it shares through a pooler."""
    found = _OWN.match(text)
    own = None if found is None else found.lastgroup
    if running.own is None or own == "session":
        running.own = own
    is_own = running.own is not None
    if running.own == "statement" or (running.own == "transaction" and text == "ROLLBACK"):
        running.own = None
    return is_own
