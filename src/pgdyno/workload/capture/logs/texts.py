"""The distinct statements of a log, numbered and without constants."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pgdyno.workload.capture.literals import parameterised, statements_of
from pgdyno.workload.capture.statements import TransactionPart, executable, is_query, look_at, shown
from pgdyno.workload.capture.syntax import parameter_count

MOST_TEXTS = 5000
"""Maximum number of distinct statements, as in pg_stat_statements by default."""
MOST_PARAMETERS = 2000
"""Maximum per statement: nobody could edit longer lists of rows."""
MOST_CHARACTERS = 8_000_000
"""Maximum for all distinct statements: a workload's file is read up to 16 million."""
# Arbitrary: texts, and characters and values of each.
_MOST_CACHED, _LONGEST_CACHED, _MOST_CACHED_VALUES = 5000, 4096, 100
_SAVEPOINT = re.compile(
    r"(SAVEPOINT|RELEASE(?:\s+SAVEPOINT)?|ROLLBACK(?:\s+(?:WORK|TRANSACTION))?\s+TO(?:\s+SAVEPOINT)?)\s+"
    r'(?:"[^"]*"|\w+)\s*',
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Execution:
    """A statement's number, and the values of the constants in its text."""

    statement: int
    part: TransactionPart | None
    values: dict[int, str | None]


@dataclass
class Texts:
    """Statements by number, their parts in transactions, and the types of the constants when first seen.

    ``more`` counts executions of statements beyond the maximum number, ``long`` those of statements with too
    many parameters.
    """

    sql: dict[int, str] = field(default_factory=dict)
    types: dict[int, dict[int, str]] = field(default_factory=dict)
    more: int = 0
    long: int = 0
    _characters: int = 0
    _parts: dict[int, TransactionPart | None] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _cached: dict[str, tuple[Execution, ...]] = field(default_factory=dict)

    def executions(self, text: str, *, is_simple: bool) -> tuple[Execution, ...]:
        """Return the statements in a text sent by a client; only the simple protocol allows several."""
        known = self._cached.get(text)
        if known is None:
            parts = statements_of(text) if is_simple else [text]
            found = [self._execution(part) for part in parts]
            known = tuple(one for one in found if one is not None)
            has_few = sum(len(one.values) for one in known) <= _MOST_CACHED_VALUES
            if len(text) <= _LONGEST_CACHED and has_few and len(known) == len(parts):
                if len(self._cached) >= _MOST_CACHED:
                    self._cached.clear()
                self._cached[text] = known
        return known

    def _execution(self, text: str) -> Execution | None:
        whole = parameterised(text)
        sql, values, types = whole.sql.rstrip(";").rstrip(), whole.values, whole.types
        savepoint = _SAVEPOINT.fullmatch(sql)
        if savepoint is not None:
            sql = executable(f"{savepoint[1]} $1")
        elif not is_query(sql) and isinstance(look_at(sql), str):
            sql, values, types = shown(sql), {}, {}
        number = self._numbers.get(sql)
        if number is None:
            if parameter_count(sql) > MOST_PARAMETERS:
                self.long += 1
                return None
            self._characters += len(sql)
            if len(self._numbers) >= MOST_TEXTS or self._characters > MOST_CHARACTERS:
                self.more += 1
                return None
            number = self._numbers[sql] = len(self._numbers) + 1
            look = look_at(sql)
            self.sql[number], self.types[number] = sql, types
            self._parts[number] = None if isinstance(look, str) else look.kind
        return Execution(number, self._parts[number], values)
