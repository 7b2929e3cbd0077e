"""Events of a driver on another host, which may say anything."""

from __future__ import annotations

from typing import Any

import pytest

from pgdyno.load.driver_process import error_of, event_of
from pgdyno.load.driver_turns import slice_of
from pgdyno.model.experiments.slices import Slice

TURN = {
    "arm": 1,
    "start_ns": 100,
    "end_ns": 150,
    "drained_ns": 162,
    "server_cpu_ns": [3, 40],
    "client_cpu_ns": 2000,
}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"Welcome!\n", "'Welcome!\\n'"),
        (b'"event"', "'\"event\"'"),
        (b'{"event": 7}', "'{\"event\": 7}'"),
        (b'[{"event": "slice"}]', '\'[{"event": "slice"}]\''),
        (b'{"event": "\xff"}', '\'{"event": "\\ufffd"}\''),
        (b'{"event": "slice", "arm": ' + b"9" * 5000 + b"}", None),  # more digits than Python reads
        (b"[" * 200_000, "'" + "[" * 80 + "'"),
    ],
)
def test_what_is_no_event_is_refused_with_its_beginning(line: bytes, shown: str | None) -> None:
    with pytest.raises(ValueError, match=r"^it sent '.*', which is not an event$") as caught:
        event_of(line)
    assert shown is None or str(caught.value) == f"it sent {shown}, which is not an event"


def test_an_error_has_words() -> None:
    assert str(error_of({"message": "no", "sqlstate": "40001", "hint": "try"})) == (
        "no (SQLSTATE 40001)\nHINT:  try"
    )


@pytest.mark.parametrize("event", [{}, {"message": 7}, {"message": "no", "hint": ["x"]}])
def test_an_error_without_words_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^it reports an error without a message$"):
        error_of(event)


def test_a_turn_has_the_arm_of_this_host() -> None:
    assert slice_of(TURN, 1, 0) == (Slice(0, 100, 150, (3, 40), 162), 2000.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arm": 0}, "a turn of arm '0' instead of arm 1"),
        ({"arm": True}, "a turn of arm 'True' instead of arm 1"),
        ({"arm": 1.0}, "a turn of arm '1.0' instead of arm 1"),
        ({"arm": "x" * 999}, f"a turn of arm '{'x' * 80}' instead of arm 1"),
        ({"start_ns": -1}, "a turn with an invalid start_ns"),
        ({"start_ns": True}, "a turn with an invalid start_ns"),
        ({"end_ns": 150.0}, "a turn with an invalid end_ns"),
        ({"drained_ns": 1 << 63}, "a turn with an invalid drained_ns"),
        ({"drained_ns": None}, "a turn with an invalid drained_ns"),
        ({"start_ns": 151}, "a turn that ends before it begins"),
        ({"drained_ns": 149}, "a turn that ends before it begins"),
        ({"server_cpu_ns": 7}, "a turn with invalid server_cpu_ns"),
        ({"server_cpu_ns": [7, "8"]}, "a turn with invalid server_cpu_ns"),
        ({"server_cpu_ns": [1 << 63]}, "a turn with invalid server_cpu_ns"),
        ({"client_cpu_ns": float("nan")}, "a turn with an invalid client_cpu_ns"),
        ({"client_cpu_ns": float("inf")}, "a turn with an invalid client_cpu_ns"),
        ({"client_cpu_ns": -1}, "a turn with an invalid client_cpu_ns"),
    ],
)
def test_a_turn_that_cannot_have_been_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"^it reports ") as caught:
        slice_of({**TURN, **change}, 1, 0)
    assert str(caught.value) == f"it reports {said}"
