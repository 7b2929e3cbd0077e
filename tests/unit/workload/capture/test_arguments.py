"""Arguments of functions that do not take every value of their type."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.captured import Between, ColumnValue, Constant, Parameter
from pgdyno.postgres.catalogued_tables import Column, Policy
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.arguments import NOTHING_NAMED, NamedObjects, with_policies
from pgdyno.workload.capture.parameters import Parameters, parameters_of

COLUMNS = (
    Column("public", "orders", "id", "bigint", is_key=True, is_visible=True),
    Column("public", "orders", "placed", "date", is_key=False, is_visible=True),
    Column("public", "orders", "opens", "time without time zone", is_key=False, is_visible=True),
    Column("public", "orders", "tenant", "integer", is_key=False, is_visible=True),
    Column("app", "Docs", "Owner", "text", is_key=False, is_visible=False),
)
OF_ORDERS = {"public.orders_id_seq": "public.orders.id", "public.other": None}
TENANT = NamedObjects(settings={"app.tenant": "public.orders.tenant"}, secured=("public.orders",))


def found(sql: str, named: NamedObjects = NOTHING_NAMED) -> Parameters:
    """Ten calls of 3 ms; all types are text."""
    return parameters_of(sql, ("text",) * 5, COLUMNS, Seen(10, 30.0, 10, 0, 0), named=named)


@pytest.mark.parametrize(
    ("sql", "drawn", "note"),
    [
        ("SELECT pg_catalog.extract($1 , placed) FROM orders", "day", "field $1 is unknown: day is used"),
        ("SELECT date_part($1, opens) FROM orders", "epoch", "field $1 is unknown: epoch is used"),
        ("SELECT date_part($1, now())", "epoch", "field $1 is unknown: epoch is used"),
        ("SELECT date_trunc($1, placed) FROM orders", "day", "field $1 is unknown: day is used"),
        ("SELECT pg_catalog.date_trunc($1, now())", "day", "field $1 is unknown: day is used"),
        ("SELECT now() AT TIME ZONE $1", "UTC", "time zone $1 is unknown: UTC is used"),
        ("SELECT timezone($1, now())", "UTC", "time zone $1 is unknown: UTC is used"),
        ("SELECT encode(a, $1) FROM t", "escape", "format $1 is unknown: escape is used"),
    ],
)
def test_an_argument_that_is_always_valid_takes_the_place_of_an_unknown_one(
    sql: str, drawn: str, note: str
) -> None:
    its = found(sql)
    assert (its.drawn, its.arguments, its.guessed) == ((Constant(drawn),), {1: note}, ())


@pytest.mark.parametrize(
    ("sql", "drawn"),
    [
        ("SELECT pg_sleep($1)", Constant("0.003000")),
        ("SELECT pg_advisory_xact_lock($1)", Between(1, 1_000_000_000)),
    ],
)
def test_arguments_that_need_no_note(sql: str, drawn: Parameter) -> None:
    assert (found(sql).drawn, found(sql).arguments) == ((drawn,), {})


def test_the_sequence_of_an_insert_is_that_of_its_table() -> None:
    its = found("INSERT INTO orders (id) VALUES (nextval($1::regclass))", NamedObjects(OF_ORDERS))
    assert its.drawn == (Constant("public.orders_id_seq"),)
    assert its.arguments == {
        1: "sequence $1 is assumed to be public.orders_id_seq, the only one of the table"
    }


def test_the_only_sequence_of_a_database_is_taken_and_one_of_several_is_not_known() -> None:
    only = found("SELECT nextval($1)", NamedObjects({"public.other": None}))
    assert only.drawn == (Constant("public.other"),)
    assert only.arguments == {1: "sequence $1 is assumed to be public.other, the only one of the database"}
    several = found("SELECT nextval($1)", NamedObjects(OF_ORDERS))
    assert (several.unknown, several.arguments) == (
        (1,),
        {1: "the sequence $1 is unknown: it may be any of 2"},
    )


def test_a_setting_is_known_if_policies_read_only_one() -> None:
    its = found("SELECT set_config($1, $2, $3)", TENANT)
    assert its.drawn == (Constant("app.tenant"), ColumnValue("public.orders.tenant"), Constant("false"))
    assert its.arguments == {
        1: "setting $1 is assumed to be app.tenant, the only one that policies read",
        2: "setting values $2 are those of public.orders.tenant, as in policies",
        3: "is_local $3 is unknown: false is used",
    }


@pytest.mark.parametrize(
    ("sql", "named", "why"),
    [
        (
            "SELECT set_config($1, $2, $3)", NOTHING_NAMED,
            "the name of the setting $1 that set_config sets is unknown",
        ),
        (
            "SELECT set_config($1, $2, $3), set_config($4, $5, $3)", TENANT,
            "the name of the setting $1 that set_config sets is unknown",
        ),
        ("SELECT current_setting($1)", NOTHING_NAMED,
         "the name of the setting $1 that current_setting reads is unknown"),
        ("SELECT set_config('work_mem', $1, $2)", TENANT, "the values $1 of the setting are unknown"),
    ],
)  # fmt: skip
def test_an_unknown_setting_has_a_reason(sql: str, named: NamedObjects, why: str) -> None:
    its = found(sql, named)
    assert its.arguments[its.unknown[0]] == why


def test_a_setting_with_a_name_has_the_values_that_policies_compare() -> None:
    assert found("SELECT set_config('app.tenant', $1, true)", TENANT).drawn == (
        ColumnValue("public.orders.tenant"),
    )


def test_settings_of_policies_come_with_the_columns_that_are_compared() -> None:
    policies = [
        Policy("public", "orders", "(tenant = (current_setting('app.tenant'::text))::integer)"),
        Policy("app", "Docs", "(lower(\"Owner\") = NULLIF(current_setting('app.\"User\"'::text, true), ''))"),
        Policy("app", "Docs", "(\"Owner\" = current_setting('app.role'::text))"),
        Policy("app", "Docs", "(CURRENT_USER = 'a'::name)"),
        Policy("app", "Notes", ""),  # it was not read, because a table was locked
    ]
    named = with_policies(NamedObjects(OF_ORDERS), policies, COLUMNS)
    assert named == NamedObjects(
        OF_ORDERS,
        {"app.tenant": "public.orders.tenant", 'app."User"': None, "app.role": "app.Docs.Owner"},
        ("public.orders", "app.Docs"),
        ("app.Notes",),
    )
