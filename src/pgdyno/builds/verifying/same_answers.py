"""Queries whose answers depend on every single floating-point operation.

A compiler that contracts a product with a sum, keeps more digits than the type has, or adds up in another
order, answers some of them differently in the last bit. Answers are compared as PostgreSQL prints them, which
is the shortest text that stands for exactly one value, and plans with all the costs that led to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from importlib.resources import files

from pgdyno.base.errors import InstallationError
from pgdyno.postgres.process.instance import Instance

_CORPUS = files(__package__) / "corpus"

Answers = Mapping[str, tuple[str, ...]]
"""By question: the lines of its answer."""


def ask_all(server: Instance) -> Answers:
    """Return the answers of a running server, in whose data nothing of it stays."""
    with closing(server.connect()) as connection:
        connection.execute("CREATE DATABASE answers TEMPLATE template0")
        try:
            return _ask_in_database(server)
        finally:
            connection.execute("DROP DATABASE answers")


def require_equal(expected: Answers, found: Answers) -> int:
    """Return how many lines were compared. Raises: InstallationError showing the first that differ."""
    for question, lines in expected.items():
        for line, other in zip(lines, found[question], strict=False):
            if line != other:
                raise _differ(question, line, other)
        if len(lines) != len(found[question]):
            raise _differ(question, f"{len(lines)} lines", f"{len(found[question])} lines")
    return sum(len(lines) for lines in expected.values())


def _ask_in_database(server: Instance) -> Answers:
    with closing(server.connect("answers")) as connection:
        for statement in _read("preparation"):
            connection.execute(statement)
        answers = {}
        for question in _read("questions"):
            with connection.cursor() as cursor, cursor.copy(f"COPY ({question}) TO STDOUT".encode()) as rows:
                answers[question] = tuple(bytes(row).decode() for row in rows)
        for question in _read("plans"):
            plan = connection.execute(f"EXPLAIN (VERBOSE) {question}".encode()).fetchall()
            answers[f"EXPLAIN {question}"] = tuple(line for (line,) in plan)
    return answers


def _read(name: str) -> list[str]:
    """Return the statements of one file of the corpus."""
    text = (_CORPUS / f"{name}.sql").read_text()
    statements = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [statement.strip() for statement in f"{statements}\n".split(";\n") if statement.strip()]


def _differ(question: str, expected: str, found: str) -> InstallationError:
    return InstallationError(
        "the finished build gives another answer than the plain build of the same source",
        detail=f"{question}\n         plain:     {expected.strip()}\n         optimised: {found.strip()}",
        hint="keep no data with it; another compiler or a lower level may do better",
    )
