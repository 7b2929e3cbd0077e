"""Atomic operations in small ELF programs for Arm, assembled by hand; encodings are as objdump shows them."""

from __future__ import annotations

import io
import struct

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.postgres.inspection.program import count_atomics, read_atomics
from pgdyno.postgres.server import Atomics

AARCH64, X86_64 = 183, 62
NOP, RET = 0xD503201F, 0xD65F03C0
CASAL, SWPAL, LDADDAL = 0x88E0FC41, 0xB8E08041, 0xB8E00041  # each w0, w1, [x2]
CBZ_W16 = 0x34000070  # cbz w16, .+12
CBZ_W0 = 0x34000060  # cbz w0, .+12
ADRP_X16, LDRB_W16 = 0xB0000010, 0x39400210  # adrp x16, …; ldrb w16, [x16]


def code(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def program(
    *sections: tuple[int, int, bytes], machine: int = AARCH64, kind: bytes = b"\x02\x01"
) -> io.BytesIO:
    """Return an ELF file with these sections (type, flags, content) after the empty one that all have."""
    content = b"".join(section[2] for section in sections)
    ident = b"\x7fELF" + kind + bytes(10)
    head = ident + struct.pack(
        "<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, 64 + len(content), 0, 64, 0, 0, 64, 1 + len(sections), 0
    )
    table, at = bytes(64), 64
    for section_type, flags, text in sections:
        table += struct.pack("<IIQQQQIIQQ", 0, section_type, flags, at, at, len(text), 0, 0, 4, 0)
        at += len(text)
    return io.BytesIO(head + content + table)


TEXT = (1, 6)  # PROGBITS; allocated, executable


@pytest.mark.parametrize(
    "word",
    [
        CASAL,
        0x08A07C41,  # casb w0, w1, [x2]
        0x48207C82,  # casp x0, x1, x2, x3, [x4]
        SWPAL,
        LDADDAL,
        0xF8E01041,  # ldclral x0, x1, [x2]
        0x38A02041,  # ldeorab w0, w1, [x2]
        0x78603041,  # ldsetlh w0, w1, [x2]
        0xB820003F,  # stadd w0, [x1]
    ],
)
def test_instructions_of_lse_are_counted(word: int) -> None:
    assert count_atomics(code(NOP, word, RET)) == Atomics(inline=1, outline=0)


@pytest.mark.parametrize(
    "word",
    [
        0x885FFC40,  # ldaxr w0, [x2]
        0x8811FC41,  # stlxr w17, w1, [x2]
        0xB8BFC020,  # ldapr w0, [x1]
        0xB8626820,  # ldr w0, [x1, x2]
        0x38401020,  # ldurb w0, [x1, #1]
        0xF8200400,  # ldraa x0, [x0]
        0xC8217C40,  # stxp w1, x0, xzr, [x2]
        0x889FFC20,  # stlr w0, [x1]
    ],
)
def test_instructions_that_look_alike_are_not(word: int) -> None:
    assert count_atomics(code(NOP, word, RET)) == Atomics(0, 0)


def test_what_a_helper_does_only_if_the_processor_can_is_counted_apart() -> None:
    helper = (ADRP_X16, LDRB_W16, CBZ_W16, CASAL, RET, NOP, RET)
    assert count_atomics(code(*helper, *helper)) == Atomics(inline=0, outline=2)


def test_another_branch_before_it_makes_no_helper() -> None:
    assert count_atomics(code(CBZ_W0, SWPAL, RET)) == Atomics(inline=1, outline=0)
    assert count_atomics(code(SWPAL, CBZ_W16)) == Atomics(inline=1, outline=0)


def test_only_whole_instructions_count() -> None:
    shifted = b"\x1f\x20" + code(CASAL) + b"\x03\xd5"  # the same bytes, across two instructions
    assert count_atomics(shifted) == Atomics(0, 0)


def test_a_programs_executable_sections_are_looked_at_and_nothing_else() -> None:
    data, notes, empty = (1, 3, code(SWPAL)), (7, 2, code(SWPAL)), (8, 6, b"")
    file = program((*TEXT, code(CASAL)), data, notes, (*TEXT, code(LDADDAL, RET)), empty)
    assert read_atomics(file) == Atomics(inline=2, outline=0)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (io.BytesIO(b""), "not a 64-bit little-endian ELF file"),
        (io.BytesIO(b"#!/bin/sh\n" + bytes(100)), "not a 64-bit little-endian ELF file"),
        (program((*TEXT, code(CASAL)), machine=X86_64), "a program for a different processor"),
        (program((*TEXT, code(CASAL)), kind=b"\x01\x01"), "not a 64-bit little-endian ELF file"),
        (program((*TEXT, code(CASAL)), kind=b"\x02\x02"), "not a 64-bit little-endian ELF file"),
        (program(), "contains no code"),
        (program((1, 3, code(CASAL))), "contains no code"),
        (io.BytesIO(program((*TEXT, code(CASAL))).getvalue()[:-1]), "truncated file"),
        (io.BytesIO(program((*TEXT, code(CASAL))).getvalue()[:64]), "truncated file"),
    ],
)
def test_a_file_that_is_no_whole_program_for_arm_says_so(file: io.BytesIO, reason: str) -> None:
    assert read_atomics(file) == Unknown(reason)


def test_a_program_whose_sections_are_not_listed_says_so() -> None:
    stripped = bytearray(program((*TEXT, code(CASAL))).getvalue())
    stripped[60:62] = b"\0\0"  # e_shnum
    assert read_atomics(io.BytesIO(stripped)) == Unknown("no list of sections")


def test_a_section_that_lies_beyond_the_files_end_is_not_read() -> None:
    damaged = bytearray(program((*TEXT, code(CASAL))).getvalue())
    damaged[-32:-24] = b"\xff" * 8  # the last section's size
    assert read_atomics(io.BytesIO(damaged)) == Unknown("truncated file")
