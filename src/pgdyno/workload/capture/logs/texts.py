"""The distinct statements of a log, numbered and without constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pgdyno.workload.capture.literals import Parameterised, parameterised, statements_of
from pgdyno.workload.capture.statements import (
    TransactionPart,
    executable,
    is_of_others,
    is_query,
    look_at,
    shown,
)
from pgdyno.workload.capture.syntax import parameter_count, shared

MOST_TEXTS = 5000
"""Maximum number of distinct statements, as in pg_stat_statements by default."""
MOST_PARAMETERS = 2000
"""Maximum per statement: nobody could edit longer lists of rows."""
MOST_CHARACTERS = 8_000_000
"""Maximum for all distinct statements: a workload's file is read up to 16 million."""
# Arbitrary: memory for texts that were seen before, and estimates of what each of them takes.
_MOST_CACHED_BYTES, _TEXT_BYTES, _VALUE_BYTES = 30_000_000, 1000, 200
# Strings and numbers, and quoted names and comments, which may look as if they contained some.
_CONSTANT = re.compile(
    r"""('(?:[^']|'')*+'|"[^"]*+"|(?<![\w$.])\d++(?:\.\d++)?(?![\w$.])|--[^\n]*+"""
    r"""|/\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/)"""
)
_STRING, _INTEGER, _DECIMAL, _SPACE = "\0s", "\0i", "\0d", "\0 "
_MARK = re.compile(r"\0[sid ]")
_UNSURE = re.compile(r"'|/\*|\$(?!\d)")  # strings between dollars, unfinished strings and comments


@dataclass(slots=True)
class Execution:
    """A statement's number, and the values of the constants in its text."""

    statement: int
    part: TransactionPart | None
    values: dict[int, str | None]


_Places = tuple[tuple[int, int, str], ...]
"""Parameters, each with the index of its constant in the text, and its sign."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The executions of a text, or of all texts that differ only in their constants.

    ``places`` has the constants of each execution, and is empty for a single text. ``more`` and ``long``
    count statements that are left out.
    """

    executions: tuple[Execution, ...]
    more: int
    long: int
    places: tuple[_Places, ...] = ()


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
    _known: dict[str, _Known] = field(default_factory=dict)  # by text
    _shapes: dict[str, _Known | None] = field(default_factory=dict)  # None: their texts have to be read
    _cached_bytes: int = 0

    def executions(self, text: str, *, is_simple: bool) -> tuple[Execution, ...]:
        """Return the statements in a text sent by a client; only the simple protocol allows several.

        Statements that read the statistics used for capturing workloads are left out.
        """
        known, constants = self._known.get(text), list[str]()
        if known is None:
            shape, constants = _shape(text)
            known = self._shapes.get(shape)
            if known is None:
                return self._read(text, shape, constants, is_simple=is_simple)
        self.more += known.more
        self.long += known.long
        if not known.places:
            return known.executions
        found = []
        for one, places in zip(known.executions, known.places, strict=True):
            values = one.values.copy()
            for number, at, sign in places:
                values[number] = sign + constants[at]
            found.append(Execution(one.statement, one.part, values))
        return tuple(found)

    def _read(
        self, text: str, shape: str, constants: Sequence[str], *, is_simple: bool
    ) -> tuple[Execution, ...]:
        """Return the executions of a text, and keep them for texts of the same shape if these are alike."""
        more, long = self.more, self.long
        found = _statements(text, is_simple=is_simple)
        all_runs = [self._execution(one) for one in found]
        runs = tuple(one for one in all_runs if one is not None)
        known = _Known(runs, self.more - more, self.long - long)
        places = None
        if shape != text and shape not in self._shapes:
            places = _places(found, shape, constants, is_simple=is_simple)
        if places is None:
            self._keep(text, runs)
            self._known[text] = known
            if shape != text:
                self._shapes[shape] = None
        else:
            self._keep(shape, runs)
            its = tuple(one for one, run in zip(places, all_runs, strict=True) if run is not None)
            self._shapes[shape] = replace(known, places=its)
        return runs

    def _keep(self, key: str, executions: Sequence[Execution]) -> None:
        """Make room for a text or shape."""
        values = sum(len(one.values) for one in executions)
        self._cached_bytes += _TEXT_BYTES + 2 * len(key) + _VALUE_BYTES * values
        if self._cached_bytes > _MOST_CACHED_BYTES:
            self._known.clear()
            self._shapes.clear()
            self._cached_bytes = 0

    def _execution(self, one: Parameterised) -> Execution | None:
        number = self._numbers.get(one.sql)
        if number is None:
            if parameter_count(one.sql) > MOST_PARAMETERS:
                self.long += 1
                return None
            self._characters += len(one.sql)
            if len(self._numbers) >= MOST_TEXTS or self._characters > MOST_CHARACTERS:
                self.more += 1
                return None
            number = self._numbers[one.sql] = len(self._numbers) + 1
            look = look_at(one.sql)
            self.sql[number], self.types[number] = one.sql, one.types
            self._parts[number] = None if isinstance(look, str) else look.kind
        return Execution(number, self._parts[number], one.values)


