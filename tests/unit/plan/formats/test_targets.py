"""The data files on managed targets: every statement has its source, and all are read."""

from __future__ import annotations

from datetime import date
from importlib.resources import files

import pytest

from pgdyno.plan.formats._targets import Statement, Target, target

NAMES = sorted(
    file.name.removesuffix(".toml")
    for file in files("pgdyno.plan.formats").joinpath("capabilities").iterdir()
)


def statements_of(one: Target) -> list[Statement]:
    return [*one.statements, *([one.others] if one.others else [])]


def test_every_managed_target_has_a_file() -> None:
    assert NAMES == ["aurora", "azure", "cloudsql", "cnpg", "crunchy", "patroni", "rds", "zalando"]


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_says_where_and_when_it_was_read(name: str) -> None:
    for statement in statements_of(target(name)):
        assert statement.source.startswith("https://")
        assert date(2026, 1, 1) <= statement.read <= date.today()  # noqa: DTZ011 — a day, wherever


@pytest.mark.parametrize("name", NAMES)
def test_whatever_cannot_be_changed_has_a_reason(name: str) -> None:
    refused = [one for one in statements_of(target(name)) if not one.can_change]
    assert all(one.why for one in refused)
    assert target(name).machine


@pytest.mark.parametrize("name", NAMES)
def test_no_setting_is_spoken_of_twice(name: str) -> None:
    spoken = [setting for one in target(name).statements for setting in one.settings]
    assert len(spoken) == len(set(spoken))


@pytest.mark.parametrize("name", NAMES)
def test_durability_is_nowhere_said_to_be_open(name: str) -> None:
    locked = {"fsync", "full_page_writes", "synchronous_commit"}
    opened = {setting for one in target(name).statements if one.can_change for setting in one.settings}
    assert not locked & opened


def test_a_star_stands_for_the_rest_of_a_name() -> None:
    statement = Statement(can_change=False, source="", read=date(2026, 1, 1), settings=("ssl", "ssl_*"))
    assert [statement.speaks_of(name) for name in ("ssl", "ssl_key_file", "sslmode")] == [True, True, False]


def test_the_first_statement_that_names_a_setting_holds_before_what_is_said_of_others() -> None:
    named = Statement(can_change=False, source="", read=date(2026, 1, 1), settings=("port",), why="fixed")
    others = Statement(can_change=True, source="", read=date(2026, 1, 1))
    where = Target("somewhere", "out of reach", (named,), others)
    assert where.statement_on("port") is named
    assert where.statement_on("work_mem") is others
    assert Target("somewhere", "out of reach", (named,), None).statement_on("work_mem") is None
