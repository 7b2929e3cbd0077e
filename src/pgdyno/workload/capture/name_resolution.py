"""Resolution of names in a statement to columns of tables, also by the views that show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.workload.capture.syntax import tree, within_wrapping

_QUERIES = (exp.Select, exp.Update, exp.Delete, exp.Insert, exp.Merge)
_OF_VALUES = "_values"  # how sqlglot names the rows of WITH v AS (VALUES …)
_TEXTS = frozenset({"text", "character varying"})
_INTEGERS = frozenset({"smallint", "integer", "bigint"})


def column_of(node: exp.Expression, columns: Sequence[Column]) -> Column | None:
    """Return the table's column that a node names; None if it names another expression."""
    named = named_column(node, columns)
    return None if named is None else table_column(named, columns)


def named_column(node: exp.Expression, columns: Sequence[Column]) -> Column | None:
    """Return the column of a table or view that a node names, from the innermost query outwards."""
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


def table_column(column: Column, columns: Sequence[Column]) -> Column | None:
    """Return the table's column that a view's column shows, or the column itself if it is a table's.

    None: the view computes it. A table's key is a key of a view of this table alone: a join repeats keys.
    """
    if column.view is None:
        return column
    query = tree(column.view)
    if not isinstance(query, exp.Select):
        return None
    shown = next((one.unalias() for one in query.expressions if one.alias_or_name == column.name), None)
    if shown is None:
        return None
    others = [one for one in columns if (one.schema, one.table) != (column.schema, column.table)]
    found = column_of(within_wrapping(shown), others)
    if found is None or not _has_same_texts(found.type, column.type):
        return None
    return replace(found, is_key=found.is_key and len(list(query.find_all(exp.Table))) == 1)


def why_unknown(column: Column, columns: Sequence[Column]) -> str:
    """Return why no table's column is known for a view's column."""
    if _is_read(column, columns):
        return f"{column.path} is computed by its view"
    return f"{column.path} is of a view with a locked table"


def _is_read(column: Column, columns: Sequence[Column]) -> bool:
    """Whether the query of a column's view was read, and the queries of views in it."""
    if not column.view:
        return column.view is None
    query = tree(column.view)
    others = [one for one in columns if (one.schema, one.table) != (column.schema, column.table)]
    tables = () if query is None else query.find_all(exp.Table)
    return all(_is_read(one, others) for table in tables for one in columns_of(table, others)[:1])


def _has_same_texts(type_: str, cast_to: str) -> bool:
    """Whether a cast to a type does not change the text of values."""
    is_text = cast_to in _TEXTS and type_ in {*_TEXTS, *_INTEGERS, "uuid"}
    return type_ == cast_to or is_text or {type_, cast_to} <= _INTEGERS


def is_in_several_schemas(sql: str, columns: Sequence[Column]) -> bool:
    """Whether a table that a statement names without a schema is in several schemas."""
    parsed = tree(sql)
    tables = () if parsed is None else parsed.find_all(exp.Table)
    schemas = Counter(table for _, table in {(one.schema, one.table) for one in columns})
    return any(not one.db and schemas[one.name] > 1 for one in tables)


def columns_of(table: exp.Expression, columns: Sequence[Column]) -> list[Column]:
    """Return all columns of the table or view that a node names, in their order."""
    if not isinstance(table, exp.Table):
        return []
    return [one for one in columns if one.table == table.name and _is_meant(table, one)]


def inserted_column(node: exp.Expression, columns: Sequence[Column]) -> Column | None:
    """Return the column of a new row that a value is for: in VALUES, the query of an INSERT, or a MERGE."""
    row = node.parent
    if isinstance(row, exp.Alias):
        node, row = row, row.parent
    if not isinstance(row, exp.Tuple | exp.Select) or node.arg_key != "expressions":
        return None
    insert = row.parent.parent if isinstance(row.parent, exp.Values) else row.parent
    if not isinstance(insert, exp.Insert) or row.arg_key not in {"expression", "expressions"}:
        return None
    into, merge = insert.this, insert.find_ancestor(exp.Merge)
    table = into.this if isinstance(into, exp.Schema) else into
    if isinstance(insert.parent, exp.When) and merge is not None:
        table = merge.this
    known, position = columns_of(table, columns), node.index or 0
    if not isinstance(into, exp.Schema | exp.Tuple):
        return known[position] if position < len(known) else None
    names = [one.name for one in into.expressions]
    return next((one for one in known if names[position : position + 1] == [one.name]), None)


def uses_of(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yield where a query uses a value that a row in its FROM, WITH or USING gives a name: ``n.id``."""
    shown = node.parent if isinstance(node.parent, exp.Alias) else node
    row = shown.parent
    place = row.parent if row is not None else None
    if isinstance(place, exp.Values) and place.alias == _OF_VALUES:
        place = place.find_ancestor(exp.CTE)
    if not isinstance(place, exp.Subquery | exp.Values | exp.CTE) or shown.arg_key != "expressions":
        return
    alias, query = place.args.get("alias"), place.find_ancestor(*_QUERIES)
    if alias is None or query is None or not isinstance(within_wrapping(node), exp.Placeholder):
        return
    names = [one.name for one in alias.columns][shown.index or 0 :] or [shown.alias]
    for column in query.find_all(exp.Column, bfs=False):
        if column.table == alias.name and column.name == names[0]:
            yield column


def _tables(query: exp.Expression) -> Iterator[exp.Table]:
    """Yield the tables that a query itself reads or writes, without those of its subqueries."""
    parts = [query.args.get("this"), query.args.get("from_"), *(query.args.get("joins") or ())]
    for part in [*parts, query.args.get("using")]:
        for one in part if isinstance(part, list) else [part]:
            yield from _joined(one.this if isinstance(one, exp.From | exp.Join | exp.Schema) else one)


def _joined(part: object) -> Iterator[exp.Table]:
    """Yield the tables of a part of FROM, also joined ones in parentheses, as in the queries of views."""
    if isinstance(part, exp.Table):
        yield part
    elif isinstance(part, exp.Subquery) and not part.alias:
        yield from _joined(part.this)
    else:
        return
    for join in part.args.get("joins") or ():
        yield from _joined(join.this)


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
