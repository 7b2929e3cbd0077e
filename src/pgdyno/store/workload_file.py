"""Workload files: a captured workload in TOML, for reading and editing by users."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomlkit

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.captured import (
    ArrayOf,
    Between,
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Constant,
    Invariant,
    Is,
    Letters,
    NewKey,
    NoRows,
    OfColumn,
    Omitted,
    OneOf,
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
    Unchanged,
    Uuid,
)
from pgdyno.postgres.statement_counts import Ended
from pgdyno.store.files import MOST_DOTS, read_toml_file, write_whole
from pgdyno.store.workload_tables import CallTable, WorkloadFile

_MOST_CHARACTERS = 16 << 20  # of a file: arbitrary; 5,000 statements, the server's limit, take some million
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*\.toml")
_ABOUT = """\
# A pgdyno workload. Ways to draw a parameter: {column = "schema.table.column"}, a value of the column by
# its frequency, with array = N an array of N values; {new_key = …}, a number above all existing ones;
# {same_as = 1}, the value of $1 of this call, with of = "statement" of an earlier call, and plus = N
# added; {range_from = 1, column = "schema.table.column"}, the end of a range that begins with $1, with
# widths = [10, 20] (seconds for times) or rows = N; {range_to = 1, …}, its beginning; {returned = 1, of =
# "statement"}, the first column returned by an earlier call, also with plus = N; {ordinal = true}, 1 in the
# first call of the statement in a transaction, 2 in the second; {between = [1, 100]}, with distribution =
# "zipfian" and parameter = 1.1; {letters = [5, 20]}; {uuid = true}; {constant = "text"}; {null = true};
# {one_of = ["a", "b"]}, with weights = [3, 1], and nulls = 2 for NULL. pauses_s are equally likely pauses
# of a session between two transactions. You may add [[invariant]] with name, sql, and is = VALUE,
# unchanged = true or no_rows = true: it is checked before and after each load.

