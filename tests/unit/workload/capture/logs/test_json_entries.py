"""Entries of jsonlog."""

from __future__ import annotations

from tests.unit.workload.capture.logs.test_format import JSON, lines

from pgdyno.workload.capture.logs.json_entries import json_entries


def test_halves_of_characters_in_json_are_replaced() -> None:
    [entry] = json_entries(lines(JSON.replace("FROM t", "\\uD83D\\uDE00 \\uDE00")))
    assert entry is not None
    assert "\N{GRINNING FACE} ? WHERE" in entry.message
