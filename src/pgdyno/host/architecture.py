"""Machine architectures, named as by ``uname -m``: x86_64, aarch64.

Source: System V Application Binary Interface, chapter 4 ("ELF Header"), and its supplements for both.
"""

from __future__ import annotations

import platform

HEADER_BYTES = 20
_BEGINNING = b"\x7fELF\x02\x01"  # ELFCLASS64, ELFDATA2LSB
_NAMES = {62: "x86_64", 183: "aarch64"}  # EM_X86_64, EM_AARCH64


def machine_of(header: bytes) -> str:
    """Return the machine that an executable's first bytes name; empty if unknown."""
    if len(header) < HEADER_BYTES or not header.startswith(_BEGINNING):
        return ""
    return _NAMES.get(int.from_bytes(header[18:20], "little"), "")


def is_foreign(machine: str) -> bool:
    """Whether programs for ``machine`` need an emulator here."""
    return machine not in {"", platform.machine()}
