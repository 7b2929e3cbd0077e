"""Workload files: a captured workload in TOML, to be read and edited by people."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomlkit
from pydantic import ValidationError

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
    Letters,
    NewKey,
    Omitted,
    OneOf,
    Parameter,
    ReturnedValue,
    SameValue,
    Uuid,
)
from pgdyno.model.experiments.invariant import Invariant, Is, NoRows, Unchanged
from pgdyno.store.files import write_whole
from pgdyno.store.toml_file import MOST_DOTS, toml_text
from pgdyno.store.workload_tables import CallTable, WorkloadFile

_MOST_CHARACTERS = 16 << 20  # of a file: arbitrary; 5,000 statements, the server's limit, have some million
_MOST_MISTAKES = 8
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*\.toml")
_ABOUT = """\
# A workload of pgdyno. Parameters are drawn: {column = "schema.table.column"}, a value as its rows have it,
# with array = N an array of so many; {new_key = …}, a number beyond all; {same_as = 1}, this call's $1, with
# of = "statement" an earlier call's, and plus = N added; {returned = 1, of = "statement"}, the first column
# that an earlier call returned; {between = [1, 100]}; {letters = [5, 20]}; {uuid = true};
# {constant = "text"}; {null = true}; {one_of = ["a", "b"]}, with weights = [3, 1], and nulls = 2 for NULL.
# pauses_s are pauses of a session between two transactions, each as likely as the others. Yours to add:
# [[invariant]] with name, sql, and is = VALUE, unchanged = true or no_rows = true: checked around each load.

"""


def workload_name(path: Path) -> str:
    """Return the name of a workload that is to be written to a new file.

    Raises: UsageError if the file is called otherwise than workloads are, or cannot be written.
    """
    if _NAME.fullmatch(path.name) is None:
        raise UsageError(
            f'"{path.name}" is no name for a workload',
            hint='lower-case letters, digits, "-" and "_", then .toml: shop.toml',
        )
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f'"{path.parent}" cannot be written to')
    return path.stem


def write_workload_file(path: Path, workload: CapturedWorkload) -> None:
    """Write a workload; one with values of rows for its owner's eyes alone.

    Raises: UsageError for one that is too large to be read again; StorageError, and then the file that was
    there before is unchanged.
    """
    text = _ABOUT + tomlkit.dumps(_document(workload))
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(
            f'"{path}" would be too large to be read again',
            detail=f"the workload takes {len(text)} characters, and {_MOST_CHARACTERS} are read",
            hint="take a part of the log, or leave out --keep-values",
        )
    write_whole(path, text.encode(), 0o600 if workload.has_values else 0o666)


def read_workload_file(path: Path) -> CapturedWorkload:
    """Return the workload in a file. Raises: UsageError listing its mistakes."""
    try:
        text = toml_text(path, _MOST_CHARACTERS, UsageError, "leave out statements that matter little")
        return _workload(WorkloadFile.model_validate(tomllib.loads(text)), path)
    except OSError as error:
        raise UsageError(f'could not read "{path}"', detail=str(error.strerror)) from error
    except ValidationError as error:
        listed = [_describe(dict(one)) for one in error.errors()[:_MOST_MISTAKES]]
        raise UsageError(f'"{path}" is not a workload', detail="; ".join(listed)) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f'"{path}" is not valid TOML', detail=str(error)) from error


def _describe(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {str(error['msg']).removeprefix('Value error, ')}"


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
        "read_only": workload.is_read_only,
        "notes": _lines(workload.notes),
    }
    transactions = (
        {"weight": one.weight, "call": _lines(map(_call_table, one.calls))} for one in workload.transactions
    )
    statements = (
        {
            "name": one.name,
            "sql": _sql(one.sql),
            **({} if one.is_prepared else {"prepared": False}),
            "seen": _inline(asdict(one.seen)),
        }
        for one in workload.statements
    )
    omitted = (
        {"sql": _sql(one.sql), "why": one.why, "seen": _inline(asdict(one.seen))} for one in workload.omitted
    )
    return {
        "workload": about,
        "transaction": _tables(transactions),
        "statement": _tables(statements),
        **({"invariant": _tables(map(_invariant_table, workload.invariants))} if workload.invariants else {}),
        "omitted": _tables(omitted),
    }


def _tables(each: Iterable[Mapping[str, Any]]) -> tomlkit.items.AoT:
    """Return ``[[NAME]]`` tables."""
    tables = tomlkit.aot()
    for one in each:
        table = tomlkit.table()
        table.update(one)
        tables.append(table)
    return tables


def _lines(each: Iterable[object]) -> tomlkit.items.Array:
    """Return an array with a line for each element."""
    array = tomlkit.array().multiline(multiline=True)
    array.extend(each)
    return array


def _inline(table: Mapping[str, Any]) -> tomlkit.items.InlineTable:
    inline = tomlkit.inline_table()
    inline.update(table)
    return inline


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
        case ColumnValue() | ArrayOf() | NewKey():
            table = _column_table(one)
        case ReturnedValue(column, statement):
            table = {"returned": column, "of": statement}
        case SameValue(parameter, statement, plus):
            of = {} if statement is None else {"of": statement}
            table = {"same_as": parameter, **of, **({"plus": plus} if plus else {})}
        case Between(low, high, distribution):
            more = {} if distribution == "uniform" else {"distribution": distribution}
            table = {"between": [low, high], **more}
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


def _column_table(one: ColumnValue | ArrayOf | NewKey) -> dict[str, Any]:
    if isinstance(one, NewKey):
        return {"new_key": one.column}
    return {"column": one.column, **({"array": one.length} if isinstance(one, ArrayOf) else {})}


def _whole(number: float) -> float:
    """Return a number that is written without a point, if it needs none: lines may have few dots."""
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
        clients=about.clients,
        statements=tuple(
            CapturedStatement(one.name, one.sql, one.seen.seen(), one.prepared) for one in file.statement
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
    return CapturedCall(table.statement, table.times, tuple(one.parameter() for one in table.parameters))
