"""Variables of libpq do not reach clients of scratch servers; pgdyno's own do."""

from __future__ import annotations

import os

import pytest

from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset


def test_libpqs_variables_are_absent_within_and_back_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in os.environ if one.startswith("PG")]:
        monkeypatch.delenv(name)
    given = {"PGHOSTADDR": "192.0.2.1", "PGOPTIONS": "-c jit=off", "PGDYNO_AS_BOOTED": "1"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with libpq_variables_unset():
        assert {name for name in os.environ if name.startswith("PG")} == {"PGDYNO_AS_BOOTED"}
    assert {name: os.environ[name] for name in given} == given
    with pytest.raises(RuntimeError), libpq_variables_unset():
        raise RuntimeError
    assert {name: os.environ[name] for name in given} == given
