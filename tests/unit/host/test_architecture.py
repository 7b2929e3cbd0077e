"""Machines that need an emulator here."""

from __future__ import annotations

import platform

from pgdyno.host.architecture import is_foreign


def test_this_machine_and_an_unknown_one_are_not_foreign() -> None:
    assert not is_foreign(platform.machine())
    assert not is_foreign("")
    assert is_foreign("s390x")
