"""x86 model-specific registers that disable prefetchers, and the keys of their changes. Pure.

A key has the CPU's device and the register's number, ``/dev/cpu/3/msr:0x1a4``; a value is hexadecimal,
``0xf``. The threads of a core share these registers.

Source: Intel, "Disclosure of Hardware Prefetcher Control on Some Intel Processors" (0x1A4); AMD, Processor
Programming Reference, MSRC000_0108 [Prefetch Control]; Linux, msr(4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

PREFETCHERS: Mapping[int, Mapping[int, str]] = MappingProxyType(
    {
        0x1A4: {0: "L2", 1: "L2 adjacent line", 2: "L1 next line", 3: "L1 by instruction"},
        0xC0000108: {0: "L1 stream", 1: "L1 stride", 2: "L1 region", 3: "L2 stream", 5: "L2 up/down"},
    }
)
"""All registers that pgdyno may change: number → bit → prefetcher, which is off while the bit is set."""

_KEY = re.compile(r"/dev/cpu/([0-9]{1,6})/msr:(0x[0-9a-f]{1,8})")


@dataclass(frozen=True)
class Register:
    """A register of one CPU."""

    cpu: int
    number: int

    @property
    def key(self) -> str:
        """Canonical key, without leading zeros."""
        return f"{self.device}:{self.number:#x}"

    @property
    def device(self) -> str:
        """Device file with the register at the offset equal to its number."""
        return f"/dev/cpu/{self.cpu}/msr"

    @property
    def changeable_bits(self) -> int:
        """Mask of the bits that turn prefetchers off; 0 for a register that may not be changed."""
        return sum(1 << bit for bit in PREFETCHERS.get(self.number, {}))

    def turned_off(self, value: int) -> tuple[str, ...]:
        """Return the prefetchers that are off when the register has this value."""
        return tuple(name for bit, name in PREFETCHERS.get(self.number, {}).items() if value >> bit & 1)


def register_of(key: str) -> Register | None:
    """Return the register that a key names; None if the key is a file's path."""
    match = _KEY.fullmatch(key)
    return None if match is None else Register(int(match[1]), int(match[2], 16))
