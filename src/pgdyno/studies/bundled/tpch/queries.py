"""The 22 queries: text (clause 2.4) with values inserted, values of the validation run, order in streams.

A query's file has psql's syntax: ``:name`` is a number, ``:'name'`` a quoted string.

Query answers: their comparison, and the known answers of the validation run.

A known answer is a number of rows and their checksum, in ``answers.toml``. Rows are compared as a set,
because queries leave the order of some rows open. Numbers are rounded to two decimals, as in the published
answers. This is stricter than clause 2.1.3.5, which allows ratios and averages to differ by 1 % and sums of
money by $100: PostgreSQL's numeric computes them exactly.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from importlib.resources import files

from pgdyno.base.errors import MeasurementError

NUMBERS = tuple(range(1, 23))
_SQL = files(__package__) / "sql"
_PARAMETER = re.compile(r":'(?P<quoted>\w+)'|:(?P<plain>\w+)")
Parameters = Mapping[str, str]
"""The values of a query by name."""
ORDERS = (
    (14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12),
    (21, 3, 18, 5, 11, 7, 6, 20, 17, 12, 16, 15, 13, 10, 2, 8, 14, 19, 9, 22, 1, 4),
    (6, 17, 14, 16, 19, 10, 9, 2, 15, 8, 5, 22, 12, 7, 13, 18, 1, 4, 20, 3, 11, 21),
    (8, 5, 4, 6, 17, 7, 1, 18, 22, 14, 9, 10, 15, 11, 20, 2, 21, 19, 13, 16, 12, 3),
    (5, 21, 14, 19, 15, 17, 12, 6, 4, 9, 8, 16, 11, 2, 10, 18, 1, 13, 7, 22, 3, 20),
    (21, 15, 4, 6, 7, 16, 19, 18, 14, 22, 11, 13, 3, 1, 2, 5, 8, 20, 12, 17, 10, 9),
    (10, 3, 15, 13, 6, 8, 9, 7, 4, 11, 22, 18, 12, 1, 5, 16, 2, 14, 19, 20, 17, 21),
    (18, 8, 20, 21, 2, 4, 22, 17, 1, 11, 9, 19, 3, 13, 5, 7, 10, 16, 6, 14, 15, 12),
    (19, 1, 15, 17, 5, 8, 9, 12, 14, 7, 4, 3, 20, 16, 6, 22, 10, 13, 2, 21, 18, 11),
    (8, 13, 2, 20, 17, 3, 6, 21, 18, 11, 19, 10, 15, 4, 22, 1, 7, 12, 9, 14, 5, 16),
    (6, 15, 18, 17, 12, 1, 7, 2, 22, 13, 21, 10, 14, 9, 3, 16, 20, 19, 11, 4, 8, 5),
)
"""Order of the queries by stream; stream 0 is the power run's. The appendix has streams up to 40."""
MOST_STREAMS = len(ORDERS) - 1
_FEWEST = ((1, 2), (10, 3), (30, 4), (100, 5), (300, 6), (1000, 7), (3000, 8), (10_000, 9), (30_000, 10))
"""Pairs of scale and least number of streams in the throughput run from this scale on."""


def query_text(number: int, parameters: Parameters) -> str:
    """Return a query with its values. Raises: KeyError for a missing value."""
    return _PARAMETER.sub(lambda found: _literal(found, parameters), template(number))


def template(number: int) -> str:
    """Return a query with placeholders for its values, without its comment."""
    return "".join(line for line in _file(number).splitlines(keepends=True) if line[:2] != "--")


@lru_cache
def _file(number: int) -> str:
    return (_SQL / f"q{number}.sql").read_text()


def validation_parameters(number: int, thousandths: int) -> Parameters:
    """Return a query's values in the validation run (clause 2.4.x.4), at a scale in thousandths.

    Clause 2.4.11.3 makes the fraction of Q11 depend on the scale.
    """
    own = {"fraction": fraction(thousandths)} if number == _Q11 else {}
    return {**_VALIDATION[number], **own}


def fraction(thousandths: int) -> str:
    """Return 0.0001 / scale."""
    return f"{0.1 / thousandths:.12f}"


