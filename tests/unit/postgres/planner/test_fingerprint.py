"""Plans are equal if they work alike, whatever they are called and cost."""

from __future__ import annotations

from typing import Any

from pgdyno.postgres.planner.fingerprint import fingerprint, indexes_of


def index_scan(name: str, **more: Any) -> dict[str, Any]:
    """Return a node as EXPLAIN (FORMAT JSON, VERBOSE) of PostgreSQL 18 gives it."""
    return {
        "Node Type": "Index Scan",
        "Parallel Aware": False,
        "Scan Direction": "Backward",
        "Index Name": name,
        "Relation Name": "orders",
        "Schema": "public",
        "Alias": "orders",
        "Total Cost": 8.4,
        "Plan Rows": 3,
        "Index Cond": "(orders.customer_id = $1)",
        **more,
    }


BY_CUSTOMER = "public.orders USING btree (customer_id)"
DEFINITIONS = {
    ("public", "a"): BY_CUSTOMER,
    ("public", "b"): BY_CUSTOMER,
    ("old", "a"): "old.orders USING hash (x)",
}


def test_an_index_counts_by_its_definition() -> None:
    one, other = (fingerprint(index_scan(name), DEFINITIONS) for name in "ab")
    assert one == other
    assert one == (
        (
            "Index Scan on orders (by public.orders USING btree (customer_id); scan direction Backward; "
            "index cond (orders.customer_id = ?))"
        ),
    )
    assert fingerprint(index_scan("unknown"), DEFINITIONS) != one
    assert indexes_of({"Node Type": "Limit", "Plans": [index_scan("a"), index_scan("b")]}) == {
        ("public", "a"),
        ("public", "b"),
    }


def test_indexes_of_equal_name_in_two_schemas_are_two() -> None:
    def bitmap(schema: str) -> dict[str, Any]:
        of_index = {"Node Type": "Bitmap Index Scan", "Index Name": "a"}  # without a schema of its own
        both = {"Node Type": "BitmapOr", "Plans": [of_index, of_index]}
        return {"Node Type": "Bitmap Heap Scan", "Relation Name": "orders", "Schema": schema, "Plans": [both]}

    assert indexes_of(bitmap("old")) == {("old", "a")}
    lines = {schema: fingerprint(bitmap(schema), DEFINITIONS)[2].strip() for schema in ("old", "public")}
    assert lines == {
        "old": "Bitmap Index Scan (by old.orders USING hash (x))",
        "public": f"Bitmap Index Scan (by {BY_CUSTOMER})",
    }


def test_functions_count() -> None:
    scan = {"Node Type": "Function Scan", "Schema": "public", "Function Name": "f", "Alias": "f"}
    assert fingerprint(scan, {}) == ("Function Scan (function name f)",)


def test_constants_and_parameters_are_alike() -> None:
    conditions = [
        "(orders.customer_id = $1)",
        "(orders.customer_id = 42)",
        "(orders.customer_id = '42'::bigint)",
        "(orders.customer_id = $7::bigint)",
        "(orders.customer_id = -1.5e3)",
    ]
    found = {fingerprint(index_scan("a", **{"Index Cond": one}), DEFINITIONS) for one in conditions}
    assert len(found) == 1


def test_names_with_digits_and_quoted_texts_stay() -> None:
    def scan(condition: str) -> str:
        return fingerprint({"Node Type": "Seq Scan", "Relation Name": "t1", "Filter": condition}, {})[0]

    assert scan("(t1.c2 = 'it''s 5'::text)") == "Seq Scan on t1 (filter (t1.c2 = ?))"
    assert scan('(t1."a 1" = 5)') == 'Seq Scan on t1 (filter (t1."a 1" = ?))'
    assert scan("""((t1."it's" = 'Miller'::text) AND (t1."a""b" = '078'::text))""") == (
        """Seq Scan on t1 (filter ((t1."it's" = ?) AND (t1."a""b" = ?)))"""
    )
    assert scan("(t1.at < '2024-01-01'::timestamp with time zone)") == "Seq Scan on t1 (filter (t1.at < ?))"
    assert scan("(t1.x = ANY ('{1,2}'::integer[]))") == "Seq Scan on t1 (filter (t1.x = ANY (?)))"


def test_numbers_of_aliases_do_not_count() -> None:
    one, other = (
        fingerprint(
            index_scan("a", **{"Alias": alias, "Index Cond": f"({alias}.customer_id = $1)"}), DEFINITIONS
        )
        for alias in ("orders", "orders_1")
    )
    assert one == other


def partition(name: str, kind: str = "Seq Scan", alias: str = "") -> dict[str, Any]:
    alias = alias or name
    return {"Node Type": kind, "Relation Name": name, "Alias": alias, "Filter": f"({alias}.id > 5)"}


def test_partitions_with_equal_plans_are_one() -> None:
    def append(*parts: dict[str, Any]) -> tuple[str, ...]:
        return fingerprint({"Node Type": "Append", "Plans": [*parts]}, {})

    year, next_year = partition("sales_2024", alias="sales_1"), partition("sales_2025", alias="sales_2")
    expected = ("Append", "  Seq Scan on sales_2024 (filter (sales_2024.id > ?))")
    assert append(year, next_year) == append(year) == expected
    assert len(append(year, partition("sales_2025", "Bitmap Heap Scan"))) == 3


def test_joins_sorts_and_depth_count() -> None:
    join = {
        "Node Type": "Hash Join",
        "Join Type": "Left",
        "Hash Cond": "(a.id = b.id)",
        "Plans": [partition("a"), {"Node Type": "Hash", "Parallel Aware": True, "Plans": [partition("b")]}],
    }
    assert fingerprint({"Node Type": "Sort", "Sort Key": ["a.id DESC", "b.x"], "Plans": [join]}, {}) == (
        "Sort (sort key a.id DESC, b.x)",
        "  Hash Join (Left; hash cond (a.id = b.id))",
        "    Seq Scan on a (filter (a.id > ?))",
        "    Parallel Hash",
        "      Seq Scan on b (filter (b.id > ?))",
    )
