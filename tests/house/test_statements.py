"""Statements that pgdyno sends: who runs those with text of others, and that its own need no search path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.house.source import ROOT, Module, modules

_SENDING = {"execute": 1, "copy": 1, "mogrify": 1, "send_prepare": 2}
"""Calls by name, and in which of their arguments the statement is."""
_PASSED_ON = {"encode", "strip", "SQL"}
_NOT_SQL = {"store", "cli", "stats"}  # SQLite, Click, numpy
_LISTED = re.compile(r"`([\w/]+\.py): (\w+)`")
# Made of pgdyno's own text alone: numbers, names that it has given, and values as parameters.
_OWN = {
    "measure/arenas/arm.py: _execute",
    "measure/arenas/arm.py: _execute_unlimited",
    "measure/arenas/datasets.py: _change",
    "measure/arenas/datasets.py: _load",
    "measure/arenas/loop_library.py: make_functions",
    "builds/training.py: _do_chores",
    "builds/verifying/crashes.py: survive_crashes",
    "builds/verifying/verification.py: _ask_in_database",
    "builds/verifying/verification.py: _write_and_dump",
    "postgres/inspection/column_statistics.py: read_column_statistics",
    "measure/statement_counting.py: _track",
    "load/query_session.py: _copy_in",
    "load/query_session.py: _delete",
    "load/query_session.py: open",
    "load/tpchgen.py: _copy",
    "load/tpchgen.py: _run",
    "apply/session/query.py: run",
    "postgres/connection/control_connection.py: execute",
    "postgres/connection/control_connection.py: look",
    "postgres/connection/control_connection.py: server_pid",
    "postgres/connection/control_connection.py: set_for_session",
    "postgres/connection/query.py: ask_rows",
    "postgres/inspection/settings.py: read_settings",
    "postgres/inspection/table_statistics.py: _statistics",
    "postgres/process/dump.py: _restore",
    "postgres/process/workload_databases.py: _drop",
    "postgres/process/workload_databases.py: _make",
    "postgres/sampling/counters.py: read_counters",
    "postgres/sampling/prepared_plans.py: _value",
    "postgres/sampling/prepared_plans.py: _deallocated",
    "postgres/sampling/activity.py: _sample",
    "postgres/sampling/session_samples.py: read_session_pids",
    "postgres/sampling/session_samples.py: sample_sessions",
    "postgres/sampling/sessions.py: _look",
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
    for node in module.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        statement = node.args[: _SENDING.get(node.func.attr, 0)]
        of = ast.unparse(node.func.value)
        if of == "generators" or (node.func.attr == "copy" and not of.endswith(("cursor", "cursor()"))):
            continue  # of psycopg, which waits; of a file
        if not all(_is_constant(one, constants) for one in statement):
            yield _place(module, node.lineno)


def _place(module: Module, line: int) -> str:
    """Return a line's file, with the function or the constant that it is in."""
    named: dict[ast.stmt, str] = {
        node: node.name for node in module.nodes if isinstance(node, ast.FunctionDef)
    }
    named |= {
        node: ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        for node in module.tree.body
        if isinstance(node, ast.AnnAssign | ast.Assign)
    }
    within = (name for node, name in named.items() if node.lineno <= line <= (node.end_lineno or 0))
    return f"{module.place}: {next(within, '')}"


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


