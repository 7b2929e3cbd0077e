"""Program files that somebody made: what they claim is checked against how long they are."""

from __future__ import annotations

import struct
from io import BytesIO

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.host.processes.elf import AARCH64, defined_functions, read_code

HEADER, SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ").pack(1, 2, 0, 1, 0, 0)  # a function, whose name is at 1


def program(sections: list[bytes], content: bytes = b"", sections_at: int | None = None) -> BytesIO:
    """Return a file with a header, this content from byte 64 on, and these sections."""
    at = HEADER.size + len(content) if sections_at is None else sections_at
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = HEADER.pack(ident, 3, AARCH64, 1, 0, 0, at, 0, 64, 0, 0, SECTION.size, len(sections), 0)
    return BytesIO(head + content + b"".join(sections))


def section(kind: int, offset: int, size: int, *, link: int = 0) -> bytes:
    return SECTION.pack(0, kind, 4, 0, offset, size, link, 0, 0, 0)


def test_the_name_of_a_function_ends_at_its_nul_byte_and_longer_names_are_others() -> None:
    for texts, names in ((b"\0malloc\0", ["malloc"]), (b"\0mallocx\0", []), (b"\0malloc", ["malloc"])):
        tables = [section(11, 64, 24, link=1), section(3, 88, len(texts))]
        found = defined_functions(program(tables, SYMBOL + texts), {"malloc", "free"})
        assert not isinstance(found, Unknown)
        assert sorted(found) == names


@pytest.mark.parametrize("huge", [1 << 63, (1 << 64) - 1])
def test_places_beyond_the_end_of_the_file_are_not_looked_up(huge: int) -> None:
    for file in (
        program([section(11, 0, 24)], sections_at=huge),
        program([section(11, huge, 24)]),
        program([section(11, 0, huge)]),
    ):
        assert defined_functions(file, {"malloc"}) == Unknown("truncated file")


def test_code_that_is_listed_many_times_is_not_read_many_times() -> None:
    assert read_code(program([section(1, 0, 100)] * 50), AARCH64) == Unknown("overlapping sections")


def test_symbols_that_are_listed_many_times_are_not_read_many_times() -> None:
    many = program([section(11, 0, 100, link=0)] * 50)
    assert defined_functions(many, {"malloc"}) == Unknown("overlapping or too large symbol tables")
