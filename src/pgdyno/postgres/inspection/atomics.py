"""Detect the kind of an Arm program's atomic operations from its instructions.

The helpers of -moutline-atomics are hidden symbols, which distributions strip; but each of them asks in
register w16 whether the processor has LSE, and branches past its only LSE instruction if not.

Source: Arm Architecture Reference Manual, A64 encodings of CAS, CASP, SWP, LDADD, LDCLR, LDEOR, LDSET; gcc,
libgcc/config/aarch64/lse.S; LLVM, compiler-rt/lib/builtins/aarch64/lse.S.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

from pgdyno.base.facts import Unknown
from pgdyno.host.processes.elf import AARCH64, read_code
from pgdyno.postgres.server import Atomics

_WORD_BYTES = 4  # every instruction, aligned and with its least significant byte first
_LSE = (  # mask, value
    (0x3FA07C00, 0x08A07C00),  # CAS
    (0xBFA07C00, 0x08207C00),  # CASP
    (0x3F20FC00, 0x38208000),  # SWP
    (0x3F20CC00, 0x38200000),  # LDADD, LDCLR, LDEOR, LDSET
)
_SKIP_IF_W16_IS_ZERO = (0xFF00001F, 0x34000010)  # CBZ

# The most significant bytes that these instructions may have: a few per cent of all code, found fast.
_CANDIDATE = re.compile(rb"[\x08\x48\x88\xc8\x38\x78\xb8\xf8]")


def read_atomics(file: BinaryIO) -> Atomics | Unknown:
    """Count the LSE instructions of a program."""
    code = read_code(file, AARCH64)
    return code if isinstance(code, Unknown) else count_atomics(code)


def count_atomics(code: bytes) -> Atomics:
    """Count the LSE instructions in code: those that a helper has, and all others."""
    in_helpers = Counter(_is(code, place - 1, _SKIP_IF_W16_IS_ZERO) for place in _lse_instructions(code))
    return Atomics(inline=in_helpers[False], outline=in_helpers[True])


def _lse_instructions(code: bytes) -> Iterator[int]:
    """Yield the places of LSE instructions, counted in words."""
    for match in _CANDIDATE.finditer(code[_WORD_BYTES - 1 :: _WORD_BYTES]):
        if any(_is(code, match.start(), pattern) for pattern in _LSE):
            yield match.start()


def _is(code: bytes, place: int, pattern: tuple[int, int]) -> bool:
    mask, value = pattern
    start = max(place, 0) * _WORD_BYTES
    return int.from_bytes(code[start : start + _WORD_BYTES], "little") & mask == value
