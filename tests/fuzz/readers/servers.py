"""What servers say: rows of pg_settings, plans, and transactions that were run on them."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.fuzz.words import refused_in_words

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.measure.blocks import transactions
from pgdyno.postgres import plan_document
from pgdyno.postgres.guc import bytes_of, guc_of
from pgdyno.postgres.planner import parallel_plan, sql_text
from pgdyno.postgres.planner.planner import plan_of
from pgdyno.postgres.secrets import redacted

_COLUMNS = 14
_NUMBER = re.compile(rb"-?[0-9]+")
_WORDS = b"abcdefghijklmnopqrstuvwxyz"


def check_settings(data: bytes) -> None:
    """A row of pg_settings, its columns parted by "|", and after them a value that somebody sets."""
    text = data.decode(errors="replace")
    columns = [column or None for column in text.split("|")]
    row: list[Any] = (columns + [None] * _COLUMNS)[:_COLUMNS]
    row[0], row[3] = row[0] or "a", row[3] or "real"
    row[10] = row[10].split(",") if row[10] else None
    value = columns[_COLUMNS] if len(columns) > _COLUMNS else text
    with refused_in_words():
        guc = guc_of(tuple(row))
        assert redacted(guc.name, guc.setting) is not None
        assert guc.display() is not None
        checked = guc.check(value or "")
        assert guc.check(checked) == checked
        assert bytes_of(guc.setting, guc.unit) is not None


def check_plan(data: bytes) -> None:
    """The answer to EXPLAIN (FORMAT JSON) is a plan that can be compared, or is refused."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):  # of psycopg's: the server says that it is JSON
        return
    with refused_in_words():
        plan = plan_of((document,))
        node = plan_document.plan_of(plan)
        assert not plan_document.plan_difference(node, node)
        assert parallel_plan.planned_workers(plan) >= 0
        assert parallel_plan.shape(plan) is not None
        for gather in parallel_plan.gathers(plan):
            assert parallel_plan.same_gather(plan, gather) is not None
        assert len(parallel_plan.scans(plan)) <= len(list(parallel_plan.nodes(plan)))
        assert isinstance(parallel_plan.expressions(plan), str)
        parallel_plan.written_by(plan)


def check_statement(data: bytes) -> None:
    """What is said of a statement does not depend on blanks around it."""
    text = data.decode(errors="replace")
    assert len(sql_text.without_constants(text)) <= len(text)
    assert sql_text.first_word(text) == sql_text.first_word(f" {text}")
    assert sql_text.has_several_statements(text) in {True, False}
    assert sql_text.calls_in(f" {text}") == sql_text.calls_in(text)
    sql_text.has_parameter(text), sql_text.builds_index(text), sql_text.operators_in(text)


def check_transactions(data: bytes) -> None:
    """A log is read as a plain loop over its lines reads it, or is refused."""
    try:
        expected = _by_lines(data)
    except ValueError:
        expected = None
    try:
        found = transactions.parse(data)
    except GeneratorFailedError as error:
        assert expected is None, error
        return
    assert expected is not None, "what is no log was taken for one"
    assert (
        found.latency_us.tolist(),
        found.completed_ns.tolist(),
        sum(map(len, found.failed_ns.values())),
    ) == expected


def _is_failure(line: bytes) -> bool:
    words = line.split(b" ")
    if len(words) < 6 or not all(word.isdigit() for word in (*words[:2], *words[3:])):
        return False
    if int(words[4]) >= 9 * 10**9 or len(words[4]) > 10 or len(words[5]) > 6:
        return False
    kind, *rest = words[2].split(b":", 3)
    if not rest:
        return kind in {b"serialization", b"deadlock"}
    return (
        kind == b"failed"
        and len(rest) == 3
        and len(rest[0]) == 5
        and all(48 <= one <= 57 or 65 <= one <= 90 for one in rest[0])
        and len(rest[1]) <= 15
        and (not rest[1] or rest[1].isdigit())
    )


def _by_lines(data: bytes) -> tuple[list[int], list[int], int]:
    """Return latencies, times and failures. Raises: ValueError for a line that pgbench would not write."""
    latencies, completed, failed, columns = [], [], 0, set()
    if data and not data.endswith(b"\n"):
        raise ValueError("the last line is not complete")
    for line in data.split(b"\n")[:-1]:
        if any(letter in line for letter in _WORDS):
            if not _is_failure(line):
                raise ValueError("not a failed transaction")
            failed += 1
            continue
        words = line.split(b" ")
        if not all(_NUMBER.fullmatch(word) and abs(int(word)) < 1 << 53 for word in words):
            raise ValueError("not a number")
        columns.add(len(words))
        latencies.append(int(words[2]) if len(words) > 5 else 0)
        completed.append((int(words[4]) * 1_000_000 + int(words[5])) * 1_000 if len(words) > 5 else 0)
        if len(words) > 5 and not (0 <= int(words[4]) < 9 * 10**9 and 0 <= int(words[5]) < 10**6):
            raise ValueError("not a time")
    if len(columns) > 1 or any(count < 6 for count in columns):
        raise ValueError("not the columns of a log")
    return latencies, completed, failed
