"""Which machine a program is for, by the first bytes of its file."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from pgdyno.host.architecture import HEADER_BYTES, is_foreign, machine_of

REST = bytes(10)  # of e_ident, and e_type is the two bytes behind it
AARCH64 = b"\x7fELF\x02\x01" + REST + b"\x03\x00\xb7\x00"  # as file(1) shows one of Debian's arm64
X86_64 = b"\x7fELF\x02\x01" + REST + b"\x03\x00\x3e\x00"


def test_programs_say_what_machine_they_are_for() -> None:
    assert machine_of(AARCH64) == "aarch64"
    assert machine_of(X86_64) == "x86_64"
    with Path(sys.executable).resolve().open("rb") as file:
        assert machine_of(file.read(HEADER_BYTES)) == platform.machine()


@pytest.mark.parametrize(
    "header",
    [b"", b"#!/bin/sh\necho postgres\n", AARCH64[:-1], b"\x7fELF\x02\x01" + REST + b"\x03\x00\xf3\x00"],
)
def test_what_does_not_say_it_is_taken_for_this_machines(header: bytes) -> None:
    assert machine_of(header) == ""
    assert not is_foreign(machine_of(header))


def test_this_machine_is_not_foreign() -> None:
    assert not is_foreign(platform.machine())
    assert is_foreign("s390x")