# What PostgreSQL looks up by the search path where no schema is named; roles of a database could plant it.
_SENDING_NOTHING = (
    "report/",
    "plan/formats/",
    "plan/levers/",
    "plan/view/",
    "workload/capture/",
    "workload/view.py",
    "builds/compilers/",
    "builds/compiling/",
    "builds/needs/",
    "builds/optimise/",
    "builds/patching/",
    "builds/product/",
    "builds/source/",
    "builds/spec/",
)
_BY_PATH = {
    "builds/training.py": "chores that train a build, on its own server",
    "builds/verifying/crashes.py": "tables on a build's own server",
    "builds/verifying/verification.py": "tables on a build's own server",
    "apply/configuration/foreign_edits.py": "for a person to type",
    "apply/runs/manual_commands.py": "for a person to type",
    "studies/bundled/loop.py": "the load itself, in a database that pgdyno has made",
    "studies/bundled/parallel_degree.py": "the load itself, in a database that pgdyno has made",
    "workload/bundled/_pgbench.py": "an invariant of the load, in a database that pgdyno has made",
}
_SQL = re.compile(
    r"""\s*(?:--.*\s+)*\(?
        (?:SELECT|WITH|INSERT|UPDATE|DELETE|VALUES|EXPLAIN|PREPARE|DECLARE|UNION|FROM|JOIN|LEFT|CROSS|WHERE
          |AND|OR|GROUP|HAVING|ORDER|CASE)\s
    | (?s:.)*(?:\(\s*SELECT\s|::["a-z]|OPERATOR\()""",
    re.VERBOSE,
)
_TOKEN = re.compile(
    r"""(?P<nothing> --[^\n]* | /\*.*?\*/ | \s+)
    | (?P<value> %\(\w+\)s | %s | \$\d+ | \{[^{}]*\} | [EBXN]?'(?:[^']|'')*' | \d[\w.]*)
    | (?P<named> OPERATOR\(pg_catalog\.[^)]+\))
    | (?P<word> [^\W\d]\w* | "(?:[^"]|"")*")
    | (?P<cast> ::)
    | (?P<operator> [-+*/<>=~!@\#%^&|`?]+)
    | (?P<mark> .)""",
    re.VERBOSE | re.DOTALL,
)
_BEFORE_BRACKETS = re.compile(
    "ALL|AND|ANY|ARRAY|AS|BY|COALESCE|COPY|EXISTS|EXPLAIN|FILTER|FROM|GREATEST|JOIN|LATERAL|LEAST|NOT|ON|OR|OVER|"
    "REPEATABLE|ROW|SELECT|SYSTEM|VALUES|WHEN|WHERE|WITH"
)
_NAMING = {"AS", "INTO", "RECURSIVE", "TABLE", "WITH"}  # columns follow the name
_OPERATORS_IN_WORDS = {"BETWEEN", "CAST", "ILIKE", "LIKE", "NATURAL", "NULLIF", "SIMILAR"}
_OPERATORS_BEFORE_BRACKETS = {"IN", "USING"}
_NAME_ALONE = re.compile(r"'[^.]*'")
_OBJECTS = {"regclass", "regoper", "regoperator", "regproc", "regprocedure", "regtype"}


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def test_statements_of_pgdynos_own_name_the_schema_of_everything() -> None:
    found = {
        module.place: [f"{module.place}:{line} {bare}" for line, bare in _without_schema_in(module)]
        for module in modules()
        if module.package not in _NOT_SQL and not module.place.startswith(_SENDING_NOTHING)
    }
    faults = [one for place, its in found.items() if place not in _BY_PATH for one in its]
    assert not faults, (
        "these are found by the search path: write pg_catalog.name and OPERATOR(pg_catalog.=), with ANY for "
        f"IN and WHEN for CASE x WHEN: {faults}"
    )
    idle = [place for place in _BY_PATH if not found[place]]
    assert not idle, f"these need not be named here any more: {idle}"


@pytest.mark.parametrize(
    ("statement", "bare"),
    [
        ("SELECT date '2026-01-01', a::numeric(8, 2)", ["date", "::numeric", "numeric"]),
        ("SELECT a::text, '{r}'::\"char\"[] FROM t", ["::text", '::"char"']),
        ("SELECT count(*), max (b) FROM pg_class AS pg", ["count", "max", "pg_class"]),
        ("SELECT x.* FROM x, pg_catalog.unnest(%s::pg_catalog.text[]) AS w (k0, k1) -- a = b", []),
        ("WITH RECURSIVE r (n) AS (SELECT 1) SELECT * FROM r /* f() */ WHERE 'a = f()' IS NULL", []),
        ("SELECT a || b, c * 2, -1, -d FROM t", ["||", "*", "-"]),
        (
            "SELECT a OPERATOR(pg_catalog.-) 1 OPERATOR(pg_catalog.<>) -2, a OPERATOR(x.=) b",
            ["OPERATOR", "="],
        ),
        ("SELECT a WHERE a <> %s AND b !~ %(b)s AND c = $1", ["<>", "!~", "="]),
        ("SELECT a WHERE a IN (1, 2) OR b NOT LIKE 'x' OR c BETWEEN 1 AND 2", ["IN", "LIKE", "BETWEEN"]),
        ("SELECT CASE a WHEN 1 THEN 2 END, CASE WHEN a THEN 1 END, NULLIF(a, b)", ["CASE", "NULLIF"]),
        ("SELECT 1 FROM a JOIN b USING (c) WHERE a IS NOT DISTINCT FROM b", ["USING", "DISTINCT"]),
        ("SELECT 'pg_class'::pg_catalog.regclass, 'pg_catalog.pg_class'::pg_catalog.regclass", ["regclass"]),
    ],
)
def test_what_has_no_schema_is_found(statement: str, bare: list[str]) -> None:
    assert [one for _, one in _without_schema(statement)] == bare


def _without_schema_in(module: Module) -> Iterator[tuple[int, str]]:
    docstrings = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
    parts = {id(one) for node in module.nodes if isinstance(node, ast.JoinedStr) for one in node.values}
    composed = {id(one) for call in module.nodes if _composes(call) for one in ast.walk(call)}
    for node in module.nodes:
        text = _text(node)
        if text is None or id(node) in docstrings | parts:
            continue
        if id(node) in composed or _SQL.match(text):
            for line, bare in _without_schema(text):
                yield getattr(node, "lineno", 1) + line, bare


def _composes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "sql.SQL"


