"""Resolution of names in a statement to columns of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from pgdyno.postgres.catalogued_tables import Column

_QUERIES = (exp.Select, exp.Update, exp.Delete, exp.Insert)


def column_of(node: exp.Expression, columns: Sequence[Column]) -> Column | None:
    """Return the column that a node names, from the innermost query outwards; None if it is not a table's."""
    if not isinstance(node, exp.Column):
        return None
    query = node.find_ancestor(*_QUERIES)
    while query is not None:
        for table in _tables(query):
            if node.table in {"", table.alias_or_name} and not _is_named_query(table):
                found = _find(table, node.name, columns)
                if found is not None:
                    return found
        query = query.find_ancestor(*_QUERIES)
    return None


def columns_of(table: exp.Expression, columns: Sequence[Column]) -> list[Column]:
    """Return all columns of the table that a node names, in their order."""
    if not isinstance(table, exp.Table):
        return []
    return [one for one in columns if one.table == table.name and _is_meant(table, one)]


def _tables(query: exp.Expression) -> Iterator[exp.Table]:
    """Yield the tables that a query itself reads or writes, without those of its subqueries."""
    parts = [query.args.get("this"), query.args.get("from_"), *(query.args.get("joins") or ())]
    for part in [*parts, query.args.get("using")]:
        for one in part if isinstance(part, list) else [part]:
            inner = one.this if isinstance(one, exp.From | exp.Join | exp.Schema) else one
            if isinstance(inner, exp.Table):
                yield inner
                yield from (
                    join.this for join in inner.args.get("joins") or () if isinstance(join.this, exp.Table)
                )


def _is_named_query(table: exp.Table) -> bool:
    """Whether a name refers to a WITH query rather than a table."""
    if table.db:
        return False
    place: exp.Expression | None = table
    while place is not None:
        named = place.args.get("with_")
        if named is not None and table.name in {one.alias for one in named.expressions}:
            return True
        place = place.parent  # type: ignore[assignment]
    return False


def _find(table: exp.Table, name: str, columns: Sequence[Column]) -> Column | None:
    return next((one for one in columns_of(table, columns) if one.name == name), None)


def _is_meant(table: exp.Table, column: Column) -> bool:
    return column.schema == table.db if table.db else column.is_visible