def _literal(found: re.Match[str], parameters: Parameters) -> str:
    if found["plain"]:
        return parameters[found["plain"]]
    quoted = parameters[found["quoted"]].replace("'", "''")
    return f"'{quoted}'"


_Q11 = 11
_VALIDATION: dict[int, Parameters] = {
    1: {"delta": "90"},
    2: {"size": "15", "type": "BRASS", "region": "EUROPE"},
    3: {"segment": "BUILDING", "date": "1995-03-15"},
    4: {"date": "1993-07-01"},
    5: {"region": "ASIA", "date": "1994-01-01"},
    6: {"date": "1994-01-01", "discount": "0.06", "quantity": "24"},
    7: {"nation1": "FRANCE", "nation2": "GERMANY"},
    8: {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL"},
    9: {"color": "green"},
    10: {"date": "1993-10-01"},
    _Q11: {"nation": "GERMANY"},
    12: {"shipmode1": "MAIL", "shipmode2": "SHIP", "date": "1994-01-01"},
    13: {"word1": "special", "word2": "requests"},
    14: {"date": "1995-09-01"},
    15: {"date": "1996-01-01"},
    16: {
        "brand": "Brand#45",
        "type": "MEDIUM POLISHED",
        **{f"size{i}": size for i, size in enumerate(["49", "14", "23", "45", "19", "3", "36", "9"], 1)},
    },
    17: {"brand": "Brand#23", "container": "MED BOX"},
    18: {"quantity": "300"},
    19: {
        "brand1": "Brand#12",
        "brand2": "Brand#23",
        "brand3": "Brand#34",
        "quantity1": "1",
        "quantity2": "10",
        "quantity3": "20",
    },
    20: {"color": "forest", "date": "1994-01-01", "nation": "CANADA"},
    21: {"nation": "SAUDI ARABIA"},
    22: {f"code{i}": code for i, code in enumerate(["13", "31", "23", "29", "30", "18", "17"], 1)},
}


def usual_streams(thousandths: int) -> int:
    """Return the fewest streams that the specification allows; below scale 1, those of scale 1."""
    return max(streams for scale, streams in _FEWEST if thousandths >= 1000 * scale or scale == 1)


_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
_CENT = Decimal("0.01")
_DIGITS = 16  # of a checksum: it detects errors, not attacks


@dataclass(frozen=True)
class Answer:
    """A query's answer, reduced to its number of rows and checksum."""

    rows: int
    checksum: str


@dataclass
class Answers:
    """The answers of all arms in one run, which must be equal."""

    run: str = ""
    _first: dict[str, tuple[str, Answer]] = field(default_factory=dict)

    def compare(self, run: str, arm: str, query: str, answer: Answer) -> None:
        """Record an arm's answer. Raises: MeasurementError if another arm's answer in this run differs."""
        if run != self.run:
            self.run, self._first = run, {}
        other, known = self._first.setdefault(query, (arm, answer))
        if known != answer:
            raise MeasurementError(
                f"{query} has different answers on the servers of {other} and {arm}",
                detail=f"{known.rows} and {answer.rows} rows, checksums {known.checksum} and "
                f"{answer.checksum}, in {run}",
                hint="one of these servers is wrong: trust neither its data nor its figures",
            )


def answer_of(rows: Sequence[Sequence[object]]) -> Answer:
    """Return the answer with these rows."""
    lines = sorted("|".join(map(normalised, row)) for row in rows)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return Answer(len(rows), digest[:_DIGITS])


def normalised(value: object) -> str:
    """Return a value in comparable form: numbers with two decimals, texts without surrounding blanks."""
    text = "" if value is None else str(value).strip()
    if not _NUMBER.fullmatch(text):
        return text
    return str(Decimal(text).quantize(_CENT, ROUND_HALF_UP) + 0)  # + 0 removes the sign of zero


def known_answers(thousandths: int) -> Mapping[int, Answer]:
    """Return the known answers at a scale in thousandths, by query; empty for other scales."""
    return _all_known().get(thousandths, {})


@lru_cache(maxsize=1)
def _all_known() -> Mapping[int, Mapping[int, Answer]]:
    document = tomllib.loads((files(__package__) / "answers.toml").read_text())
    return {
        int(scale): {int(name[1:]): Answer(**answer) for name, answer in answers.items()}
        for scale, answers in document["thousandths"].items()
    }
