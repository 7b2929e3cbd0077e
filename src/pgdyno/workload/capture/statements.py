"""Decides which statements can be replayed, and why others are left out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from pgdyno.postgres.planner.sql_text import calls_in
from pgdyno.workload.capture.literals import TOKEN, parameterised
from pgdyno.workload.capture.syntax import PARAMETER, constants, is_squashed, shared, tree, without_comments

_CONTROL = re.compile(
    r"\s*(?P<begin>BEGIN|START\s+TRANSACTION)\b|"
    r"\s*(?P<commit>(?:COMMIT|END)(?:\s+(?:WORK|TRANSACTION))?(?=\s*;?\s*$|\s+AND\b))|"
    r"\s*(?P<rollback>(?:ROLLBACK|ABORT)(?:\s+(?:WORK|TRANSACTION))?(?=\s*;?\s*$|\s+AND\b))|"
    r"\s*(?P<savepoint>SAVEPOINT)\b|\s*(?P<back>RELEASE|ROLLBACK(?:\s+(?:WORK|TRANSACTION))?\s+TO)\b|"
    r"\s*(?P<within>SET\s+TRANSACTION|LOCK)\b",
    re.IGNORECASE,
)
_SAVEPOINT = re.compile(
    r"\s*(SAVEPOINT|RELEASE(?:\s+SAVEPOINT)?|ROLLBACK(?:\s+(?:WORK|TRANSACTION))?\s+TO(?:\s+SAVEPOINT)?)\s+"
    r'(?:\$1|"(?:[^"]|"")*"|[^\W\d][\w$]*)\s*',
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*\(*\s*(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|VALUES|TABLE)\b",
    re.IGNORECASE | re.DOTALL,
)
_REASONS = (
    (re.compile(r"\s*COPY\b", re.IGNORECASE), "COPY: its rows are not in the server's statistics"),
    (
        re.compile(r"\s*(LISTEN|UNLISTEN|NOTIFY)\b", re.IGNORECASE),
        "LISTEN and NOTIFY affect other sessions",
    ),
    (
        re.compile(r"\s*(PREPARE(?!\s+TRANSACTION\b)|DEALLOCATE)\b", re.IGNORECASE),
        "a replay prepares statements itself",
    ),
    (re.compile(r"\s*EXECUTE\b", re.IGNORECASE), "EXECUTE: the statement that it runs is unknown"),
    (
        re.compile(r"\s*(SET(?!\s+CONSTRAINTS\b)|RESET|DISCARD)\b", re.IGNORECASE),
        "settings of sessions are not replayed",
    ),
    (_QUERY, "syntax not supported"),
)
_STATISTICS = re.compile(r"\bpg_stat_(statements|activity|get_activity|database)", re.IGNORECASE)
_OURS = re.compile(rf"{_STATISTICS.pattern}|^SELECT pg_catalog\.set_config\(", re.IGNORECASE)
# Foreign keys that are checked at COMMIT: the server sends these itself, also for a replay.
_CHECK = re.compile(
    r"SELECT \S+ FROM (?:ONLY )?\S+ x WHERE .* OPERATOR\(pg_catalog\.=\) .* FOR KEY SHARE OF x", re.DOTALL
)
_WRITING = (exp.Insert, exp.Update, exp.Delete, exp.Merge)
_CAST = r"(?:::[^,()\[\]]+(?:\([\d,\s]*\))?)?"
_LIST = re.compile(
    rf"(\bIN\s*\(|\bARRAY\s*\[)\s*(\$\d+){_CAST}(?:\s*,\s*\$\d+{_CAST})+(?=\s*[)\]])", re.IGNORECASE
)
_OUTSIDE = frozenset({
    "dblink", "dblink_exec", "dblink_get_result", "dblink_fetch", "dblink_close", "dblink_disconnect",
    "http_put", "http_patch", "http_delete", "net_http_post", "pg_start_backup", "pg_backup_start",
    "dblink_connect", "dblink_open", "dblink_send_query", "lo_import", "lo_export", "pg_read_file",
    "pg_read_binary_file", "pg_ls_dir", "pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf",
    "pg_rotate_logfile", "pg_switch_wal", "pg_promote", "pg_notify", "http", "http_get", "http_post",
    "pg_sleep_until", "pg_logical_emit_message", "pg_file_write",
})  # fmt: skip
"""Functions that act outside the database, or on the server itself."""


_BY_ORDER = frozenset({
    "array_agg", "string_agg", "json_agg", "jsonb_agg", "xmlagg", "row_number", "ntile", "lag", "lead",
    "first_value", "last_value", "nth_value",
})  # fmt: skip
"""Functions over several rows with a result that depends on their order, or on that of equal rows."""


class TransactionPart(Enum):
    """A statement's role in a transaction."""

    QUERY = "reads or writes rows"
    BEGIN = "begins a transaction"
    COMMIT = "commits one"
    ROLLBACK = "rolls one back"
    SAVEPOINT = "marks a place within one"
    BACK = "needs such a place"
    WITHIN = "belongs into one"


