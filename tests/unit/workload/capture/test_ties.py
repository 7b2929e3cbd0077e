"""Keys of a transaction that are the same value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.model.experiments.captured import (
    CapturedCall,
    ColumnValue,
    Letters,
    NewKey,
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.workload.capture.parameters import UNCHANGED
from pgdyno.workload.capture.row_use import RowUse
from pgdyno.workload.capture.ties import Inferred, inferred, tied, tied_as_seen


def column(path: str, references: str | None = None, *, is_key: bool = False) -> Column:
    schema, table, name = path.split(".")
    return Column(schema, table, name, "bigint", is_key=is_key, is_visible=True, references=references)


CUSTOMER, ORDER, PRODUCT, CART = "s.customers.id", "s.orders.id", "s.products.id", "s.carts.customer"
OWNER, LINE, STATE = "s.orders.customer", "s.lines.order", "s.orders.state"
COLUMNS = (
    column(CUSTOMER, is_key=True),
    column(ORDER, is_key=True),
    column(PRODUCT, is_key=True),
    column(CART, CUSTOMER, is_key=True),
    column(OWNER, CUSTOMER),
    column(LINE, ORDER),
    column(STATE),
)
NEW_ORDER = RowUse((None, COLUMNS[1]), is_new=True)


def call(name: str, *drawn: Parameter, times: float = 1.0) -> CapturedCall:
    return CapturedCall(name, times, drawn)


def parameters(*calls: CapturedCall, **returned: RowUse) -> list[tuple[Parameter, ...]]:
    return [one.parameters for one in tied(calls, returned, COLUMNS)]


def test_a_key_that_is_named_twice_is_the_same() -> None:
    found = parameters(
        call("read", ColumnValue(ORDER)), call("write", ColumnValue(STATE), ColumnValue(ORDER))
    )
    assert found[1] == (ColumnValue(STATE), SameValue(1, "read"))


def test_a_column_that_refers_to_a_key_counts_as_that_key() -> None:
    calls = [call(name, ColumnValue(path)) for name, path in (("a", CUSTOMER), ("b", OWNER), ("c", CART))]
    assert parameters(*calls)[1:] == [(SameValue(1, "a"),)] * 2


def test_the_keys_of_a_list_differ_and_are_those_of_another_list_in_their_order() -> None:
    three = (ColumnValue(PRODUCT),) * 3
    found = parameters(call("first", *three), call("second", *three[:2]), call("third", *three, *three[:1]))
    assert found[0] == three
    assert found[1] == (SameValue(1, "first"), SameValue(2, "first"))
    assert found[2] == (*(SameValue(number, "first") for number in (1, 2, 3)), ColumnValue(PRODUCT))


def test_an_inserted_row_has_its_key_from_what_the_insert_returned() -> None:
    found = parameters(
        call("find", ColumnValue(ORDER)),
        call("order", ColumnValue(OWNER)),
        call("line", ColumnValue(LINE), ColumnValue(PRODUCT), times=3.0),
        call("pay", ColumnValue(ORDER)),
        order=NEW_ORDER,
    )
    returned = ReturnedValue(2, "order")
    assert found[2:] == [(returned, ColumnValue(PRODUCT)), (returned,)]


def test_a_key_that_the_transaction_makes_itself_is_that_of_the_rows_that_refer_to_it() -> None:
    found = parameters(call("order", NewKey(ORDER)), call("line", ColumnValue(LINE), times=3.0))
    assert found == [(NewKey(ORDER),), (SameValue(1, "order"),)]


def test_a_row_that_is_inserted_takes_the_place_of_one_that_was_deleted() -> None:
    deleting = RowUse(is_deleted=True)
    delete, insert = call("delete", ColumnValue(ORDER)), call("insert", ColumnValue(STATE), NewKey(ORDER))
    assert parameters(delete, insert, delete=deleting)[1] == (ColumnValue(STATE), SameValue(1, "delete"))
    assert parameters(delete, insert)[1] == (ColumnValue(STATE), NewKey(ORDER))
    several = call("delete", ColumnValue(ORDER), times=2.0)
    assert parameters(several, insert, delete=deleting)[1] == (ColumnValue(STATE), NewKey(ORDER))


def test_a_row_that_was_deleted_is_not_used_again() -> None:
    lines, order = call("lines", ColumnValue(LINE)), call("order", ColumnValue(ORDER))
    insert, write = call("insert", NewKey(ORDER)), call("write", ColumnValue(ORDER))
    deleting = {"lines": RowUse(is_deleted=True), "order": RowUse(is_deleted=True)}
    found = parameters(lines, order, write, insert, write, **deleting)
    same = (SameValue(1, "lines"),)
    # The order is that of its lines, which were deleted before. Then it is gone until it is inserted again.
    assert found == [
        (ColumnValue(LINE),),
        same,
        (ColumnValue(ORDER),),
        (SameValue(1, "order"),),
        (SameValue(1, "insert"),),
    ]


def test_a_row_that_is_read_gives_its_key_unless_it_was_named_before() -> None:
    read = RowUse((COLUMNS[1],))
    by_state = call("read", ColumnValue(STATE)), call("write", ColumnValue(ORDER))
    assert parameters(*by_state, read=read)[1] == (ReturnedValue(1, "read"),)
    by_key = call("read", ColumnValue(ORDER)), call("write", ColumnValue(ORDER))
    assert parameters(*by_key, read=read)[1] == (SameValue(1, "read"),)


def test_keys_that_are_looked_up_several_times_differ() -> None:
    several = call("read", ColumnValue(ORDER), times=4.0)
    assert parameters(several, call("write", ColumnValue(ORDER))) == [(ColumnValue(ORDER),)] * 2
    assert parameters(call("write", ColumnValue(ORDER)), several) == [(ColumnValue(ORDER),)] * 2


def test_references_that_go_round_in_circles_end() -> None:
    circle = (column("s.a.id", "s.b.id", is_key=True), column("s.b.id", "s.a.id", is_key=True))
    calls = [call(name, ColumnValue("s.a.id")) for name in ("first", "second")]
    assert [one.parameters for one in tied(calls, {}, circle)][1] == (SameValue(1, "first"),)


def test_a_loop_that_finds_or_makes_rows_uses_those_of_the_same_turn() -> None:
    find, make = call("find", ColumnValue(STATE)), call("make", ColumnValue(OWNER))
    line = call("line", ColumnValue(LINE))
    turns = [find, line, find, make, line, find, line]
    found = parameters(*turns, find=RowUse((COLUMNS[1],)), make=NEW_ORDER)
    from_find, from_make = (ReturnedValue(1, "find"),), (ReturnedValue(2, "make"),)
    assert [found[at] for at in (1, 4, 6)] == [from_find, from_make, from_find]


def test_a_loop_over_lines_keeps_the_order_that_was_made_before_it() -> None:
    order, find, line = (
        call("order", ColumnValue(OWNER)),
        call("find", ColumnValue(STATE)),
        call("line", ColumnValue(LINE)),
    )
    found = parameters(order, find, line, find, line, order=NEW_ORDER, find=RowUse((COLUMNS[1],)))
    assert [found[at] for at in (2, 4)] == [(ReturnedValue(2, "order"),)] * 2


def test_a_statement_in_a_loop_uses_another_key_in_each_turn() -> None:
    read, write = call("read", ColumnValue(ORDER)), call("write", ColumnValue(ORDER))
    by_key = parameters(read, write, read, write, read=RowUse((COLUMNS[1],)))
    assert by_key == [(ColumnValue(ORDER),)] * 4
    by_state = call("read", ColumnValue(STATE))
    found = parameters(by_state, write, write, by_state, write, read=RowUse((COLUMNS[1],)))
    returned = (ReturnedValue(1, "read"),)
    assert [found[at] for at in (1, 2, 4)] == [returned, (ColumnValue(ORDER),), returned]


_READ, _WRITE, _AUDIT = 1, 2, 3


def repeated(
    earlier: Mapping[tuple[int, int], Sequence[tuple[int, int]]], *numbered: int, is_once: bool = False
) -> list[Parameter]:
    """Return the only parameter of each call, tied to ``earlier`` ones; ``is_once``: to the only call."""
    names = {_READ: "read", _WRITE: "write", _AUDIT: "audit"}
    calls = [(one, call(names[one], ColumnValue(ORDER))) for one in numbered]
    again = {} if is_once else earlier
    return [one.parameters[0] for one in tied_as_seen(calls, frozenset(), earlier, again=again)]


def test_a_value_in_a_loop_is_that_of_the_same_turn() -> None:
    own, read = ColumnValue(ORDER), SameValue(1, "read")
    same = {(_WRITE, 1): [(_READ, 1)]}
    assert repeated(same, _READ, _WRITE, _READ, _WRITE) == [own, read, own, read]
    assert repeated(same, _WRITE, _READ, _WRITE) == [own, own, read]  # nothing was read before the first
    assert repeated(same, _READ, _WRITE, _READ, _WRITE, is_once=True) == [own, read, own, own]


def test_a_value_is_repeated_from_a_call_that_is_the_latest_of_its_statement() -> None:
    same = {(_WRITE, 1): [(_READ, 1)], (_AUDIT, 1): [(_WRITE, 1)]}
    found = repeated(same, _READ, _WRITE, _AUDIT, _READ, _AUDIT)
    own, read = ColumnValue(ORDER), SameValue(1, "read")
    assert found == [own, read, read, own, SameValue(1, "write")]


def test_a_value_that_no_row_may_have_decides_how_it_is_drawn() -> None:
    find, insert = call("find", ColumnValue(STATE)), call("insert", Letters(20, 20))
    same = {(_WRITE, 1): [(_READ, 1)]}
    found = tied_as_seen([(_READ, find), (_WRITE, insert)], frozenset({STATE}), same, new={(_WRITE, 1)})
    assert [one.parameters for one in found] == [(Letters(20, 20),), (SameValue(1, "find"),)]


def test_a_row_that_is_deleted_and_inserted_again_keeps_its_key() -> None:
    delete, insert = call("delete", ColumnValue(ORDER)), call("insert", NewKey(ORDER))
    calls, same = [(_READ, delete), (_WRITE, insert)], {(_WRITE, 1): [(_READ, 1)]}
    new, keys = {(_WRITE, 1)}, frozenset({ORDER})
    found = [one.parameters for one in tied_as_seen(calls, keys, same, new, deleting={_READ})]
    assert found == [(ColumnValue(ORDER),), (SameValue(1, "delete"),)]
    found = [one.parameters for one in tied_as_seen(calls, keys, same, new)]  # looked for, and made
    assert found == [(NewKey(ORDER),), (SameValue(1, "delete"),)]


def test_a_number_that_no_check_constraint_refuses_is_not_drawn_elsewhere() -> None:
    # UPDATE accounts SET balance = balance - $1; INSERT INTO history (delta) VALUES ($1)
    calls = [(_READ, call("update", UNCHANGED)), (_WRITE, call("insert", ColumnValue("s.history.delta")))]
    found = tied_as_seen(calls, frozenset(), {(_WRITE, 1): [(_READ, 1)]})
    assert [one.parameters for one in found] == [(UNCHANGED,), (SameValue(1, "update"),)]


_TOTAL = "s.orders.total"
_FROM_ON = ColumnValue(_TOTAL), RangeEnd(1, _TOTAL, (5.0, 9.0))


def test_equal_ranges_have_both_ends_in_common() -> None:
    # SELECT … WHERE total BETWEEN $1 AND $2; SELECT count(*) … WHERE total <= $1 AND total >= $2
    ends = ColumnValue(_TOTAL), RangeEnd(1, _TOTAL, (5.0, 9.0), is_lower=True)
    page, count = call("page", *_FROM_ON), call("count", *ends)
    crossed = {(_WRITE, 1): [(_READ, 2)], (_WRITE, 2): [(_READ, 1)]}
    found = [one.parameters for one in tied_as_seen([(_READ, page), (_WRITE, count)], frozenset(), crossed)]
    assert found == [_FROM_ON, (SameValue(2, "page"), SameValue(1, "page"))]


def test_the_end_of_a_range_is_drawn_at_its_place() -> None:
    page, write = call("page", *_FROM_ON), call("write", ColumnValue(ORDER))
    same = {(_WRITE, 1): [(_READ, 2)]}
    found = tied_as_seen([(_READ, page), (_WRITE, write)], frozenset({ORDER}), same)
    assert [one.parameters for one in found] == [_FROM_ON, (SameValue(2, "page"),)]
    before = tied_as_seen([(_WRITE, write), (_READ, page)], frozenset(), {(_READ, 2): [(_WRITE, 1)]})
    assert [one.parameters for one in before] == [
        (ColumnValue(ORDER),), (ColumnValue(_TOTAL), SameValue(1, "write")),
    ]  # fmt: skip
    new = call("insert", NewKey(ORDER))  # no row may have it: the end of a range may be in one
    found = tied_as_seen([(_READ, page), (_WRITE, new)], frozenset({ORDER}), same)
    assert [one.parameters for one in found] == [_FROM_ON, (NewKey(ORDER),)]


_LINES = 7
_STEADY = {(_LINES, 1): [(_LINES, 1)]}


def test_a_parameter_that_is_the_same_in_all_turns_of_a_loop_is_drawn_in_the_first_one() -> None:
    # SELECT id FROM orders WHERE state = $1; then in each turn INSERT INTO lines (order, …) and an UPDATE
    order, line = call("order", ColumnValue(STATE)), call("line", ColumnValue(LINE), ColumnValue(PRODUCT))
    stock = call("stock", ColumnValue(PRODUCT))
    turns = [(1, order), *[(_LINES, line), (2, stock)] * 3]
    seen = tied_as_seen(turns, frozenset(), {}, again=_STEADY)
    uses = {"order": RowUse((COLUMNS[1],))}
    found = [one.parameters for one in tied(seen, uses, COLUMNS, steady={("line", 1)})]
    again = (SameValue(1, "line"), ColumnValue(PRODUCT))
    assert [found[at] for at in (1, 3, 5)] == [
        (ReturnedValue(1, "order"), ColumnValue(PRODUCT)), again, again,
    ]  # fmt: skip


def test_calls_one_after_the_other_share_a_row_if_they_did() -> None:
    order, lines = call("order", ColumnValue(STATE)), call("line", ColumnValue(LINE), times=2.0)
    uses = {"order": RowUse((COLUMNS[1],))}
    found = tied([order, lines], uses, COLUMNS, steady={("line", 1)})
    assert [one.parameters for one in found][1] == (ReturnedValue(1, "order"),)
    assert parameters(order, lines, **uses)[1] == (ColumnValue(LINE),)  # several orders: unknown which


def test_the_calls_of_a_loop_are_numbered_and_follow_from_the_result_of_their_turn() -> None:
    known = Inferred(steps={(_WRITE, 1): 1}, ordinals={(_AUDIT, 1)})
    read, write = call("read", ColumnValue(STATE)), call("write", ColumnValue(NEXT))
    line = call("line", ColumnValue(STATE))
    calls = [(_READ, read), (_WRITE, write), (_AUDIT, line)] * 2
    found = [one.parameters[0] for one in inferred(calls, {"read": RowUse((column(NEXT),))}, known)]
    assert found == [ColumnValue(STATE), ReturnedValue(1, "read", plus=1), Ordinal()] * 2


NEXT = "s.districts.next"
_SELECT, _UPDATE, _ORDER, _LINE = 1, 2, 3, 4


def test_a_number_that_was_read_and_raised_is_that_of_the_order_and_its_lines() -> None:
    # As TPC-C does: SELECT next; UPDATE next = $1; INSERT the order with the number before; INSERT its lines.
    district, number = ColumnValue("s.districts.id"), ColumnValue("s.orders.number")
    calls = [
        (_SELECT, call("select", district)),
        (_UPDATE, call("update", ColumnValue(NEXT), district)),
        (_ORDER, call("order", number, district)),
        (_LINE, call("line", ColumnValue("s.lines.number"), ColumnValue("s.lines.position"), times=10.2)),
    ]
    same = {(_UPDATE, 2): [(_SELECT, 1)], (_ORDER, 2): [(_SELECT, 1)], (_LINE, 1): [(_ORDER, 1)]}
    known = Inferred(
        shifted={(_ORDER, 1): ((_UPDATE, 1), -1)}, steps={(_UPDATE, 1): 1}, ordinals={(_LINE, 2)}
    )
    as_seen = tied_as_seen(calls, frozenset(), same)
    numbered = list(zip((_SELECT, _UPDATE, _ORDER, _LINE), as_seen, strict=True))
    found = [one.parameters for one in inferred(numbered, {"select": RowUse((None, column(NEXT)))}, known)]
    assert found == [
        (district,),
        (ReturnedValue(2, "select", plus=1), SameValue(1, "select")),
        (SameValue(1, "update", plus=-1), SameValue(1, "select")),
        (SameValue(1, "order"), Ordinal()),
    ]


def test_nothing_is_inferred_from_statements_that_are_called_several_times() -> None:
    known = Inferred(shifted={(_ORDER, 1): ((_UPDATE, 1), -1)}, steps={(_UPDATE, 1): 1})
    drawn = ColumnValue(NEXT)
    numbered = [(_UPDATE, call("update", drawn, times=3.0)), (_ORDER, call("order", drawn))]
    assert [one.parameters for one in inferred(numbered, {}, known)] == [(drawn,), (drawn,)]


def test_keys_that_are_made_in_step_stay_new() -> None:
    known = Inferred(shifted={(_LINE, 1): ((_ORDER, 1), 4000)})
    numbered = [(_ORDER, call("order", NewKey(ORDER))), (_LINE, call("invoice", NewKey("s.invoices.id")))]
    assert [one.parameters for one in inferred(numbered, {}, known)] == [
        (NewKey(ORDER),), (NewKey("s.invoices.id"),),
    ]  # fmt: skip
