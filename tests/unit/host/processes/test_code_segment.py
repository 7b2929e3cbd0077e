"""Functions of a program that was moved, and of libraries."""

from __future__ import annotations

from pgdyno.host.processes.elf import CodeSegment
from pgdyno.host.processes.memory_mapping import MemoryMapping
from pgdyno.profile.misses.tally import LoadedProgram


def mapped(begin: int, end: int, path: str = "", offset: int = 0) -> MemoryMapping:
    return MemoryMapping(begin, end, is_writable=not path, is_shared=False, offset=offset, path=path)


# Code from 0x2000 of the file on, linked at 0x3000, mapped at 0x55003000.
PROGRAM = LoadedProgram(
    "/bin/postgres",
    {0x3010: "secure_read", 0x3014: "secure_read", 0x3008: "secure_read.cold", 0x3100: "pq_recvbuf"},
    (CodeSegment(address=0x3000, offset=0x2000, size=0x1000),),
    (
        mapped(0x55001000, 0x55003000, "/bin/postgres"),
        mapped(0x55003000, 0x55004000, "/bin/postgres", offset=0x2000),
        mapped(0x66000000, 0x66001000, "/lib/libc.so.6"),
        mapped(0x77000000, 0x77001000),
    ),
)


def test_an_instruction_is_of_a_function_or_of_a_library() -> None:
    assert PROGRAM.function_at(0x55003014) == "secure_read"
    assert PROGRAM.function_at(0x55003018) == ""
    assert PROGRAM.function_at(0x66000010) == "libc.so.6"
    assert PROGRAM.function_at(0x77000010) == ""
