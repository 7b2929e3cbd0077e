"""Invariants of a captured workload: queries run on each of its servers before and after a load.

A server that loses or invents rows is not faster, and measuring a load that the application never causes is
useless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

import psycopg

from pgdyno.base.errors import MeasurementError, ServerError, UsageError
from pgdyno.model.experiments.captured import CapturedWorkload, Invariant, QueryAnswer, why_broken, why_wrong
from pgdyno.postgres.connection.control_connection import ControlConnection, look, parameter_types

Connect = Callable[[], ControlConnection]
"""Opens a session with the role and search path of a load."""
_LIMIT_S = 60  # arbitrary: a sum over some million rows takes a second
_MARGIN_S = 5.0  # until the server has reported the end of a query
# The last digits of floating-point sums depend on the order of rows: 9 of 15 digits are compared.
_SETTINGS = {"extra_float_digits": "-6", "statement_timeout": f"{_LIMIT_S}s"}
# As a subquery, the text can only be a single read-only query; its last line may be a comment. LIMIT 2 is
# enough to detect several rows.
_HEAD, _TAIL = "SELECT * FROM (\n", "\n) AS invariant LIMIT 2"


@dataclass(frozen=True)
class Invariants:
    """A workload's invariants, its servers by name, and the servers' answers before the load."""

    workload: str
    invariants: tuple[Invariant, ...]
    servers: Mapping[str, Connect]
    before: Mapping[str, tuple[QueryAnswer, ...]]

    @classmethod
    def before_load(cls, workload: CapturedWorkload, servers: Mapping[str, Connect]) -> Invariants:
        """Query all servers. Raises: UsageError for an invariant that does not hold yet; ServerError."""
        invariants = workload.invariants
        before = {name: _answers(invariants, connect) for name, connect in servers.items()}
        for name, answers in before.items():
            for one, answer in zip(invariants, answers, strict=True):
                if wrong := why_wrong(one.expected, answer):
                    raise UsageError(
                        f'the invariant "{one.name}" of {workload.name} does not hold before the load',
                        detail=f"on {name}: {wrong}",
                        hint="check that the copy has the rows concerned, or change the invariant with "
                        "pgdyno workload edit",
                    )
        return cls(workload.name, invariants, servers, before)

    def require_kept(self) -> None:
        """Query all servers again. Raises: MeasurementError for a broken invariant; ServerError."""
        after = {name: _answers(self.invariants, connect) for name, connect in self.servers.items()}
        for place, one in enumerate(self.invariants):
            broken = {
                name: why
                for name in self.servers
                if (why := why_broken(one.expected, self.before[name][place], after[name][place]))
            }
            if broken:
                raise MeasurementError(
                    f'the result is not valid: {self.workload} broke its invariant "{one.name}"',
                    detail="; ".join(f"on {name}: {why}" for name, why in broken.items()),
                    hint=self._hint(len(broken)),
                )

    def _hint(self, broken: int) -> str:
        if broken < len(self.servers):
            return "it holds on the other servers: do not trust this server's data or results"
        return (
            "a replay draws parameters, and may do what the application never does: in that case, change the "
            "invariant or the parameters with pgdyno workload edit; if not, the server loses or invents rows"
        )


def _answers(invariants: tuple[Invariant, ...], connect: Connect) -> tuple[QueryAnswer, ...]:
    if not invariants:
        return ()
    with closing(connect()) as connection:
        return tuple(read_answer(connection, one) for one in invariants)


def read_answer(connection: ControlConnection, invariant: Invariant) -> QueryAnswer:
    """Return the current answer of an invariant's query.

    Raises: UsageError for a query that the server rejects, or that takes too long; ServerError if the session
    is lost.
    """
    connection.answer_limit_s = _LIMIT_S + _MARGIN_S
    text = f"{_HEAD}{invariant.sql.strip().rstrip(';')}{_TAIL}"
    try:
        with look(connection, _SETTINGS):
            parameter_types(connection, text.encode())  # the server rejects several statements when parsing
            found = connection.execute(text.encode()).pgresult
    except psycopg.Error as error:
        if connection.closed:
            raise ServerError(f'connection lost while querying the invariant "{invariant.name}"') from error
        raise UsageError(
            f'the query of the invariant "{invariant.name}" failed',
            detail=error.diag.message_primary or str(error),
            hint="it must be a single read-only query that the load's role may run; change it with pgdyno "
            "workload edit",
        ) from error
    assert found is not None  # noqa: S101 — a query has a result
    if found.nfields != 1:
        raise UsageError(
            f'the query of the invariant "{invariant.name}" returns {found.nfields} columns',
            hint="it must return one value",
        )
    value = found.get_value(0, 0) if found.ntuples else None
    return QueryAnswer(found.ntuples, None if value is None else value.decode(errors="replace"))