"""


def workload_name(path: Path) -> str:
    """Return the name of a workload to be written to a new file.

    Raises: UsageError if the file name is not valid for a workload, or its directory is not writable.
    """
    if _NAME.fullmatch(path.name) is None:
        raise UsageError(
            f'"{path.name}" is not a valid name of a workload file',
            hint='use lower-case letters, digits, "-" and "_", then .toml, for example shop.toml',
        )
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f'directory "{path.parent}" is not writable')
    return path.stem


def write_workload_file(path: Path, workload: CapturedWorkload) -> None:
    """Write a workload; with values of rows, the file is readable only by its owner.

    Raises: UsageError if it would be too large to be read again; StorageError, an existing file is then
    unchanged.
    """
    text = _ABOUT + tomlkit.dumps(_document(workload))
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(
            f'"{path}" would be too large to be read again',
            detail=f"the workload has {len(text)} characters; the limit is {_MOST_CHARACTERS}",
            hint="use a part of the log, or leave out --keep-values",
        )
    write_whole(path, text.encode(), 0o600 if workload.has_values else 0o666)


def read_workload_file(path: Path) -> CapturedWorkload:
    """Return the workload in a file. Raises: UsageError with its mistakes."""
    parsed = read_toml_file(
        path,
        WorkloadFile,
        UsageError,
        most_characters=_MOST_CHARACTERS,
        if_larger="remove unimportant statements",
    )
    return _workload(parsed, path)


def _document(workload: CapturedWorkload) -> Mapping[str, Any]:
    about = {
        "name": workload.name,
        "server_version": workload.server_version,
        "cluster": workload.cluster,
        "database": workload.database,
        "search_path": workload.search_path,
        "protocol": workload.protocol,
        "seconds": workload.seconds,
        **({"pauses_s": list(workload.pauses_s)} if workload.pauses_s else {}),
        "counted": list(workload.counted),
        "clients": workload.clients,
        **({} if workload.sessions is None else {"sessions": workload.sessions}),
        **({} if workload.ended is None else {"ended": _inline(asdict(workload.ended))}),
        **({"assumed_share": workload.assumed_share} if workload.assumed_share else {}),
        "read_only": workload.is_read_only,
        "notes": _multiline_array(workload.notes),
    }
    transactions = (
        {"weight": one.weight, "call": _multiline_array(map(_call_table, one.calls))}
        for one in workload.transactions
    )
    statements = (
        {
            "name": one.name,
            "sql": _sql(one.sql),
            **({} if one.is_prepared else {"prepared": False}),
            "seen": _inline(asdict(one.seen)),
            **({"favours": _favoured_table(one.favours)} if one.favours else {}),
        }
        for one in workload.statements
    )
    omitted = (
        {"sql": _sql(one.sql), "why": one.why, "seen": _inline(asdict(one.seen))} for one in workload.omitted
    )
    invariants = map(_invariant_table, workload.invariants)
    return {
        "workload": about,
        "transaction": _array_of_tables(transactions),
        "statement": _array_of_tables(statements),
        **({"invariant": _array_of_tables(invariants)} if workload.invariants else {}),
        "omitted": _array_of_tables(omitted),
    }


def _array_of_tables(each: Iterable[Mapping[str, Any]]) -> tomlkit.items.AoT:
    tables = tomlkit.aot()
    for one in each:
        table = tomlkit.table()
        table.update(one)
        tables.append(table)
    return tables


def _multiline_array(each: Iterable[object]) -> tomlkit.items.Array:
    array = tomlkit.array().multiline(multiline=True)
    array.extend(each)
    return array


def _inline(table: Mapping[str, Any]) -> tomlkit.items.InlineTable:
    inline = tomlkit.inline_table()
    inline.update(table)
    return inline


def _favoured_table(favours: Mapping[int, tuple[float, ...]]) -> tomlkit.items.Table:
    table = tomlkit.table()
    table.update({str(number): list(positions) for number, positions in favours.items()})
    return table  # a line for each parameter: the dots of a line are limited


def _sql(text: str) -> tomlkit.items.String:
    lines = text.split("\n")
    is_readable = all(line.count(".") <= MOST_DOTS for line in lines)
    return tomlkit.string(text, multiline=len(lines) > 1 and is_readable)


def _call_table(call: CapturedCall) -> tomlkit.items.InlineTable:
    table: dict[str, Any] = {"statement": call.statement}
    if call.times != 1:
        table["times"] = call.times
    if call.parameters:
        parameters = tomlkit.array()
        parameters.extend(_inline(_parameter_table(one)) for one in call.parameters)
        table["parameters"] = parameters
    return _inline(table)


def _parameter_table(one: Parameter) -> dict[str, Any]:
    table: dict[str, Any]
    match one:
        case ColumnValue() | ArrayOf() | NewKey() | RangeEnd():
            table = _column_table(one)
        case ReturnedValue(column, statement, plus):
            table = {"returned": column, "of": statement, **({"plus": plus} if plus else {})}
        case Ordinal():
            table = {"ordinal": True}
        case SameValue(parameter, statement, plus):
            of = {} if statement is None else {"of": statement}
            table = {"same_as": parameter, **of, **({"plus": plus} if plus else {})}
        case Between(low, high, distribution, parameter):
            kind = {} if distribution == "uniform" else {"distribution": distribution}
            of_kind = {} if parameter is None else {"parameter": parameter}
            table = {"between": [low, high], **kind, **of_kind}
        case Letters(least, most):
            table = {"letters": [least, most]}
        case Uuid():
            table = {"uuid": True}
        case OneOf(values, weights, nulls):
            weighted = {"weights": list(map(_whole, weights))} if weights else {}
            table = {"one_of": list(values), **weighted, **({"nulls": _whole(nulls)} if nulls else {})}
        case Constant(value):
            table = {"null": True} if value is None else {"constant": value}
    return table


def _invariant_table(one: Invariant) -> dict[str, Any]:
    expected: dict[str, Any]
    match one.expected:
        case Is(value):
            expected = {"is": value}
        case Unchanged():
            expected = {"unchanged": True}
        case NoRows():
            expected = {"no_rows": True}
    return {"name": one.name, "sql": _sql(one.sql), **expected}


def _column_table(one: OfColumn) -> dict[str, Any]:
    if isinstance(one, RangeEnd):
        return {
            "range_to" if one.is_lower else "range_from": one.parameter,
            "column": one.column,
            **({"widths": list(map(_whole, one.widths))} if one.widths else {}),
            **({} if one.rows is None else {"rows": _whole(one.rows)}),
            **({"open": True} if one.is_open else {}),
        }
    if isinstance(one, NewKey):
        return {"new_key": one.column}
    return {"column": one.column, **({"array": one.length} if isinstance(one, ArrayOf) else {})}


def _whole(number: float) -> float:
    """Return a whole number as int, which is written without a dot: the dots of a line are limited."""
    return int(number) if number == int(number) else number


def _workload(file: WorkloadFile, path: Path) -> CapturedWorkload:
    for noun, tables in (("statements", file.statement), ("invariants", file.invariant)):
        named = Counter(one.name for one in tables)
        if twice := {name for name, count in named.items() if count > 1}:
            raise UsageError(f'"{path}" has two {noun} called {", ".join(sorted(twice))}')
    about = file.workload
    return CapturedWorkload(
        name=about.name,
        server_version=about.server_version,
        cluster=about.cluster,
        database=about.database,
        search_path=about.search_path,
        protocol=about.protocol,
        seconds=about.seconds,
        pauses_s=about.pauses,
        sessions=about.sessions,
        ended=None if about.ended is None else Ended(about.ended.committed, about.ended.rolled_back),
        assumed_share=about.assumed_share,
        clients=about.clients,
        statements=tuple(
            CapturedStatement(one.name, one.sql, one.seen.seen(), one.prepared, one.favoured)
            for one in file.statement
        ),
        transactions=tuple(
            CapturedTransaction(one.weight, tuple(_call(call) for call in one.call))
            for one in file.transaction
        ),
        invariants=tuple(one.invariant() for one in file.invariant),
        omitted=tuple(Omitted(one.sql, one.why, one.seen.seen()) for one in file.omitted),
        notes=tuple(about.notes),
        is_read_only=about.read_only,
        counted=tuple(about.counted),
    )


def _call(table: CallTable) -> CapturedCall:
    return CapturedCall(table.statement, table.times, tuple(one.drawn() for one in table.parameters))
