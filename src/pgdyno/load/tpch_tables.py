"""The tables of TPC-H: how they are made and filled, and their rows at a scale in thousandths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from pgdyno.model.experiments.workload import TPCHGEN, DataSet

_SQL = files(__package__) / "tpch"
_LINES_PER_ORDER = 4  # on average; how many lines there are, chance decides
_ROWS_PER_THOUSANDTH = {"supplier": 10, "customer": 150, "part": 200, "partsupp": 800, "orders": 1500}
_ROWS = {"region": 5, "nation": 25}
BYTES_PER_THOUSANDTH = 1_800_000  # measured at scale 1, indexes included


@dataclass(frozen=True)
class Filling:
    """The data to load.

    ``tables`` creates the tables, ``keys`` follows after the rows; both are SQL.

    ``rows`` are by table, roughly; ``exact`` those whose number is fixed.
    """

    thousandths: int  # the scale
    tables: str
    keys: str
    rows: Mapping[str, int]
    exact: Mapping[str, int]


def data_set(thousandths: int) -> DataSet:
    """Return the data at a scale in thousandths: 1000 is scale 1, about 1 GB of text."""
    return DataSet("tpch", thousandths, BYTES_PER_THOUSANDTH, maker=TPCHGEN)


def filling(data_set: DataSet) -> Filling:
    """Return the data that tpchgen loads."""
    thousandths = data_set.scale
    return Filling(
        thousandths,
        (_SQL / "tables.sql").read_text(),
        (_SQL / "keys.sql").read_text(),
        usual_rows(thousandths),
        exact_rows(thousandths),
    )


def exact_rows(thousandths: int) -> dict[str, int]:
    """Return the rows of every table whose number the specification fixes."""
    return {**_ROWS, **{name: rows * thousandths for name, rows in _ROWS_PER_THOUSANDTH.items()}}


def usual_rows(thousandths: int) -> dict[str, int]:
    """Return about how many rows every table has, in the order in which they may refer to each other."""
    exact = exact_rows(thousandths)
    return {**exact, "lineitem": _LINES_PER_ORDER * exact["orders"]}
