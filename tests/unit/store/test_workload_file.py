"""Workload files: what is written is read again, and mistakes are named."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.base.errors import StorageError, UsageError
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
    Omitted,
    OneOf,
    Ordinal,
    RangeEnd,
    ReturnedValue,
    SameValue,
    Unchanged,
)
from pgdyno.postgres.statement_counts import Seen
from pgdyno.store.workload_file import read_workload_file, workload_name, write_workload_file

SEEN = Seen(calls=3, time_ms=1.5, rows=3, blocks=12, wal_records=0)
WORKLOAD = CapturedWorkload(
    name="shop-1",
    server_version="18.0 (Debian)",
    cluster=7_569_000_000_000_000_001,
    database='sh"op',
    search_path='"$user", app',
    seconds=60.5,
    pauses_s=(0.0125, 3.0),
    sessions=7,
    assumed_share=0.25,
    clients=3,
    statements=(
        CapturedStatement("read", 'SELECT \'ü\'\n  FROM t -- \\ """ $1', SEEN),
        CapturedStatement("write", "INSERT INTO t VALUES ($1, $2, $3, $4, $5)", SEEN, is_prepared=False),
    ),
    transactions=(
        CapturedTransaction(
            1.5,
            (
                CapturedCall("read", 2.5, (ColumnValue("public.t.a"),)),
                CapturedCall(
                    "write",
                    1.0,
                    (
                        NewKey("public.t.a"),
                        SameValue(1, "read", plus=99),
                        Between(-1, 1),
                        Letters(1, 9),
                        Constant("x"),
                    ),
                ),
            ),
        ),
        CapturedTransaction(1.0, (CapturedCall("read", 1.0, (Constant(None),)),)),
        CapturedTransaction(
            1.0,
            (
                CapturedCall(
                    "write",
                    1.0,
                    (
                        RangeEnd(1, "public.t.a"),
                        RangeEnd(1, "public.t.a", (-1, 86400, 0.5)),
                        RangeEnd(2, "public.t.a", rows=2.5, is_lower=True, is_open=True),
                    ),
                ),
            ),
        ),
        CapturedTransaction(
            2.0,
            (
                CapturedCall("read", 1.0, (ArrayOf("public.t.a", 5),)),
                CapturedCall(
                    "write", 1.0, (ReturnedValue(2, "read"), ReturnedValue(1, "read", -1), Ordinal())
                ),
            ),
        ),
    ),
    omitted=(Omitted("COPY t FROM STDIN", "because", SEEN),),
    notes=("something is not known",),
    is_read_only=False,
    invariants=(
        Invariant("nobody owes", "select count(*)\n from accounts where balance < 0", Is(0)),
        Invariant("sums agree", "select 'a' || \"b\" from sums", Is("ab")),
        Invariant("open", "select true", Is(value=True)),
        Invariant("half", "select 0.5", Is(0.5)),
        Invariant("rows stay", "select count(*) from t", Unchanged()),
        Invariant("none is lost", "select 1 from t where a is null", NoRows()),
    ),
)
LEAST = """
[workload]
name = "w"
server_version = "18"
cluster = 1
database = "d"
seconds = 1
clients = 1
[[statement]]
name = "s"
sql = "SELECT $1"
[[transaction]]
weight = 1
call = [{statement = "s", parameters = [PARAMETER]}]
"""


def wrong(tmp_path: Path, text: str) -> UsageError:
    path = tmp_path / "w.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_workload_file(path)
    return caught.value


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_workload_file(tmp_path / "w.toml", WORKLOAD)
    assert read_workload_file(tmp_path / "w.toml") == WORKLOAD


def test_values_and_distributions_are_read_again_and_values_are_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    parameters = (OneOf(("it's", 'a "b"\n'), (3.0, 0.5), nulls=2.0), OneOf(("1",)), Between(1, 9, "zipfian"))
    transaction = CapturedTransaction(1.0, (CapturedCall("write", 1.0, parameters),))
    with_values = replace(WORKLOAD, transactions=(transaction,), counted=("calls",), seconds=0.0)
    path.write_text("open to others")
    path.chmod(0o644)
    write_workload_file(path, with_values)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_workload_file(path) == with_values


def test_a_file_that_could_not_be_written_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "w.toml"
    path.write_text("mine")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        write_workload_file(path, WORKLOAD)
    assert path.read_text() == "mine"


