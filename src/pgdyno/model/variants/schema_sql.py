"""SQL of a variant: statements that change indexes, statistics or storage of its copy of the data. Pure.

A script is split into statements, without running any. A statement is recognised by its first words, which
decide its kind in PostgreSQL's grammar; one that could also change tables or constraints is matched as a
whole. All others are refused; no list of harmful statements could be complete. The role that runs them owns
the tables and has no other rights, so an expression in an index can do no more than its owner.

Source: PostgreSQL, src/backend/parser/gram.y, IndexStmt, CreateStatsStmt, AlterTableStmt and VacuumStmt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.base.errors import VariantError
from pgdyno.base.text import shortened
from pgdyno.postgres.planner.sql_text import statements_in

MOST_CHARACTERS = 256 << 10  # of a script: arbitrary; 1,000 indexes take 100,000
ALLOWED = (
    "CREATE INDEX, DROP INDEX without CASCADE, CREATE STATISTICS, ALTER TABLE or INDEX … SET (…), "
    "ALTER TABLE or INDEX … ALTER COLUMN … SET STATISTICS, ALTER INDEX … ATTACH PARTITION, VACUUM, ANALYZE, "
    "CLUSTER"
)
_SHOWN = 100  # characters of a statement in messages
_BETWEEN = "; "
_FILE_HINT = "a file of SQL has a name that ends in .sql; "

_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_TABLE = rf"{_NAME}(?: ?\. ?{_NAME})*"
_STORAGE = r"(?:SET|RESET) ?\([^()]*\)"
_TARGET = rf"ALTER (?:COLUMN )?(?:{_NAME}|\d+) SET STATISTICS (?:-?\d+|DEFAULT)"
_CHANGE = rf"(?:{_STORAGE}|{_TARGET})"
# ALTER INDEX … RENAME also renames tables; DROP INDEX … CASCADE also drops foreign keys.
_FORMS = re.compile(
    r"(?:CREATE(?: UNIQUE)? INDEX|CREATE STATISTICS|VACUUM|ANALY[ZS]E|CLUSTER)\b.*"
    rf"|DROP INDEX (?:CONCURRENTLY )?(?:IF EXISTS )?{_TABLE}(?: ?, ?{_TABLE})*(?: RESTRICT)?"
    rf"|ALTER (?:TABLE (?:IF EXISTS )?(?:ONLY )?{_TABLE}(?: ?\*)?|INDEX (?:IF EXISTS )?{_TABLE}) "
    rf"{_CHANGE}(?: ?, ?{_CHANGE})*"
    rf"|ALTER INDEX {_TABLE} ATTACH PARTITION {_TABLE}",
    re.IGNORECASE | re.DOTALL,
)
_TRANSACTION = re.compile(r"(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE)\b", re.IGNORECASE)


@dataclass(frozen=True)
class SchemaChange:
    """The cost of a variant's SQL on its copy of a workload's data; run once, for all rounds.

    ``made_bytes`` is the size of new and rewritten tables and indexes, ``dropped_bytes`` that of those that
    are gone. The variant's SQL may be empty: then its copy only went through the same steps as the others.
    """

    variant: str
    workload: str
    statements: tuple[str, ...]
    time_s: float
    made_bytes: int
    dropped_bytes: int
    wal_bytes: int


def script_of(texts: Sequence[str]) -> str:
    """Return the canonical form of SQL, without comments. Equal scripts are equal texts."""
    return _BETWEEN.join(one for text in texts for one in statements_in(text))


def require_schema_statements(variant: str, script: str) -> None:
    """Refuse SQL with statements that do not only change indexes, statistics or storage.

    Raises: VariantError with the statement and the list of those that are allowed.
    """
    statements = statements_in(script)
    if not statements:
        raise VariantError(f'the SQL of variant "{variant}" has no statement', hint=f"allowed: {ALLOWED}")
    if len(script) > MOST_CHARACTERS:
        raise VariantError(
            f'the SQL of variant "{variant}" has {len(script):,} characters',
            detail=f"at most {MOST_CHARACTERS:,} are read",
            hint="compare fewer changes at a time",
        )
    for number, statement in enumerate(statements, 1):
        if _FORMS.fullmatch(statement):
            continue
        reason = (
            "each statement is a transaction of its own, as CREATE INDEX CONCURRENTLY and VACUUM require"
            if _TRANSACTION.match(statement)
            else "the SQL of a variant may only change indexes, statistics and storage parameters"
        )
        raise VariantError(
            f'variant "{variant}" may not run "{shown(statement)}"',
            detail=f"statement {number} of {len(statements)}: {reason}",
            hint=f"{_FILE_HINT if ' ' not in statement else ''}allowed: {ALLOWED}",
        )


def shown(statement: str) -> str:
    """Return a statement, or its beginning, in one line for messages."""
    return shortened(" ".join(statement.split()), _SHOWN)
