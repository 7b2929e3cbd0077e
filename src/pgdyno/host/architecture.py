"""Machine architectures, by the names of ``uname -m``: x86_64, aarch64.

Source: System V Application Binary Interface, chapter 4 ("ELF Header"), and its supplements for both of them.
"""

from __future__ import annotations

import platform

HEADER_BYTES = 20
_BEGINNING = b"\x7fELF\x02\x01"  # of 64 bits, the least significant byte first
_NAMES = {62: "x86_64", 183: "aarch64"}  # EM_X86_64, EM_AARCH64


def machine_of(header: bytes) -> str:
    """Return the machine that a program is for, by its file's first bytes; empty where they do not say."""
    if len(header) < HEADER_BYTES or not header.startswith(_BEGINNING):
        return ""
    return _NAMES.get(int.from_bytes(header[18:20], "little"), "")


def is_foreign(machine: str) -> bool:
    """Whether programs for a machine are run by an emulator here, if at all."""
    return machine not in {"", platform.machine()}
