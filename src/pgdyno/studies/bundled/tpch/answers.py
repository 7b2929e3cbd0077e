"""Query answers: their comparison, and the known answers of the validation run.

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
