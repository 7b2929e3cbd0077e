"""The 22 queries: their text (clause 2.4) with values inserted.

Includes the values of the validation run.

A query's file is what psql takes: ``:name`` is a number, ``:'name'`` a quoted string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

NUMBERS = tuple(range(1, 23))

_SQL = files(__package__) / "sql"
_PARAMETER = re.compile(r":'(?P<quoted>\w+)'|:(?P<plain>\w+)")

Parameters = Mapping[str, str]
"""The values of a query by name."""


def query_text(number: int, parameters: Parameters) -> str:
    """Return a query with its values. Raises: KeyError for a value that is missing."""
    return _PARAMETER.sub(lambda found: _literal(found, parameters), template(number))


def template(number: int) -> str:
    """Return a query with the names of its values, without its comment."""
    return "".join(line for line in statements(f"q{number}").splitlines(keepends=True) if line[:2] != "--")


@lru_cache
def statements(name: str) -> str:
    """Return the text of a file: "q1" … "q22", "tables" or "keys"."""
    return (_SQL / f"{name}.sql").read_text()


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
