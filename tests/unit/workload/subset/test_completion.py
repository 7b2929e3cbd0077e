"""The order in which foreign keys are completed, and when that ends."""

from __future__ import annotations

from pgdyno.postgres.catalogued_tables import KeyColumn, Link, Relation
from pgdyno.workload.subset.completion import OpenLinks


def link(source: int, target: int) -> Link:
    return Link(
        name=f"{source}-{target}",
        table=source,
        source=Relation("public", f"t{source}"),
        columns=(KeyColumn("other", "bigint"),),
        target_table=target,
        target=Relation("public", f"t{target}"),
        key=(KeyColumn("id", "bigint"),),
        operators=("OPERATOR(pg_catalog.=)",),
    )


def completed(links: list[Link], missing: dict[str, int], whole: tuple[int, ...] = ()) -> list[str]:
    """Complete them, where each adds rows as many times as said; return their names in order."""
    open_links, order = OpenLinks(links, whole), []
    while (one := open_links.take()) is not None:
        order.append(one.name)
        if missing.get(one.name, 0) > 0:
            missing[one.name] -= 1
            open_links.gained(one.target_table)
    return order


def test_without_circles_each_key_comes_once_whatever_it_adds() -> None:
    links = [link(1, 0), link(2, 1), link(3, 2), link(3, 0), link(4, 1)]
    order = completed(links, {one.name: 1 for one in links})
    assert sorted(order) == ["1-0", "2-1", "3-0", "3-2", "4-1"]
    assert order.index("3-2") < order.index("2-1") < order.index("1-0")


def test_a_table_that_refers_to_itself_comes_until_nothing_is_added() -> None:
    assert completed([link(1, 1)], {"1-1": 3}) == ["1-1"] * 4


def test_a_circle_goes_round_until_nothing_is_added_and_then_what_it_leads_to() -> None:
    missing = {"1-2": 2, "2-3": 2, "3-1": 2}
    order = completed([link(3, 0), link(1, 2), link(2, 3), link(3, 1)], missing)
    assert set(missing.values()) == {0}
    rows_of_3_came = max(place for place, name in enumerate(order) if name == "2-3")
    assert {"3-0", "3-1"} == set(order[rows_of_3_came + 1 :])


def test_whole_tables_need_no_completion() -> None:
    assert completed([link(1, 0), link(2, 1)], {}, whole=(0,)) == ["2-1"]


def test_chains_of_a_thousand_tables_end() -> None:
    links = [link(n, n - 1) for n in range(1, 1000)]
    assert completed(links, {one.name: 1 for one in links}) == [one.name for one in links[::-1]]
