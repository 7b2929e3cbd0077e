"""Keys of a transaction that are the same value."""

from __future__ import annotations

from pgdyno.model.experiments.captured import (
    CapturedCall,
    ColumnValue,
    NewKey,
    Ordinal,
    Parameter,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
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
