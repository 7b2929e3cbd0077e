"""Waits in the notation of PostgreSQL's users."""

from __future__ import annotations

from pgdyno.postgres.waits import CPU, Wait


def test_a_wait_is_its_type_and_event() -> None:
    assert str(Wait("IO", "DataFileRead")) == "IO:DataFileRead"
    assert str(Wait(CPU)) == "CPU"