def _statements(text: str, *, is_simple: bool) -> list[Parameterised]:
    parts = statements_of(text) if is_simple else [text]
    return [one for one in map(_without_constants, parts) if not is_of_others(one.sql)]


def _without_constants(text: str) -> Parameterised:
    """Return a statement without constants, or only its first words if it is not replayed."""
    whole = shared(parameterised(text))
    sql = whole.sql.rstrip(";").rstrip()
    if is_query(sql):
        return replace(whole, sql=sql)
    if isinstance(look_at(sql), str):
        return Parameterised(shown(sql), {}, {})
    return replace(whole, sql=executable(sql))


def _shape(text: str) -> tuple[str, list[str]]:
    """Return a text with marks for its constants and comments, and the values of the constants.

    The shape is the text itself if it has none, or if only a full reading shows where a constant ends.
    """
    pieces, constants = _CONSTANT.split(text), list[str]()
    if len(pieces) == 1 or "\\" in text or "\0" in text:
        return text, []
    for at in range(1, len(pieces), 2):
        piece = pieces[at]
        if piece[0] == "'":
            constants.append(piece[1:-1].replace("''", "'"))
            pieces[at] = _STRING
        elif piece[0] in "-/":
            pieces[at] = _SPACE
        elif piece[0] != '"':
            constants.append(piece)
            pieces[at] = _DECIMAL if "." in piece else _INTEGER
    return "".join(pieces), constants


def _places(
    found: Sequence[Parameterised], shape: str, constants: Sequence[str], *, is_simple: bool
) -> list[_Places] | None:
    """Return where the constants of a text are among the parameters of its statements.

    The text is read again with unlike constants: None if that changes more than the parameters' values.
    """
    if _UNSURE.search(shape) is not None:
        return None
    marks: list[str] = []

    def marked(kind: re.Match[str]) -> str:
        if kind[0] == _SPACE:
            return " "
        number = 1_000_000_000 + len(marks)
        marks.append({_STRING: f"pgdyno {number}", _INTEGER: f"{number}", _DECIMAL: f"{number}.5"}[kind[0]])
        return f"'{marks[-1]}'" if kind[0] == _STRING else marks[-1]

    again = _statements(_MARK.sub(marked, shape), is_simple=is_simple)
    if [one.sql for one in found] != [one.sql for one in again]:
        return None
    indexes = {mark: at for at, mark in enumerate(marks)}
    places = []
    for one, other in zip(found, again, strict=True):
        its = _places_in(one.values, other.values, indexes, constants)
        if its is None:
            return None
        places.append(its)
    return places


def _places_in(
    values: dict[int, str | None],
    marked: dict[int, str | None],
    indexes: dict[str, int],
    constants: Sequence[str],
) -> _Places | None:
    places = []
    for number, value in values.items():
        mark = marked.get(number)
        sign = "-" if mark is not None and mark.startswith("-") else ""
        at = None if mark is None else indexes.get(mark.removeprefix("-"))
        if at is not None and value == sign + constants[at]:
            places.append((number, at, sign))
        elif value != mark:
            return None
    return tuple(places)
