"""Which foreign key each table of a graph follows, and which rows it gives by that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pgdyno.postgres.catalogued_tables import (
    AllRows,
    ByHash,
    ByLinkHash,
    KeyColumn,
    Link,
    LinkedTable,
    OfChosen,
    Relation,
    Unlinked,
)
from pgdyno.workload.subset.plan import TableSample, plan_sample

NAMES = ("customers", "products", "orders", "lines", "stores", "people", "events")
OIDS = {name: 100 + place for place, name in enumerate(NAMES)}


def table(
    name: str, rows: float | None = 1e6, key: Sequence[str] = ("id",), size: int = 1 << 30
) -> LinkedTable:
    return LinkedTable(OIDS[name], Relation("public", name), rows, size, ("id", "x"), tuple(key))


def link(source: str, target: str, types: tuple[str, str] = ("bigint", "bigint"), /, **others: bool) -> Link:
    """Make a foreign key SOURCE.TARGET_id to TARGET.id."""
    return Link(
        name=f"{source}_{target}",
        table=OIDS[source],
        source=Relation("public", source),
        columns=(KeyColumn(f"{target}_id", types[0]),),
        target_table=OIDS[target],
        target=Relation("public", target),
        key=(KeyColumn("id", types[1]),),
        operators=("OPERATOR(pg_catalog.=)",),
        **others,
    )


def planned(
    tables: Sequence[LinkedTable], links: Sequence[Link], start: str | None = None
) -> dict[str, TableSample]:
    found = plan_sample(tables, links, OIDS[start] if start else None)
    return {one.table.relation.name: one for one in found}


def followed(plan: dict[str, TableSample]) -> dict[str, str]:
    return {name: one.follows.target.name for name, one in plan.items() if one.follows}


def test_a_table_that_refers_to_nothing_is_sampled_by_a_hash_of_its_key() -> None:
    plan = planned([table("customers"), table("events", key=())], [])
    assert plan["customers"].choices == (ByHash(("id",)),)
    assert plan["events"].choices == (ByHash(()),)


def test_rows_come_with_those_they_refer_to_along_a_chain() -> None:
    to_customers, to_orders = link("orders", "customers"), link("lines", "orders")
    plan = planned([table("lines"), table("orders"), table("customers")], [to_orders, to_customers])
    assert list(plan) == ["customers", "orders", "lines"]
    # The customer's key in an order has the hash that chose the customer: no customer need be looked up.
    assert plan["orders"].choices == (ByLinkHash(to_customers),)
    assert plan["lines"].choices == (OfChosen(to_orders, (ByLinkHash(to_customers),)),)


def test_the_hash_of_a_key_is_taken_only_where_equal_values_have_equal_texts() -> None:
    for types, is_hashed in (
        (("integer", "bigint"), True),
        (("uuid", "uuid"), True),
        (("text", "text"), False),  # a collation may make unequal texts equal
        (("bigint", "numeric"), False),  # 5 and 5.00
    ):
        one = link("orders", "customers", types)
        [choice] = planned([table("orders"), table("customers")], [one])["orders"].choices
        assert choice == (ByLinkHash(one) if is_hashed else OfChosen(one, (ByHash(("id",)),))), types


def test_rows_are_looked_up_if_the_foreign_key_refers_to_another_key_than_the_hashed_one() -> None:
    one = link("orders", "customers")
    plan = planned([table("orders"), table("customers", key=("number",))], [one])
    assert plan["orders"].choices == (OfChosen(one, (ByHash(("number",)),)),)


def test_of_a_key_of_several_columns_the_foreign_keys_columns_are_hashed_in_the_keys_order() -> None:
    columns = KeyColumn("of_shop", "bigint"), KeyColumn("of_number", "integer")
    one = Link(
        name="lines_orders", table=OIDS["lines"], source=Relation("public", "lines"), columns=columns,
        target_table=OIDS["orders"], target=Relation("public", "orders"),
        key=(KeyColumn("shop", "bigint"), KeyColumn("number", "integer")), operators=("=a", "=b"),
    )  # fmt: skip
    [choice] = planned([table("lines"), table("orders", key=("number", "shop"))], [one])["lines"].choices
    assert isinstance(choice, ByLinkHash)
    assert [part.name for part in choice.link.columns] == ["of_number", "of_shop"]
    assert [part.name for part in choice.link.key] == ["number", "shop"]
    assert choice.link.operators == ("=b", "=a")


def test_rows_without_a_reference_are_sampled_by_themselves() -> None:
    one = link("orders", "customers", is_required=False)
    plan = planned([table("orders"), table("customers")], [one])
    assert plan["orders"].choices == (ByLinkHash(one), Unlinked(one, ByHash(("id",))))


@pytest.mark.parametrize(
    ("to_customers", "to_products", "expected"),
    [
        ({}, {}, "customers"),  # the larger one: fewer lines each
        ({"is_required": False}, {}, "products"),
        ({}, {"is_cascading": True}, "products"),
        ({"is_required": False}, {"is_required": False, "is_cascading": True}, "products"),
    ],
)
def test_of_several_the_one_is_followed_that_a_row_is_a_part_of(
    to_customers: dict[str, bool], to_products: dict[str, bool], expected: str
) -> None:
    links = [link("lines", "customers", **to_customers), link("lines", "products", **to_products)]
    plan = planned([table("lines"), table("customers", 2e6), table("products", 1e6)], links)
    assert followed(plan) == {"lines": expected}


def test_a_reference_in_the_primary_key_is_one_to_what_a_row_is_a_part_of() -> None:
    tables = [table("lines", key=("products_id", "n")), table("customers", 2e6), table("products", 1e6)]
    assert followed(planned(tables, [link("lines", "customers"), link("lines", "products")])) == {
        "lines": "products"
    }


def test_small_tables_are_whole_and_nothing_follows_them() -> None:
    plan = planned([table("stores", 1000), table("orders")], [link("orders", "stores")])
    assert plan["stores"].choices == (AllRows(),)
    assert plan["orders"].choices == (ByHash(("id",)),)


def test_a_table_that_nobody_has_counted_is_small_by_its_size() -> None:
    plan = planned([table("stores", None, size=1 << 16), table("orders", None)], [])
    assert plan["stores"].is_whole
    assert not plan["orders"].is_whole


def test_tables_with_periods_that_are_referred_to_are_whole() -> None:
    plan = planned([table("customers"), table("orders")], [link("orders", "customers", is_temporal=True)])
    assert plan["customers"].is_whole
    assert plan["orders"].choices == (ByHash(("id",)),)


def test_no_table_follows_itself_or_a_circle() -> None:
    links = [
        link("people", "people"),
        link("people", "orders"), link("orders", "lines"), link("lines", "people"),
    ]  # fmt: skip
    plan = planned([table("people"), table("orders"), table("lines")], links)
    assert len(followed(plan)) == 2
    [first] = plan.keys() - followed(plan).keys()
    assert plan[first].choices == (ByHash(("id",)),)


def test_a_key_that_rows_may_break_is_not_followed() -> None:
    plan = planned([table("orders"), table("customers")], [link("orders", "customers", is_valid=False)])
    assert plan["orders"].choices == (ByHash(("id",)),)


def test_a_key_of_one_partition_alone_is_not_followed() -> None:
    one = link("orders", "customers")
    partition = Link(**{**vars(one), "source": Relation("public", "orders_2024")})
    plan = planned([table("orders"), table("customers")], [partition])
    assert followed(plan) == {}


def test_what_leads_to_the_chosen_table_follows_it_first() -> None:
    tables = [
        table("stores", 50),
        table("customers", 2e6),
        table("orders"),
        table("lines"),
        table("products"),
    ]
    links = [
        link("orders", "customers", is_cascading=True), link("orders", "stores", is_required=False),
        link("lines", "products", is_cascading=True), link("lines", "orders"), link("stores", "customers"),
    ]  # fmt: skip
    assert followed(planned(tables, links)) == {"orders": "customers", "lines": "products"}
    plan = planned(tables, links, "stores")
    assert followed(plan) == {"orders": "stores", "lines": "orders"}
    assert plan["stores"].choices == (ByHash(("id",)),)


def test_chains_of_a_thousand_tables_are_planned() -> None:
    tables = [
        LinkedTable(n, Relation("public", f"t{n}"), 1e6, 1 << 30, ("id",), ("id",)) for n in range(1000)
    ]
    base = link("orders", "customers")
    links = [
        Link(**{**vars(base), "table": n, "source": tables[n].relation,
                "target_table": n - 1, "target": tables[n - 1].relation})
        for n in range(1, 1000)
    ]  # fmt: skip
    plan = plan_sample(tables[::-1], links)
    assert [one.table.oid for one in plan] == list(range(1000))
