"""Rows of pg_settings: PostgreSQL's own pass, and what cannot be one of them is refused in words."""

from __future__ import annotations

import pytest
from tests.fix_settings import MAJORS, rows_of

from pgdyno.base.errors import ServerError
from pgdyno.postgres.guc import guc_of

COLUMNS = (
    "name", "setting", "unit", "vartype", "context", "source", "boot_val", "reset_val", "min_val", "max_val",
    "enumvals", "sourcefile", "sourceline", "pending_restart",
)  # fmt: skip
WORK_MEM = {
    "name": "work_mem", "setting": "4096", "unit": "kB", "vartype": "integer", "context": "user",
    "source": "default", "boot_val": "4096", "reset_val": "4096", "min_val": "64", "max_val": "2147483647",
    "enumvals": None, "sourcefile": None, "sourceline": None, "pending_restart": False,
}  # fmt: skip


def row(**other: object) -> tuple[object, ...]:
    return tuple({**WORK_MEM, **other}[column] for column in COLUMNS)


@pytest.mark.parametrize("major", MAJORS)
def test_all_settings_of_every_version_are_taken(major: int) -> None:
    dumped = rows_of(major)
    assert len(dumped) > 300
    assert [guc_of(tuple(one.get(column) for column in COLUMNS)).name for one in dumped] == [
        one["name"] for one in dumped
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"name": None}, {"name": ""}, {"name": 7}, {"name": "work_mem\n"}, {"name": "a\x1b[2J"},
        {"name": "w" * 201},
        {"setting": None}, {"setting": 4096}, {"setting": "4e3"}, {"setting": "9" * 400}, {"setting": "NaN"},
        {"setting": "\u0664"}, {"min_val": "Infinity"}, {"boot_val": "x"},
        {"unit": "kB; id"}, {"unit": "furlong"}, {"vartype": "money"}, {"vartype": None}, {"context": "root"},
        {"source": None}, {"enumvals": "a,b"}, {"enumvals": [None]}, {"sourceline": "1"},
        {"pending_restart": None},
        {"vartype": "real", "setting": "1e400"}, {"vartype": "bool", "setting": "t"},
        {"name": "block_size", "setting": "0"}, {"name": "wal_segment_size", "setting": "-16"},
    ],
)  # fmt: skip
def test_a_row_that_is_none_of_postgresqls_is_refused(other: dict[str, object]) -> None:
    with pytest.raises(ServerError) as caught:
        guc_of(row(**other))
    assert caught.value.message.startswith("the server reports an invalid value for ")
    assert caught.value.message.isprintable()
    assert caught.value.detail == "PostgreSQL reports its settings in a different form"


@pytest.mark.parametrize("length", [0, 1, 13, 15])
def test_a_row_with_other_columns_is_refused(length: int) -> None:
    with pytest.raises(ServerError, match=r"^the server reports an invalid value for "):
        guc_of((*row(), "more")[:length])


def test_an_extension_shows_its_numbers_as_it_likes() -> None:
    assert guc_of(row(name="timescaledb.max_memory", setting="2 GB", unit=None)).setting == "2 GB"
    assert guc_of(row(vartype="string", setting=None)).setting == ""


def test_the_largest_number_of_postgresql_is_taken() -> None:
    assert guc_of(row(vartype="real", max_val="1.79769e+308")).max_val == "1.79769e+308"
