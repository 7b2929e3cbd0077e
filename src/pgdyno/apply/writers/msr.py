"""Turn hardware prefetchers off and on by writing CPU registers (MSRs), with one receipt for each CPU.

Only the registers of ``host.msr.PREFETCHERS`` are written, and of those only the documented bits: others
control voltages and frequencies. Values last until the machine is restarted.

Source: Linux, msr(4): a register is eight bytes, little-endian, at the offset of its number.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pgdyno.apply.writers.kernel_file import KernelFileWriter
from pgdyno.base.errors import PgdynoError, PrivilegeError, SettingError
from pgdyno.base.ports import Found
from pgdyno.host.msr import PREFETCHERS, Register, register_of

T = TypeVar("T")

_WIDTH_BYTES = 8
_LARGEST = 2**64 - 1


@dataclass(frozen=True)
class MsrWriter(KernelFileWriter):
    """Reads, writes and restores prefetch controls; a key is ``/dev/cpu/3/msr:0x1a4``, a value ``0xf``."""

    kind: str = "msr"

    def check(self, key: str) -> None:
        """Refuse a register that is not a prefetcher control or not accessible, before any change.

        Raises: SettingError, PrivilegeError.
        """
        register = _prefetch_control(key)
        if not self._locate(register.device).exists():
            raise SettingError(
                f"the registers of CPU {register.cpu} are not accessible",
                detail=f"{register.device} does not exist",
                hint="run modprobe msr as root, on the machine itself rather than in a container",
            )
        self._open(key, register, os.O_WRONLY, lambda _: None)
        self.value(key)

    def write(self, key: str, value: str) -> None:
        """Write the register.

        Raises: SettingError if the value would change other bits than prefetcher controls; PrivilegeError.
        """
        register, wanted = _prefetch_control(key), _number(key, value)
        others = (wanted ^ int(self.value(key), 16)) & ~register.changeable_bits
        if others:
            raise SettingError(
                f"{value} would change other bits of {key} than prefetcher controls",
                detail=f"the bits {others:#x} have another meaning; known are {register.changeable_bits:#x}",
            )
        self._put(key, register, wanted)

    def restore(self, key: str, found: Found) -> None:
        """Restore the original value, unless the machine has been restarted since."""
        if found.value is None or self.is_gone(found) or self.equals(key, self.value(key), found.value):
            return
        self._put(key, _prefetch_control(key), _number(key, found.value))

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        """Whether two values are the same number."""
        return one == other if one is None or other is None else _number(key, one) == _number(key, other)

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the register has the requested value."""
        return self.equals(key, wanted, effective)

    def _text(self, key: str) -> str | None:
        """Return a register's value in hexadecimal; None if there is no such CPU.

        Raises: SettingError if the processor rejects the access; PrivilegeError.
        """
        register = _prefetch_control(key)
        if not self._locate(register.device).exists():
            return None
        content = self._open(
            key, register, os.O_RDONLY, lambda file: os.pread(file, _WIDTH_BYTES, register.number)
        )
        if len(content) != _WIDTH_BYTES:
            raise _refused(key)
        return f"{int.from_bytes(content, 'little'):#x}"

    def _put(self, key: str, register: Register, value: int) -> None:
        content = value.to_bytes(_WIDTH_BYTES, "little")
        self._open(key, register, os.O_WRONLY, lambda file: os.pwrite(file, content, register.number))

    def _open(self, key: str, register: Register, flags: int, use: Callable[[int], T]) -> T:
        try:
            with self.tree.opened_register(register, flags) as file:
                return use(file)
        except OSError as error:
            raise _failed(key, error) from error


def _prefetch_control(key: str) -> Register:
    register = register_of(key)
    if register is None or register.number not in PREFETCHERS:
        known = ", ".join(f"{number:#x}" for number in PREFETCHERS)
        raise SettingError(
            f'"{key}" is not a register that pgdyno changes', detail=f"prefetchers are controlled by {known}"
        )
    return register


def _number(key: str, value: str) -> int:
    """Parse a value. Raises: SettingError if it is not a hexadecimal number of 64 bits."""
    try:
        number = int(value, 16)
    except ValueError:
        number = -1
    if not 0 <= number <= _LARGEST:
        raise SettingError(f'"{value}" is not a value for {key}', hint="write it in hexadecimal: 0xf")
    return number


def _refused(key: str) -> SettingError:
    return SettingError(
        f"the processor rejects access to {key}", detail="it has no such register, or rejects this value"
    )


def _failed(key: str, error: OSError) -> PgdynoError:
    if error.errno == errno.EIO:
        return _refused(key)
    return PrivilegeError(
        f"cannot access {key}",
        detail=error.strerror,
        hint="this needs root, a kernel without lockdown, and msr.allow_writes not off",
    )