def test_many_weights_are_few_dots(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    many = OneOf(tuple(map(str, range(1000))), tuple(map(float, range(1, 1001))))
    transaction = CapturedTransaction(1.0, (CapturedCall("write", 1.0, (many,)),))
    write_workload_file(path, replace(WORKLOAD, transactions=(transaction,)))
    assert read_workload_file(path).transactions == (transaction,)


def test_a_workload_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text("mine")
    huge = replace(WORKLOAD, notes=("x" * (17 << 20),))
    with pytest.raises(UsageError, match="would be too large to be read again"):
        write_workload_file(path, huge)
    assert path.read_text() == "mine"


def test_a_call_stands_on_one_line_and_a_statement_is_written_as_it_is(tmp_path: Path) -> None:
    write_workload_file(tmp_path / "w.toml", WORKLOAD)
    lines = (tmp_path / "w.toml").read_text().splitlines()
    assert '    {statement = "read", times = 2.5, parameters = [{column = "public.t.a"}]},' in lines
    assert 'sql = "INSERT INTO t VALUES ($1, $2, $3, $4, $5)"' in lines


def test_a_file_of_before_with_the_median_pause_alone_is_read(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    text = LEAST.replace("PARAMETER", "{uuid = true}")
    path.write_text(text.replace("clients = 1", "clients = 1\npause_s = 0.25"))
    found = read_workload_file(path)
    assert (found.pauses_s, found.sessions) == ((0.25,), None)


def test_a_file_of_an_earlier_version_is_read() -> None:
    """Captured by 9c244304 from a log; its transactions of pgbench are left out."""
    found = read_workload_file(Path(__file__).parents[2] / "fixtures/workloads/earlier.toml")
    (orders,) = found.transactions
    assert [(call.statement, call.parameters) for call in orders.calls] == [
        ("begin", ()),
        ("insert-orders", (ColumnValue("public.orders.customer"), ColumnValue("public.orders.note"))),
        ("update-orders", (ReturnedValue(1, "insert-orders"), ColumnValue("public.orders.note"))),
        ("select-orders", (*[SameValue(1, "insert-orders")] * 2, Between(1, 100))),
        ("select-pgbench_accounts", (ColumnValue("public.pgbench_accounts.aid"),)),
        ("commit", ()),
    ]
    assert (orders.weight, found.sessions, len(found.pauses_s), found.counted) == (365, 3, 20, ("calls",))


def test_pauses_are_told_once_and_are_not_negative(tmp_path: Path) -> None:
    text = LEAST.replace("PARAMETER", "{uuid = true}")
    twice = wrong(tmp_path, text.replace("clients = 1", "clients = 1\npause_s = 1\npauses_s = [1, 2]"))
    assert twice.detail == '"workload": "pauses_s" replaces "pause_s": give only one of them'
    negative = wrong(tmp_path, text.replace("clients = 1", "clients = 1\npauses_s = [1, -2]"))
    assert (negative.detail or "").startswith('"workload.pauses_s.1": ')


def test_a_file_by_hand_needs_no_counts(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text(LEAST.replace("PARAMETER", "{between = [1, 9]}"))
    read = read_workload_file(path)
    assert read.transactions[0].calls == (CapturedCall("s", 1.0, (Between(1, 9),)),)
    assert read.statements[0].seen == Seen(0, 0.0, 0, 0, 0)


@pytest.mark.parametrize(
    "parameter",
    [
        "{}",
        "{null = false}",
        '{column = "a.b.c", constant = "x"}',
        '{new_key = "a", null = true}',
        '{range_from = 1, range_to = 2, column = "a.b.c"}',
    ],
)
def test_a_parameter_has_exactly_one_way(tmp_path: Path, parameter: str) -> None:
    error = wrong(tmp_path, LEAST.replace("PARAMETER", parameter))
    assert error.message == f'"{tmp_path / "w.toml"}" has a mistake'
    assert error.detail == (
        '"transaction.0.call.0.parameters.0": a parameter has exactly one of column, new_key, same_as, '
        "range_from, range_to, returned, between, letters, constant, one_of, ordinal, uuid, null"
    )


@pytest.mark.parametrize(
    ("parameter", "why"),
    [
        ('{constant = "x", plus = 1}', '"plus" belongs to "same_as" and "returned"'),
        ('{constant = "x", array = 2}', '"array" belongs to "column"'),
        ('{constant = "x", of = "s"}', '"of" belongs to "same_as" and "returned", which requires it'),
        ("{returned = 1}", '"of" belongs to "same_as" and "returned", which requires it'),
        ("{ordinal = true, plus = 1}", '"plus" belongs to "same_as" and "returned"'),
        ("{range_from = 1}", '"range_from" and "range_to" need the "column" of the range'),
        ('{range_to = 1, column = "a.b.c", array = 2}', '"array" belongs to "column"'),
        ('{column = "a.b.c", rows = 2}', '"widths", "rows" and "open" belong to "range_from" and "range_to"'),
        (
            '{range_from = 1, column = "a.b.c", widths = [1], rows = 2}',
            '"widths" and "rows" exclude each other',
        ),
        ('{constant = "x", weights = [1]}', '"weights" and "nulls" belong to "one_of"'),
        ('{constant = "x", distribution = "gaussian"}', '"distribution" belongs to "between"'),
        (
            '{one_of = ["a", "b"], weights = [1]}',
            '"weights" needs one weight per value of "one_of", and not all of them 0',
        ),
        (
            '{one_of = ["a"], weights = [0]}',
            '"weights" needs one weight per value of "one_of", and not all of them 0',
        ),
    ],
)
def test_what_belongs_to_another_parameter_is_refused_without_it(
    tmp_path: Path, parameter: str, why: str
) -> None:
    error = wrong(tmp_path, LEAST.replace("PARAMETER", parameter))
    assert error.detail == f'"transaction.0.call.0.parameters.0": {why}'


def test_mistakes_are_named_with_their_places(tmp_path: Path) -> None:
    text = LEAST.replace("PARAMETER", "{null = true}").replace("weight = 1", "weight = 0\nwieght = 1")
    assert wrong(tmp_path, text).detail == (
        '"transaction.0.weight": input should be greater than 0, found 0; unknown key "transaction.0.wieght"'
    )


@pytest.mark.parametrize(
    "expected", ["", "is = 1\nunchanged = true", "no_rows = true\nunchanged = true", "no_rows = false"]
)
def test_an_invariant_has_exactly_one_expectation(tmp_path: Path, expected: str) -> None:
    invariant = f'[[invariant]]\nname = "i"\nsql = "SELECT 1"\n{expected}\n'
    error = wrong(tmp_path, LEAST.replace("PARAMETER", "{uuid = true}") + invariant)
    assert (
        error.detail
        == '"invariant.0": an invariant has exactly one of "is", "unchanged = true", "no_rows = true"'
    )


def test_an_invariant_is_no_date_and_no_list(tmp_path: Path) -> None:
    for value in ("2026-01-01", "[1]", "nan"):
        invariant = f'[[invariant]]\nname = "i"\nsql = "SELECT 1"\nis = {value}\n'
        error = wrong(tmp_path, LEAST.replace("PARAMETER", "{uuid = true}") + invariant)
        assert (error.detail or "").startswith('"invariant.0.is'), value


def test_two_invariants_of_one_name_are_refused(tmp_path: Path) -> None:
    invariant = '[[invariant]]\nname = "i"\nsql = "SELECT 1"\nis = 1\n'
    error = wrong(tmp_path, LEAST.replace("PARAMETER", "{uuid = true}") + invariant * 2)
    assert error.message.endswith("has two invariants called i")


def test_two_statements_of_one_name_are_refused(tmp_path: Path) -> None:
    text = LEAST.replace("PARAMETER", "") + '[[statement]]\nname = "s"\nsql = "SELECT 2"\n'
    assert wrong(tmp_path, text).message == f'"{tmp_path / "w.toml"}" has two statements called s'


def test_a_file_that_is_not_there_and_one_that_is_not_toml_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="could not read") as caught:
        read_workload_file(tmp_path / "none.toml")
    assert caught.value.detail == "No such file or directory"
    assert wrong(tmp_path, "[workload").message == f'"{tmp_path / "w.toml"}" is not valid TOML'
    (tmp_path / "w.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not valid TOML"):
        read_workload_file(tmp_path / "w.toml")


def test_a_workload_is_named_by_its_file(tmp_path: Path) -> None:
    assert workload_name(tmp_path / "shop-1.toml") == "shop-1"
    for name in ("Shop.toml", "my shop.toml", "shop.v1.toml", "shop", "-shop.toml"):
        with pytest.raises(UsageError, match="is not a valid name of a workload file"):
            workload_name(tmp_path / name)
    with pytest.raises(UsageError, match="is not writable"):
        workload_name(tmp_path / "none" / "shop.toml")


@pytest.mark.parametrize("between", [" ", "\n"])
def test_a_statement_of_many_columns_is_read_again(tmp_path: Path, between: str) -> None:
    columns = ", ".join(f"t.column_{number}" for number in range(800))
    long = CapturedStatement("long", f"SELECT {columns}{between}FROM t", SEEN)
    written = replace(WORKLOAD, statements=(*WORKLOAD.statements, long))
    write_workload_file(tmp_path / "w.toml", written)
    assert read_workload_file(tmp_path / "w.toml") == written


def test_favoured_positions_of_many_parameters_are_read_again(tmp_path: Path) -> None:
    positions = tuple(round(bucket / 41, 9) for bucket in range(41))
    text = f"CALL p({', '.join(f'${number}' for number in range(1, 21))})"
    wide = CapturedStatement("wide", text, SEEN, favours=dict.fromkeys(range(1, 21), positions))
    written = replace(WORKLOAD, statements=(*WORKLOAD.statements, wide))
    write_workload_file(tmp_path / "w.toml", written)
    assert read_workload_file(tmp_path / "w.toml") == written
    assert "[statement.favours]\n1 = [0.0, 0.024390244, " in (tmp_path / "w.toml").read_text()


def test_a_file_that_takes_minutes_to_parse_is_refused(tmp_path: Path) -> None:
    error = wrong(tmp_path, "[workload]\n" + '"a".' * 100_000 + "a = 1\n")
    assert error.message == f'line 2 of "{tmp_path / "w.toml"}" has 100000 dots'
    assert wrong(tmp_path, " " * ((16 << 20) + 1)).message == f'"{tmp_path / "w.toml"}" is too large'
