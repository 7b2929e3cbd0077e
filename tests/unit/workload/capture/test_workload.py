"""A workload put together from what a server said and showed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pgdyno.model.experiments.captured import (
    Between,
    CapturedCall,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Constant,
    NewKey,
    Omitted,
    OneOf,
    RangeEnd,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Ended, NewCounts, Seen, SightedEnd, Sighting
from pgdyno.workload.capture.arguments import NamedObjects
from pgdyno.workload.capture.protocol import UNKNOWN_PROTOCOL
from pgdyno.workload.capture.ties import Inferred
from pgdyno.workload.capture.transactions import SeenTransaction
from pgdyno.workload.capture.workload import LogKnowledge, Observation, assemble

KEY = "public.accounts.id"
COLUMNS = (
    Column("public", "accounts", "id", "integer", is_key=True, is_visible=True),
    Column("public", "accounts", "balance", "integer", is_key=False, is_visible=True),
)
AMBIGUOUS = "operator is not unique: unknown + unknown"
FULL = (
    "pg_stat_statements was full and discarded statements during the capture: raise "
    "pg_stat_statements.max to keep all"
)
READ = "SELECT balance FROM accounts WHERE id = $1"
WRITE = "UPDATE accounts SET balance = balance + $1 WHERE id = $2"


ALL_COMMITTED = Ended(50, 0)


def captured(
    statements: Mapping[str, int],
    pairs: Sequence[tuple[str, str]] = (),
    types: Mapping[str, tuple[str, ...] | str] | None = None,
    *,
    nested_calls: int = 0,
    is_evicting: bool = False,
    ended: Ended = ALL_COMMITTED,
    ends: Mapping[str, Sequence[bool]] | None = None,
    several: Mapping[str, Sequence[int]] | None = None,
    betweens: Sequence[str] = (),
    columns: Sequence[Column] = COLUMNS,
    rows: int = 1,
) -> CapturedWorkload:
    """Assemble what a server has seen of statements, each with its calls; ``pairs`` followed each other."""
    ids = {sql: number for number, sql in enumerate(statements, 1)}
    counted = {
        ids[sql]: Seen(calls, 2.0 * calls, rows * calls, 4 * calls, 0) for sql, calls in statements.items()
    }
    sightings = [Sighting(1, f"at {number}", ids[sql]) for number, pair in enumerate(pairs) for sql in pair]
    sightings += [
        Sighting(2, f"at {number}", ids[sql], is_between=True) for number, sql in enumerate(betweens)
    ]
    return assemble(
        Observation(
            name="w",
            server_version="18.0",
            cluster=5,
            database="shop",
            search_path="public",
            seconds=60.0,
            clients=2.6,
            sessions=5,
            counted=NewCounts(counted, {}, nested_calls, ended, is_evicting),
            texts={number: sql for sql, number in ids.items()},
            types={ids[sql]: found for sql, found in (types or {}).items()},
            columns=columns,
            sightings=sightings,
            ended=[
                SightedEnd(frozenset({ids[sql]}), is_rolled_back)
                for sql, each in (ends or {}).items()
                for is_rolled_back in each
            ],
            calls_by_id={ids[sql]: calls for sql, calls in (several or {}).items()},
        )
    )


def test_a_block_is_a_transaction_whose_keys_are_the_same() -> None:
    found = captured(
        {"BEGIN": 50, WRITE: 50, READ: 50, "COMMIT": 50, "SELECT 1": 7},
        [("BEGIN", WRITE), (WRITE, READ), (READ, "COMMIT")],
    )
    block = CapturedTransaction(
        50,
        (
            CapturedCall("begin", 1.0),
            CapturedCall("update-accounts", 1.0, (Between(-100, 100), ColumnValue(KEY))),
            CapturedCall("select-accounts", 1.0, (SameValue(2, "update-accounts"),)),
            CapturedCall("commit", 1.0),
        ),
    )
    assert found.transactions == (block, CapturedTransaction(7, (CapturedCall("select", 1.0),)))
    assert {one.name: one.seen.calls for one in found.statements} == {
        "update-accounts": 50, "select-accounts": 50, "select": 7, "begin": 50, "commit": 50,
    }  # fmt: skip
    assert (found.clients, found.sessions, found.is_read_only, found.replayed_share) == (3, 5, False, 1.0)


def test_keys_that_are_looked_up_several_times_differ() -> None:
    found = captured({"BEGIN": 10, READ: 100, WRITE: 10, "COMMIT": 10}, [(READ, WRITE)])
    calls = found.transactions[0].calls
    assert [call.parameters[-1] for call in calls[1:3]] == [ColumnValue(KEY)] * 2
    assert calls[1].times == 10.0


def test_reads_that_are_rolled_back_and_writes_that_are_committed_stay_so() -> None:
    # As an ORM does it: reads end by ROLLBACK. Both ends were counted, and sessions seen after them.
    found = captured(
        {
            "BEGIN": 100,
            READ: 60,
            WRITE: 40,
            "INSERT INTO log VALUES (now())": 40,
            "COMMIT": 40,
            "ROLLBACK": 60,
        },
        [(READ, READ), *[(WRITE, "INSERT INTO log VALUES (now())")] * 60],
        betweens=[READ] * 60,
        ended=Ended(40, 60),
        ends={READ: [True] * 19 + [False], WRITE: [False] * 19 + [True]},
    )
    assert [(one.weight, [call.statement for call in one.calls]) for one in found.transactions] == [
        (60, ["begin", "select-accounts", "rollback"]),
        (40, ["begin", "update-accounts", "insert-log", "commit"]),
    ]
    assert {one.name: (one.sql, one.seen.calls) for one in found.statements if not one.is_prepared} == {
        "begin": ("BEGIN", 100), "commit": ("COMMIT", 40), "rollback": ("ROLLBACK", 60),
    }  # fmt: skip
    assert found.ended == Ended(40, 60)
    assert not any("rolled back" in note for note in found.notes)


def test_rollbacks_that_no_session_was_seen_in_are_drawn_and_noted() -> None:
    found = captured({"BEGIN": 50, WRITE: 50, READ: 50, "COMMIT": 35, "ROLLBACK": 15}, [(WRITE, READ)])
    assert [(one.weight, one.calls[-1].statement) for one in found.transactions] == [
        (35, "commit"), (15, "rollback"),
    ]  # fmt: skip
    assert (
        "30 % of the blocks (BEGIN …) were rolled back, the others committed; which ones is unknown, and "
        "drawn at random"
    ) in found.notes


def test_the_database_counts_rollbacks_that_were_prepared() -> None:
    found = captured({"BEGIN": 1, WRITE: 50, READ: 50, "ROLLBACK": 1}, [(WRITE, READ)], ended=Ended(0, 50))
    assert [[call.statement for call in one.calls] for one in found.transactions] == [
        ["begin", "update-accounts", "select-accounts", "rollback"]
    ]


def test_a_text_with_several_query_ids_has_a_note() -> None:
    other = replace(COLUMNS[0], schema="tenant", is_visible=False)
    found = captured({READ: 10}, several={READ: (1, 7, 2)}, columns=(*COLUMNS, other))
    assert (
        "select-accounts: the server counted 3 statements with this text, with 70 %, 20 % and 10 % of the "
        "calls, perhaps on tables of other schemas; all of them are replayed with search_path = public"
    ) in [note.replace("\N{NO-BREAK SPACE}", " ") for note in found.notes]


def test_a_text_of_one_table_with_several_query_ids_needs_none() -> None:
    found = captured({READ: 10}, several={READ: (5, 5)}, ended=Ended(10, 0))
    assert not any("counted" in note for note in found.notes)


def test_blocks_without_a_counted_begin_get_one() -> None:
    found = captured({READ: 10, WRITE: 10}, [(READ, WRITE)])
    assert [call.statement for call in found.transactions[0].calls] == [
        "begin", "select-accounts", "update-accounts", "commit",
    ]  # fmt: skip
    assert {one.name: one.sql for one in found.statements if one.name in {"begin", "commit"}} == {
        "begin": "BEGIN",
        "commit": "COMMIT",
    }


def test_what_is_not_replayed_stands_in_the_workload_with_its_reason() -> None:
    found = captured(
        {READ: 90, "VACUUM accounts": 4, "SELECT $1 + $2": 5, "SELECT f($1)": 1},
        types={"SELECT $1 + $2": AMBIGUOUS, "SELECT f($1)": ("point",)},
    )
    assert {(one.sql, one.why) for one in found.omitted} == {
        ("VACUUM accounts …", "a utility statement, which changes more than rows"),
        (
            "SELECT $1 + $2",
            f"the server cannot prepare its text in the statistics: {AMBIGUOUS}",
        ),
        ("SELECT f($1)", "no information about the values of $1 (point)"),
    }
    assert found.replayed_share == 0.9


def test_statements_about_statistics_are_nobodys_workload() -> None:
    found = captured(
        {READ: 1, "SELECT calls FROM pg_stat_statements": 2, "SELECT * FROM pg_stat_activity": 3}
    )
    assert [one.name for one in found.statements] == ["select-accounts"]
    assert found.omitted == ()


def test_equal_names_are_numbered_by_calls() -> None:
    found = captured({READ: 5, "SELECT balance FROM accounts": 50})
    assert {one.name: one.sql for one in found.statements} == {
        "select-accounts": "SELECT balance FROM accounts",
        "select-accounts-2": READ,
    }


def test_what_is_not_known_is_said() -> None:
    found = captured(
        {"SELECT f($1)": 5},
        types={"SELECT f($1)": ("integer",)},
        nested_calls=12,
        is_evicting=True,
        ended=Ended(5, 0),
    )
    assert found.notes == (
        "12 calls within functions are replayed only as part of these functions",
        FULL,
        "no transaction was observed in progress: each statement is treated as a transaction",
        UNKNOWN_PROTOCOL,
        "select: values of $1 are drawn by type only",
    )


def test_transactions_that_the_database_counts_and_no_kind_has_are_noted_and_assumed() -> None:
    more = captured({READ: 30}, ended=Ended(100, 0))
    assert (
        "the database counted 70 more transactions than are replayed: their statements failed, were not "
        "counted, or are replayed in blocks (BEGIN …)"
    ) in more.notes
    assert more.assumed_share == 1.0  # 70 of unknown statements are more than the 30 replayed
    fewer = captured({READ: 100}, ended=Ended(60, 0))
    assert (
        "the database counted 40 fewer transactions than are replayed: some statements that are replayed as "
        "transactions ran in blocks (BEGIN …)"
    ) in fewer.notes
    assert fewer.assumed_share == 0.4
    assert captured({READ: 100, "VACUUM accounts": 40}, ended=Ended(100, 0)).assumed_share == 0.0


def test_a_lost_text_is_said() -> None:
    seen = Seen(3, 1.0, 3, 3, 0)
    counted = NewCounts({9: seen}, {}, 0, Ended(3, 0), is_evicting=False)
    observed = Observation("w", "18.0", 5, "shop", "public", 60.0, 1.0, None, counted, {}, {}, (), ())
    assert assemble(observed).omitted == (
        Omitted("(query id 9)", "the server no longer has its text, or it is not UTF-8", seen),
    )


def observed(texts: Mapping[int, str], **known: Any) -> Observation:
    """Observe ten calls of each statement, one row each."""
    ended = Ended(10 * len(texts), 0)
    counted = NewCounts({one: Seen(10, 20.0, 10, 40, 0) for one in texts}, {}, 0, ended, is_evicting=False)
    types: dict[int, tuple[str, ...] | str] = dict.fromkeys(texts, ("text",) * 3)
    return Observation(
        "w", "18.0", 5, "shop", "public", 60.0, 1.0, None, counted, texts, types, COLUMNS, (), **known
    )


@pytest.mark.parametrize(("writing", "is_read_only"), [({"nextval"}, True), ({"nextval", "log"}, False)])
def test_a_workload_only_reads_if_none_of_its_functions_may_write(
    writing: Collection[str],
    is_read_only: bool,  # noqa: FBT001
) -> None:
    texts = {1: "SELECT log(balance) FROM accounts WHERE id = $1", 2: READ}
    assert assemble(observed(texts, writing=writing)).is_read_only is is_read_only


def test_sequences_settings_and_types_are_assumed_with_notes() -> None:
    named = NamedObjects({"public.accounts_id_seq": KEY}, {"app.id": KEY}, ("public.accounts",))
    texts = {1: "INSERT INTO accounts VALUES (nextval($1), $2)", 2: "SELECT $1::integer + $2::integer"}
    found = assemble(observed(texts, named=named, assumed={2: "assumed types of parameters: $1 integer"}))
    assert found.notes[-5:] == (
        (
            "policies of public.accounts read app.id, which no replayed statement sets: statements on these "
            "tables may fail, or find no rows"
        ),
        UNKNOWN_PROTOCOL,
        "insert-accounts: sequence $1 is assumed to be public.accounts_id_seq, the only one of the table",
        "select: values of $1, $2 are drawn by type only",
        "select: assumed types of parameters: $1 integer",
    )
    locked = assemble(observed(texts, named=NamedObjects(locked=("public.accounts", "app.Docs"))))
    assert "policies of public.accounts, app.Docs were not read: a table in them was locked" in locked.notes
    setting = assemble(observed({1: "SELECT set_config($1, $2, $3)"}, named=named))
    assert not any("policies of" in note for note in setting.notes)


def test_an_unknown_setting_is_the_reason_why_a_statement_is_not_replayed() -> None:
    found = assemble(observed({1: READ, 2: "SELECT set_config($1, $2, $3)", 3: "SELECT nextval($1)"}))
    assert [(one.sql, one.why) for one in found.omitted] == [
        ("SELECT set_config($1, $2, $3)", "the name of the setting $1 that set_config sets is unknown"),
        ("SELECT nextval($1)", "the sequence $1 is unknown"),
    ]


def test_a_text_of_statistics_that_cannot_be_parsed_is_shown() -> None:
    found = assemble(observed({1: READ, 2: "SELECT json_object($1 VALUE a) FROM t"}))
    assert [(one.sql, one.why) for one in found.omitted] == [
        ("SELECT json_object($1 VALUE a) FROM t", "syntax not supported")
    ]


def test_the_range_of_an_aggregate_is_as_wide_as_others_of_its_column() -> None:
    wide = "SELECT balance FROM accounts WHERE id BETWEEN $1 AND $2"
    summed = "SELECT sum(balance) FROM accounts WHERE id BETWEEN $1 AND $2"
    counted = {1: Seen(10, 20.0, 1000, 40, 0), 2: Seen(10, 20.0, 10, 40, 0)}
    observed = Observation(
        "w", "18.0", 5, "shop", "public", 60.0, 1.0, None,
        NewCounts(counted, {}, 0, Ended(20, 0), is_evicting=False),
        {1: wide, 2: summed}, {}, COLUMNS, (),
    )  # fmt: skip
    found = assemble(observed)
    ends = {call.statement: call.parameters[1] for one in found.transactions for call in one.calls}
    assert ends == {"select-accounts": SameValue(1, plus=99), "select-accounts-2": SameValue(1, plus=99)}
    assert any("the width of its range is unknown" in note for note in found.notes)


def logged(
    statements: Mapping[str, int],
    transactions: Sequence[tuple[float, Mapping[str, float]]],
    kept: Mapping[str, Mapping[int, Mapping[str | None, int]]] | None = None,
    full: Sequence[tuple[str, int]] = (),
    earlier: Mapping[tuple[str, int], Sequence[tuple[str, int]]] | None = None,
    steps: Mapping[tuple[str, int], int] | None = None,
) -> CapturedWorkload:
    """Assemble what a log tells of statements, each with its calls."""
    ids = {sql: number for number, sql in enumerate(statements, 1)}
    counted = {ids[sql]: Seen(calls, 2.0 * calls, 0, 0, 0) for sql, calls in statements.items()}
    kinds = [
        SeenTransaction(count, tuple((ids[sql], times) for sql, times in calls.items()), len(calls) > 1)
        for count, calls in transactions
    ]
    log = LogKnowledge(
        transactions=kinds,
        numbers={},
        kept={ids[sql]: values for sql, values in (kept or {}).items()},
        full={(ids[sql], number) for sql, number in full},
        earlier={
            (ids[sql], number): [(ids[other], its) for other, its in places]
            for (sql, number), places in (earlier or {}).items()
        },
        inferred=Inferred(steps={(ids[sql], number): step for (sql, number), step in (steps or {}).items()}),
        notes=("a note",),
    )
    return assemble(
        Observation(
            "w", "18.0", 5, "shop", "public", 60.0, 2.0, 3,
            NewCounts(counted, {}, 0, Ended(0, 0), is_evicting=False),
            {number: sql for sql, number in ids.items()}, {}, COLUMNS, (), log,
        )
    )  # fmt: skip


def test_a_number_that_is_inferred_from_a_query_is_noted() -> None:
    read = "SELECT balance FROM accounts WHERE id = $1"
    write = "UPDATE accounts SET balance = $1 WHERE id = $2"
    block = {"BEGIN": 1.0, read: 1.0, write: 1.0, "COMMIT": 1.0}
    steps = {(write, 1): 1}
    found = logged(dict.fromkeys(block, 10), [(10, block)], steps=steps)
    assert found.transactions[0].calls[2].parameters[0] == ReturnedValue(1, "select-accounts", plus=1)
    assert (
        "update-accounts: values are inferred to be those of earlier parameters or results of the "
        "transaction plus a constant, or to number the calls; a log has no results"
    ) in found.notes


def test_transactions_of_a_log_are_as_it_tells_them() -> None:
    block = {"BEGIN": 1.0, READ: 2.0, WRITE: 1.0, "VACUUM accounts": 1.0, "ROLLBACK": 1.0}
    calls = {"BEGIN": 10, READ: 27, WRITE: 10, "ROLLBACK": 10, "VACUUM accounts": 10}
    found = logged(calls, [(10, block), (7, {READ: 1.0})])
    assert [
        (one.weight, [(call.statement, call.times) for call in one.calls]) for one in found.transactions
    ] == [
        (10, [("begin", 1.0), ("select-accounts", 2.0), ("update-accounts", 1.0), ("rollback", 1.0)]),
        (7, [("select-accounts", 1.0)]),
    ]
    assert (found.counted, found.notes) == (("calls",), ("a note",))
    assert [one.sql for one in found.omitted] == ["VACUUM accounts …"]
    assert not found.has_values


def test_a_statement_that_takes_no_parameter_is_left_out_if_it_had_a_constant() -> None:
    snapshot, level = "SET TRANSACTION SNAPSHOT $1", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"
    block = {"BEGIN": 1.0, level: 1.0, snapshot: 1.0, "SAVEPOINT $1": 1.0, READ: 1.0, "COMMIT": 1.0}
    found = logged(dict.fromkeys(block, 4), [(4, block)])
    assert [one.sql for one in found.statements] == ["BEGIN", level, "SAVEPOINT pgdyno", READ, "COMMIT"]
    assert [(one.sql, one.why) for one in found.omitted] == [
        ("SET TRANSACTION …", "its constants are unknown and cannot be replaced by parameters")
    ]


def test_kept_values_stand_in_place_of_columns_but_not_of_ties_and_new_keys() -> None:
    insert = "INSERT INTO accounts VALUES ($1, $2)"
    block = {"BEGIN": 1.0, READ: 1.0, WRITE: 1.0, insert: 1.0, "COMMIT": 1.0}
    kept: dict[str, dict[int, dict[str | None, int]]] = {
        READ: {1: {"7": 3, "8": 1}},
        WRITE: {1: {"5": 2, None: 1}, 2: {"7": 3}},
        insert: {1: {"9": 1}, 2: {None: 4}},
    }
    [found] = logged(dict.fromkeys(block, 4), [(4, block)], kept).transactions
    assert [call.parameters for call in found.calls[1:4]] == [
        (OneOf(("7", "8"), (3.0, 1.0)),),
        (OneOf(("5",), (2.0,), 1.0), SameValue(1, "select-accounts")),
        (NewKey(KEY), Constant(None)),
    ]


def test_the_end_of_a_range_depends_on_its_beginning_where_values_are_kept() -> None:
    ranged = "SELECT id FROM accounts WHERE balance BETWEEN $1 AND $2"
    kept: dict[str, dict[int, dict[str | None, int]]] = {ranged: {1: {"7": 3}, 2: {"9": 3}}}
    found = logged({ranged: 4}, [(4, {ranged: 1.0})], kept)
    end = RangeEnd(1, "public.accounts.balance")
    assert found.transactions[0].calls[0].parameters == (OneOf(("7",)), end)
    assert found.notes[-1] == (
        "select-accounts: the width of its range is unknown; any end after its beginning is used"
    )


def test_an_unknown_width_is_as_many_rows_as_ranges_of_the_column_have() -> None:
    ranged = "SELECT id FROM accounts WHERE balance BETWEEN $1 AND $2"
    summed = "SELECT sum(balance) FROM accounts WHERE balance BETWEEN $1 AND $2"
    found = captured({ranged: 10, summed: 10}, [])
    ends = {call.statement: call.parameters[1] for one in found.transactions for call in one.calls}
    assert set(ends.values()) == {RangeEnd(1, "public.accounts.balance", rows=1)}
    assert any(
        note.endswith("the width of its range is unknown; that of other ranges of the column is used")
        for note in found.notes
    )


def test_a_width_of_other_ranges_keeps_the_side_of_its_end() -> None:
    ranged = "SELECT id FROM accounts WHERE id BETWEEN $1 AND $2"
    counted = "SELECT count(*) FROM accounts WHERE id <= $1 AND id >= $2"
    found = captured({ranged: 10, counted: 10}, [], rows=100)
    ends = {call.parameters[1] for one in found.transactions for call in one.calls}
    assert ends == {SameValue(1, plus=99), SameValue(1, plus=-99)}


def test_a_range_of_keys_without_a_known_width_is_a_single_value() -> None:
    found = captured({"SELECT count(*) FROM accounts WHERE id BETWEEN $1 AND $2": 10}, [])
    assert found.transactions[0].calls[0].parameters[1] == SameValue(1)
    assert found.notes[-1] == ("select-accounts: the width of its range is unknown; a single value is used")


def test_an_argument_with_kept_values_needs_no_assumption() -> None:
    truncate = "SELECT date_trunc($1, now())"
    kept: dict[str, dict[int, dict[str | None, int]]] = {truncate: {1: {"month": 3}}}
    found = logged({truncate: 4}, [(4, {truncate: 1.0})], kept)
    assert found.transactions[0].calls[0].parameters == (OneOf(("month",)),)
    assert found.notes == ("a note",)
    assert logged({truncate: 4}, [(4, {truncate: 1.0})]).notes[-1] == (
        "select: field $1 is unknown: day is used"
    )


def test_a_returned_key_stays_one_where_values_are_kept() -> None:
    insert = "INSERT INTO accounts (balance) VALUES ($1) RETURNING id"
    block = {"BEGIN": 1.0, insert: 1.0, WRITE: 1.0, "COMMIT": 1.0}
    kept: dict[str, dict[int, dict[str | None, int]]] = {WRITE: {1: {"5": 2}, 2: {"7": 3}}}
    [found] = logged(dict.fromkeys(block, 4), [(4, block)], kept).transactions
    assert found.calls[2].parameters == (OneOf(("5",)), ReturnedValue(1, "insert-accounts"))


def test_a_parameter_of_too_many_values_is_drawn_from_its_column() -> None:
    found = logged({READ: 1}, [(1, {READ: 1.0})], {READ: {1: {"7": 1}}}, [(READ, 1)])
    assert found.transactions[0].calls[0].parameters == (ColumnValue(KEY),)


LOCK = "SELECT pg_advisory_xact_lock($1)"


def test_parameters_that_had_the_same_values_are_the_same_and_drawn_as_the_one_that_is_known_best() -> None:
    block = {"BEGIN": 1.0, LOCK: 1.0, WRITE: 1.0, READ: 1.0, "COMMIT": 1.0}
    earlier = {(WRITE, 1): [], (WRITE, 2): [(LOCK, 1)], (READ, 1): [(LOCK, 1), (WRITE, 2)]}
    [found] = logged(dict.fromkeys(block, 4), [(4, block)], earlier=earlier).transactions
    assert [call.parameters for call in found.calls[1:4]] == [
        (ColumnValue(KEY),),
        (Between(-100, 100), SameValue(1, "select")),
        (SameValue(1, "select"),),
    ]


def test_keys_that_a_log_has_shown_to_differ_are_not_the_same() -> None:
    block = {"BEGIN": 1.0, WRITE: 1.0, READ: 1.0, "COMMIT": 1.0}
    [found] = logged(dict.fromkeys(block, 4), [(4, block)], earlier={(READ, 1): []}).transactions
    assert found.calls[2].parameters == (ColumnValue(KEY),)


def test_values_of_a_list_differ() -> None:
    several = "SELECT balance FROM accounts WHERE id IN ($1, $2)"
    found = captured({"BEGIN": 50, WRITE: 50, several: 50, "COMMIT": 50}, [(WRITE, several)])
    assert found.transactions[0].calls[1].parameters[1] == ColumnValue(KEY)
    assert found.transactions[0].calls[2].parameters == (SameValue(2, "update-accounts"), ColumnValue(KEY))


def test_a_server_that_shows_no_statements_of_sessions_is_named() -> None:
    counted = NewCounts({1: Seen(3, 1.0, 3, 3, 0)}, {}, 0, Ended(3, 0), is_evicting=False)
    observed = Observation(
        "w", "13.23", 5, "shop", "public", 60.0, 1.0, None, counted, {1: READ}, {}, COLUMNS, ()
    )
    assert assemble(observed).notes[0] == (
        "PostgreSQL 13 does not show which statement a session runs, a log (--log) does: each statement is "
        "treated as a transaction"
    )