QUERIES_OR_WITHIN = frozenset(
    {TransactionPart.QUERY, TransactionPart.SAVEPOINT, TransactionPart.BACK, TransactionPart.WITHIN}
)
"""Statements between the beginning and the end of a transaction."""
ENDS = frozenset({TransactionPart.COMMIT, TransactionPart.ROLLBACK})


@dataclass(frozen=True)
class Replayable:
    """A statement that can be replayed."""

    kind: TransactionPart
    is_read_only: bool


def look_at(sql: str, writing: Collection[str] = ()) -> Replayable | str:
    """Return the kind of a statement, or the reason why it is not replayed.

    ``writing`` are the names of the database's functions that may write. Without them, its own commands alone
    decide whether it is read-only.
    """
    sql = without_comments(sql)
    control = _CONTROL.match(sql)
    if control is not None:
        [name] = [name for name, found in control.groupdict().items() if found]
        return Replayable(TransactionPart[name.upper()], is_read_only=True)
    parsed = tree(sql) if _QUERY.match(sql) else None
    if parsed is None:
        return _why_unreadable(sql)
    if outside := sorted({one.name.lower() for one in parsed.find_all(exp.Anonymous)} & _OUTSIDE):
        return f"calls {', '.join(outside)}, with effects outside the database"
    if constants(parsed):
        return "its text contains constants, which a workload does not keep"
    functions = {name for _, name in calls_in(sql)}
    is_read_only = functions.isdisjoint(writing) and _is_read_only(parsed)
    return Replayable(TransactionPart.QUERY, is_read_only)


def reads_alone(sql: str, writing: Collection[str]) -> bool:
    """Whether a statement only reads; ``writing`` are the names of functions that may write."""
    look = look_at(sql, writing)
    return isinstance(look, Replayable) and look.kind is TransactionPart.QUERY and look.is_read_only


def writing_command(sql: str) -> str | None:
    """Return the command of a statement that writes rows, in capitals; None for other statements."""
    parsed = tree(sql)
    return parsed.key.upper() if isinstance(parsed, _WRITING) else None


def depends_on_order(sql: str) -> bool:
    """Whether the order in which rows are read can decide a result, apart from its own order.

    It does with LIMIT, FETCH, OFFSET and DISTINCT ON among equal rows, and with aggregates such as array_agg.
    True if the statement cannot be parsed.
    """
    parsed = tree(sql)
    if parsed is None or parsed.find(exp.Limit, exp.Fetch, exp.Offset) is not None:
        return True
    is_choosing = any(one.args.get("on") for one in parsed.find_all(exp.Distinct))
    return is_choosing or not _BY_ORDER.isdisjoint(name for _, name in calls_in(sql))


def _why_unreadable(sql: str) -> str:
    for pattern, why in _REASONS:
        if pattern.match(sql):
            return why
    return "a utility statement, which changes more than rows"


