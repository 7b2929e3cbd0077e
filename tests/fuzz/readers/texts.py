"""Texts that people write on a command line, and program files."""

from __future__ import annotations

import io
import math
from collections.abc import Callable

from tests.fuzz.words import refused_in_words

from pgdyno.base.facts import Unknown
from pgdyno.base.units import parse_duration_s, parse_percent
from pgdyno.host.kernel_file import choices_in, is_same, value_in
from pgdyno.host.processes.elf import AARCH64, defined_functions, read_code, read_code_segments
from pgdyno.model.variants.variant import parse_variant

_UNITS: tuple[Callable[[str], float], ...] = (parse_duration_s, parse_percent)


def check_quantity(data: bytes) -> None:
    """A duration and a percentage are finite numbers from 0 on."""
    text = data.decode(errors="replace")
    for parse in _UNITS:
        with refused_in_words():
            assert 0 <= parse(text) < math.inf


def check_variant(data: bytes) -> None:
    """A variant that was read is read again from its own grammar."""
    with refused_in_words():
        found = parse_variant(data.decode(errors="replace"))
        assert parse_variant(str(found)) == found


def check_kernel_file(data: bytes) -> None:
    """The value in a kernel's file is one line, and one of the choices where there are any."""
    text = data.decode(errors="replace")
    value = value_in(text)
    assert "\n" not in value
    assert is_same("/proc/irq/1/smp_affinity", value, value)
    assert isinstance(choices_in(text), tuple)


def check_elf(data: bytes) -> None:
    """Of a program's code no more is read than the file has."""
    segments = read_code_segments(io.BytesIO(data))
    assert isinstance(segments, Unknown) or all(0 <= one.offset < len(data) for one in segments)
    code = read_code(io.BytesIO(data), AARCH64)
    assert isinstance(code, Unknown) or 0 < len(code) <= len(data)
    found = defined_functions(io.BytesIO(data), {"malloc", ""})
    assert isinstance(found, Unknown) or found <= {"malloc", ""}
