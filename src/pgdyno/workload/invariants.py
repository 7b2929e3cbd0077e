"""Invariants of a captured workload: queries that each of its servers is asked before a load and after it.

A server that loses or invents rows is no faster one, and a load that does what its application never does
measures nothing that anybody has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

import psycopg

from pgdyno.base.errors import MeasurementError, ServerError, UsageError
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.invariant import Invariant, QueryAnswer, why_broken, why_wrong
from pgdyno.postgres.connection.control_connection import ControlConnection, look, parameter_types

Connect = Callable[[], ControlConnection]
"""Opens a session as a load has it: with its role and its search path."""
_LIMIT_S = 60  # arbitrary: a sum over some million rows takes a second
_MARGIN_S = 5.0  # until the server has told that it has ended a query
# Floating-point sums depend on the order of rows in their last digits: 9 of 15 are compared.
_SETTINGS = {"extra_float_digits": "-6", "statement_timeout": f"{_LIMIT_S}s"}
# A subquery can only read, and there is but one; its last line may be a comment. Of the number of rows it
# matters alone whether there are several.
_HEAD, _TAIL = "SELECT * FROM (\n", "\n) AS invariant LIMIT 2"


@dataclass(frozen=True)
class Invariants:
    """A workload's invariants on servers by name, and the answers before its load."""

    workload: str
    invariants: tuple[Invariant, ...]
    servers: Mapping[str, Connect]
    before: Mapping[str, tuple[QueryAnswer, ...]]

    @classmethod
    def before_load(cls, workload: CapturedWorkload, servers: Mapping[str, Connect]) -> Invariants:
        """Ask all servers. Raises: UsageError for an invariant that does not hold even now; ServerError."""
        invariants = workload.invariants
        before = {name: _answers(invariants, connect) for name, connect in servers.items()}
        for name, answers in before.items():
            for one, answer in zip(invariants, answers, strict=True):
                if wrong := why_wrong(one.expected, answer):
                    raise UsageError(
                        f'the invariant "{one.name}" of {workload.name} does not hold before the load',
                        detail=f"on {name}: {wrong}",
                        hint="does the copy have the rows that it is about? pgdyno workload edit changes it",
                    )
        return cls(workload.name, invariants, servers, before)

    def require_kept(self) -> None:
        """Ask all servers again. Raises: MeasurementError for an invariant that is broken; ServerError."""
        after = {name: _answers(self.invariants, connect) for name, connect in self.servers.items()}
        for place, one in enumerate(self.invariants):
            broken = {
                name: why
                for name in self.servers
                if (why := why_broken(one.expected, self.before[name][place], after[name][place]))
            }
            if broken:
                raise MeasurementError(
                    f'the result is not valid: {self.workload} has broken its invariant "{one.name}"',
                    detail="; ".join(f"on {name}: {why}" for name, why in broken.items()),
                    hint=self._hint(len(broken)),
                )

    def _hint(self, broken: int) -> str:
        if broken < len(self.servers):
            return "other servers have kept it: do not trust the data of this one, nor its figures"
        return (
            "a replay draws parameters, and may do what the application never does: then change the "
            "invariant or the parameters with pgdyno workload edit; else the server loses or invents rows"
        )


def _answers(invariants: tuple[Invariant, ...], connect: Connect) -> tuple[QueryAnswer, ...]:
    if not invariants:
        return ()
    with closing(connect()) as connection:
        return tuple(read_answer(connection, one) for one in invariants)


def read_answer(connection: ControlConnection, invariant: Invariant) -> QueryAnswer:
    """Return the answer at this moment.

    Raises: UsageError for a query that the server refuses, or that takes too long; ServerError if the session
    is lost.
    """
    connection.answer_limit_s = _LIMIT_S + _MARGIN_S
    text = f"{_HEAD}{invariant.sql.strip().rstrip(';')}{_TAIL}"
    try:
        with look(connection, _SETTINGS):
            parameter_types(connection, text.encode())  # the server refuses to parse several statements
            found = connection.execute(text.encode()).pgresult
    except psycopg.Error as error:
        if connection.closed:
            raise ServerError(
                f'the session that asks for the invariant "{invariant.name}" was lost'
            ) from error
        raise UsageError(
            f'the server does not answer the query of the invariant "{invariant.name}"',
            detail=error.diag.message_primary or str(error),
            hint="it has to be one query that only reads, as the role of the load; pgdyno workload edit "
            "changes it",
        ) from error
    assert found is not None  # noqa: S101 — a query has a result
    if found.nfields != 1:
        raise UsageError(
            f'the query of the invariant "{invariant.name}" returns {found.nfields} columns',
            hint="let it return one value",
        )
    value = found.get_value(0, 0) if found.ntuples else None
    return QueryAnswer(found.ntuples, None if value is None else value.decode(errors="replace"))
