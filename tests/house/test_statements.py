"""Statements that pgdyno sends: those with text of others stand in docs/security.md, with their role."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.source import ROOT, Module, modules

_SENDING = {"execute": 1, "copy": 1, "mogrify": 1, "send_prepare": 2}
"""Calls by name, and in which of their arguments the statement is."""
_PASSED_ON = {"encode", "strip", "SQL"}
_NOT_SQL = {"store", "cli", "stats", "experiments"}  # SQLite, Click, numpy
_LISTED = re.compile(r"`([\w/]+\.py): (\w+)`")
# Made of pgdyno's own text alone: numbers, names that it has given, and values as parameters.
_OWN = {
    "app/arenas/arm.py: _execute",
    "app/arenas/arm.py: _take_time",
    "app/arenas/datasets.py: _load",
    "app/arenas/loop_library.py: make_functions",
    "app/building/training.py: _do_chores",
    "app/building/verifying/crashes.py: survive_crashes",
    "app/building/verifying/same_answers.py: _ask_in_database",
    "app/building/verifying/same_data.py: _write_and_dump",
    "app/capturing/scratch_copy.py: scratch_server",
    "app/profiling/statements.py: _track",
    "generators/query_session.py: _copy_in",
    "generators/query_session.py: _delete",
    "generators/query_session.py: open",
    "generators/tpchgen.py: _copy",
    "generators/tpchgen.py: _run",
    "journal/session/query.py: run",
    "server/connection/connection.py: connect",
    "server/connection/connection.py: connect_to_change",
    "server/connection/control_connection.py: execute",
    "server/connection/control_connection.py: look",
    "server/connection/network_entrance.py: set_password",
    "server/connection/query.py: ask_rows",
    "server/inspection/table_statistics.py: _statistics",
    "server/process/dump.py: _restore",
    "server/process/workload_databases.py: _drop",
    "server/process/workload_databases.py: _make",
    "server/sampling/counters.py: read_counters",
    "server/sampling/planning_share.py: read_planning_share",
    "server/sampling/prepared_plans.py: _value",
    "server/sampling/prepared_plans.py: deallocated",
    "server/sampling/sessions.py: _look",
    "server/sampling/statement_statistics.py: _info",
    "server/sampling/statement_statistics.py: read",
    "server/sampling/statement_statistics.py: texts",
}


def test_every_statement_with_text_of_others_is_listed_with_its_role() -> None:
    listed = {f"{file}: {name}" for file, name in _LISTED.findall(_section())}
    found = {place for module in modules() if module.package not in _NOT_SQL for place in _assembled(module)}
    assert not found - listed - _OWN, (
        "these send a text that is no constant: name each in docs/security.md, under 'Statements with text "
        "of others', with the role that it runs as; or here, if all of it is pgdyno's: "
        f"{found - listed - _OWN}"
    )
    assert not (listed | _OWN) - found, f"these are not there any more: {(listed | _OWN) - found}"


def _section() -> str:
    text = (ROOT / "docs" / "security.md").read_text()
    return text.split("## Statements with text of others", 1)[1].split("\n## ", 1)[0]


def _assembled(module: Module) -> Iterator[str]:
    """Yield the functions that send a text which is no constant of their module."""
    constants = dict(_assignments(module.tree))
    functions = [node for node in module.nodes if isinstance(node, ast.FunctionDef)]
    for node in module.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        statement = node.args[: _SENDING.get(node.func.attr, 0)]
        of = ast.unparse(node.func.value)
        if of == "generators" or (node.func.attr == "copy" and not of.endswith(("cursor", "cursor()"))):
            continue  # of psycopg, which waits; of a file
        if not all(_is_constant(one, constants) for one in statement):
            within = [one.name for one in functions if one.lineno <= node.lineno <= (one.end_lineno or 0)]
            yield f"{module.place}: {within[0]}"


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _is_constant(node: ast.expr, constants: dict[str, ast.expr]) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in constants and _is_constant(constants[name], constants)
        case ast.JoinedStr(values=parts):
            return all(
                _is_constant(one.value if isinstance(one, ast.FormattedValue) else one, constants)
                for one in parts
            )
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return _is_constant(left, constants) and _is_constant(right, constants)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=given) if name in _PASSED_ON:
            parts = given if name == "SQL" else [value, *given]
            return all(_is_constant(one, constants) for one in parts)
    return False