def _text(node: ast.AST | None) -> str | None:
    """Return the text of a literal, with ``{}`` for the values of an f-string."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bytes(text)):
            return text.decode(errors="replace")
        case ast.JoinedStr(values=parts):
            return "".join(_text(one) or "{}" for one in parts)
    return None


def _without_schema(text: str) -> Iterator[tuple[int, str]]:
    """Yield what has no schema, with the number of lines before it."""
    found = (
        _Token(one.lastgroup or "", one[0], text.count("\n", 0, one.start())) for one in _TOKEN.finditer(text)
    )
    edge = [_Token("mark", "", 0)] * 4
    tokens = [*edge, *(one for one in found if one.kind != "nothing"), *edge]
    for place in range(len(edge), len(tokens) - len(edge)):
        token, before, after = tokens[place], tokens[place - 1], tokens[place + 1]
        match token.kind:
            case "cast" if after.text != "pg_catalog" and after.kind != "value":
                yield token.line, f"::{after.text}"
            case "operator" if not (_is_star(token, before) or _is_sign(token, before, after)):
                if tokens[place - 2].text not in {"SET", "LOCAL"}:
                    yield token.line, token.text
            case "word" if _is_bare(token, before, after):
                yield token.line, token.text
            case "word" if token.text in _OBJECTS and _NAME_ALONE.match(tokens[place - 4].text):
                yield token.line, token.text


def _is_star(token: _Token, before: _Token) -> bool:
    return token.text == "*" and before.text in {"(", ".", ",", "SELECT", "DISTINCT"}


def _is_sign(token: _Token, before: _Token, after: _Token) -> bool:
    return (
        token.text == "-" and after.text.isdecimal() and (before.kind == "named" or before.text in {"(", ","})
    )


def _is_bare(word: _Token, before: _Token, after: _Token) -> bool:
    text, is_called = word.text, after.text == "("
    if before.text == ".":
        return False
    if text in _OPERATORS_IN_WORDS or (text in _OPERATORS_BEFORE_BRACKETS and is_called):
        return not (text == "LIKE" and before.text == "(")  # CREATE TABLE copy (LIKE original)
    if text == "CASE":
        return after.text != "WHEN"
    if text == "DISTINCT":
        return before.text in {"IS", "NOT"}
    if is_called:
        return not _BEFORE_BRACKETS.fullmatch(text) and before.text not in _NAMING
    is_type = text.islower() and after.text.startswith("'")  # date '2026-01-01'
    return is_type or (text.startswith("pg_") and after.text != ".")


_OTHER_PATHS = {
    "measure/arenas/arm.py: _IN_PUBLIC": "invariants of pgdyno's own workloads, in databases that it made",
    "measure/arenas/loop_library.py: make_functions": "pgdyno's own functions, on a scratch server",
    "measure/arenas/load.py: connect": "statements of pgdyno's own workloads, in databases that it made",
    "measure/replay.py: _connect": "queries of invariants: read_answer in docs/security.md",
    "measure/replay.py: _run": "sessions of the load",
    "measure/degrees.py: _use_role_settings": "a query: _plan in docs/security.md",
    "workload/workload_choice.py: captured_workload": "sessions of the load",
    "accelerate/planning.py: _plan_statements": "statements of pgdyno's own workloads, on a scratch server",
    "postgres/inspection/columns.py: _SCHEMAS": "one statement, which is parsed before it sets the path",
    "postgres/inspection/columns.py: infer_types": "statements: parameter_types in docs/security.md",
    "postgres/sampling/prepared_plans.py: explain_unknown": "statements: explain_unknown in docs/security.md",
    "postgres/planner/planner.py: _explain": "a query: _explain in docs/security.md",
}
_SETS_PATH = re.compile(r"\b(?:SET|LOCAL|RESET) search_path\b(?! = '')|set_config\('search_path'")


def test_the_search_path_is_another_one_for_statements_of_others_alone() -> None:
    found = {
        _place(module, node.lineno)
        for module in modules()
        if module.package not in _NOT_SQL and not module.place.startswith(_SENDING_NOTHING)
        for node in module.nodes
        if isinstance(node, ast.expr) and _sets_another_path(node)
    }
    assert not found - _OTHER_PATHS.keys(), (
        "the search path is set here: pgdyno's own statements need none; say here for which of others it is: "
        f"{found - _OTHER_PATHS.keys()}"
    )
    assert not _OTHER_PATHS.keys() - found, f"these are not there any more: {_OTHER_PATHS.keys() - found}"


def _sets_another_path(node: ast.expr) -> bool:
    match node:
        case ast.Dict(keys=keys, values=values):
            of_path = (value for key, value in zip(keys, values, strict=True) if _text(key) == "search_path")
            return any(_text(value) != "" for value in of_path)
        case ast.Call(func=ast.Attribute(attr="fromkeys")):
            return any(_text(one) == "search_path" for one in ast.walk(node))
    return _SETS_PATH.search(_text(node) or "") is not None
