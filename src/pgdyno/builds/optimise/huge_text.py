"""Machine code on huge pages: an object linked into a build, which moves the server's code at startup.

The linker aligns the code segment to huge pages. ``huge_text.c`` documents what the object does, and when it
does nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
OBJECT = "huge_text.o"
LINKING = ("-Wl,-z,max-page-size=0x200000", "-Wl,-z,separate-code")
_FLAGS = ("-O2", "-fPIE", "-fstack-protector-strong", "-Wall", "-Wextra", "-Werror")
_AREA = re.compile(r"^[0-9a-f]+-[0-9a-f]+ (\S{4}) ")
_HUGE = re.compile(r"^AnonHugePages: +(\d+) kB")


def identity() -> str:
    """Return the identity of a build with the object: its source, compilation and linking."""
    made = (SOURCE.read_text(), *_FLAGS, *LINKING)
    return hashlib.sha256("\0".join(made).encode()).hexdigest()


def make_variables(made: Path) -> Mapping[str, str]:
    """Return make's variables that link the object into the server only.

    Their first words are PostgreSQL's own values. PostgreSQL uses LDFLAGS_EX_BE from 16 on, and
    export_dynamic before.
    """
    flags = " ".join((*LINKING, str(made)))
    return {"LDFLAGS_EX_BE": f"-Wl,--export-dynamic {flags}", "export_dynamic": f"-Wl,-E {flags}"}


def compiling(compiler: str, source: Path, made: Path) -> Sequence[str]:
    """Return the command that compiles the object from a copy of its source."""
    return (*compiler.split(), *_FLAGS, "-c", str(source), "-o", str(made))


def moved_bytes(smaps: str) -> int:
    """Return the size of a process' machine code on anonymous huge pages, from its /proc/PID/smaps."""
    return sum(_moved_areas(smaps))


def _moved_areas(smaps: str) -> Iterator[int]:
    is_code = False
    for line in smaps.splitlines():
        if area := _AREA.match(line):
            is_code = "x" in area[1]
        elif is_code and (huge := _HUGE.match(line)):
            yield int(huge[1]) << 10