def executable(sql: str) -> str:
    """Return a statement in executable form, with one name for all savepoints.

    PostgreSQL 17 and later count them without names. Before, each name is a statement of its own, and many
    applications never use a name twice.
    """
    bare = without_comments(sql).rstrip(";").rstrip()
    savepoint = _SAVEPOINT.fullmatch(bare)
    return bare if savepoint is None else f"{savepoint[1]} pgdyno"


def as_counted(sql: str) -> str:
    """Return a statement in a form that is equal for all statements that the server counts as one.

    PostgreSQL 18 shows one value of a list, and numbers parameters in order. All versions show the field of
    EXTRACT as a parameter.
    """
    without = shared(parameterised(executable(sql), keeps_names=False), is_counted=True)
    shorter = _LIST.sub(r"\1\2", without.sql)
    numbers: dict[str, str] = {}
    renumbered = PARAMETER.sub(lambda found: numbers.setdefault(found[0], f"${len(numbers) + 1}"), shorter)
    return re.sub(r"\s+(?=[)\]])", "", renumbered)


def same_texts(texts: Mapping[int, str]) -> dict[int, int]:
    """Return for each statement id the first id with the same text: a text may have several ids."""
    first: dict[str, int] = {}
    return {one: first.setdefault(executable(text), one) for one, text in texts.items()}


def shown(sql: str, *, is_counted: bool = False) -> str:
    """Return a statement that is not replayed for display: only its first words if it may have constants.

    ``is_counted``: it is a text of pg_stat_statements, which may be complete without being parsed.
    """
    bare = _without_constants(sql) if is_counted and is_query(sql) else None
    if bare is not None:
        return bare
    words = without_comments(sql).split()
    is_whole = is_query(sql) and not _has_constants(sql)
    return " ".join(words) if is_whole else " ".join([*itertools.takewhile(str.isalpha, words[:2]), "…"])


def _without_constants(sql: str) -> str | None:
    """Return a statement in one line, without comments; None if one of its tokens may be a constant."""
    tokens = [(found.lastgroup, found[0]) for found in TOKEN.finditer(sql)]
    if any(kind in {"text", "tag", "number"} or (kind, text) == ("other", "'") for kind, text in tokens):
        return None
    text = "".join(" " if kind == "space" else text for kind, text in tokens)
    return None if "*/" in text else " ".join(text.split())


def _has_constants(sql: str) -> bool:
    """Whether a statement has constants or cannot be parsed."""
    parsed = tree(sql)
    return parsed is None or bool(constants(parsed))


def is_query(sql: str) -> bool:
    """Whether a statement reads or writes rows according to its first word."""
    return _QUERY.match(sql) is not None


def is_of_others(sql: str) -> bool:
    """Whether a statement is not of an application: it reads statistics, as pgdyno's own, or checks a key."""
    return _OURS.search(sql) is not None or _CHECK.fullmatch(sql) is not None


def reads_statistics(sql: str) -> bool:
    """Whether a statement is monitoring, pgdyno's own included."""
    return _STATISTICS.search(sql) is not None


def note_on(name: str, sql: str) -> str | None:
    """Return a note on a replayed statement with a list of unknown length; None for others."""
    return f"{name}: the length of its list is unknown; 1 value is used" if is_squashed(sql) else None


def base_name(sql: str) -> str:
    """Return a name for a statement: its verb and its first table."""
    parsed = tree(sql)
    table = None if parsed is None else parsed.find(exp.Table)
    words = without_comments(sql).split(None, 2)
    verb = words[0].lower() if words else "statement"
    return f"{verb}-{table.name}" if table is not None and table.name else verb


def _is_read_only(parsed: exp.Expression) -> bool:
    """Whether a statement does not write to rows; row locks do."""
    writing = parsed.find(*_WRITING, exp.Into)
    return writing is None and parsed.find(exp.Lock) is None
