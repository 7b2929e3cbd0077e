"""Answers of other hosts: whatever they say is checked first."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import RemoteHostError
from pgdyno.remote.answers import ClockAnswer, Failed, ProbeAnswer, WakeUpAnswer, parse_answer


def test_an_answer_and_an_error_are_told_apart() -> None:
    assert parse_answer(b'{"ns": 5}', ClockAnswer) == ClockAnswer(ns=5)
    assert parse_answer(b'{"error": "no"}', ClockAnswer) == Failed(error="no")


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (b"Welcome!", "invalid json: expected value at line 1 column 1"),
        (b'{"ns": "5"}', "ns: input should be a valid integer"),
        (b'{"ns": -1}', "ns: input should be greater than or equal to 0"),
        (b'{"ns": 1e400}', "ns: input should be a valid integer"),
        (b'{"ns": 5, "more": 1}', "more: extra inputs are not permitted"),
        (b'{"error": 7}', "error: input should be a valid string"),
        (b"[" * 200_000, "invalid json: recursion limit exceeded at line 1 column "),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_place(line: bytes, detail: str) -> None:
    with pytest.raises(RemoteHostError) as caught:
        parse_answer(line, ClockAnswer)
    assert caught.value.message == "the host sent an invalid answer"
    assert (caught.value.detail or "").startswith(detail)


def test_figures_that_are_none_are_refused() -> None:
    with pytest.raises(RemoteHostError, match="the host sent an invalid answer"):
        parse_answer(b'{"round_trip_s": NaN, "from_server_bytes_per_s": 1.0}', ProbeAnswer)
    with pytest.raises(RemoteHostError, match="the host sent an invalid answer"):
        parse_answer(b'{"waker": 0, "woken": 1, "idle_us": ["fast"], "busy_us": []}', WakeUpAnswer)
