"""The tables of TPC-H: their SQL, and their numbers of rows at a scale in thousandths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from pgdyno.model.experiments.workload import TPCHGEN, DataSet

_SQL = files(__package__) / "tpch"
_LINES_PER_ORDER = 4  # on average; the number of lines is random
_ROWS_PER_THOUSANDTH = {"supplier": 10, "customer": 150, "part": 200, "partsupp": 800, "orders": 1500}
_ROWS = {"region": 5, "nation": 25}
BYTES_PER_THOUSANDTH = 1_800_000  # measured at scale 1, including indexes


@dataclass(frozen=True)
class Filling:
    """The data to load.

    ``tables`` creates the tables, and ``keys`` is run after loading the rows; both are SQL.

    ``rows`` are the approximate numbers by table; ``exact`` are the fixed ones.
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
    """Return the numbers of rows that the specification fixes, by table."""
    return {**_ROWS, **{name: rows * thousandths for name, rows in _ROWS_PER_THOUSANDTH.items()}}


def usual_rows(thousandths: int) -> dict[str, int]:
    """Return the approximate numbers of rows by table, with referenced tables before referencing ones."""
    exact = exact_rows(thousandths)
    return {**exact, "lineitem": _LINES_PER_ORDER * exact["orders"]}
