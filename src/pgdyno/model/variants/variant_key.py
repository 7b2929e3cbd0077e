"""Keys of a variant, and their canonical form. Pure.

    jit, pg_stat_statements.max              a setting of PostgreSQL
    vm.swappiness, /proc/sys/vm/swappiness   a sysctl, stored by the path of its file
    /sys/kernel/mm/transparent_hugepage/…    another kernel file
    /dev/cpu/0/msr:0x1a4                     a register of one CPU
    env.MALLOC_ARENA_MAX                     an environment variable of the server
    process.scheduling_policy                how the kernel schedules the server's processes

Source: PostgreSQL, valid_custom_variable_name and ParseLongOption in src/backend/utils/misc/guc.c.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from pgdyno.host.kernel_file import sysctl_path
from pgdyno.host.msr import register_of

ENVIRONMENT = "env."
SCHEDULING_POLICY = "process.scheduling_policy"

_SETTING = re.compile(r"[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)*")
_FILE = re.compile(r"/(proc/sys|proc/irq|sys)(/(?!\.)[A-Za-z0-9_.:@+-]+)+")
_VARIABLE = re.compile(r"env\.[A-Za-z_][A-Za-z0-9_]*")
_SYSCTLS = ("dev.", "fs.", "kernel.", "net.", "vm.")  # no extension of PostgreSQL has one of these names


class KeyKind(Enum):
    """The kind of a key."""

    SETTING = auto()  # of PostgreSQL
    FILE = auto()  # of the kernel, or a CPU register
    VARIABLE = auto()  # of the environment
    PROCESS = auto()  # how the server's program is started


def canonical_key(name: str) -> str:
    """Return the canonical form of a key. Idempotent.

    PostgreSQL does not distinguish ``FSYNC`` and ``fsync``, so pgdyno must not either.
    """
    if name.startswith("/"):
        register = register_of(name)
        return name if register is None else register.key
    head, dot, rest = name.partition(".")
    beginning = head.lower() + dot
    if beginning in _SYSCTLS:
        return sysctl_path(beginning + rest)
    return beginning + rest if beginning == ENVIRONMENT else name.lower()


def kind_of_key(key: str) -> KeyKind | None:
    """Return the kind of a key in canonical form; None if it is not a valid key."""
    if _FILE.fullmatch(key) or register_of(key) is not None:
        return KeyKind.FILE
    if key.startswith(ENVIRONMENT):
        return KeyKind.VARIABLE if _VARIABLE.fullmatch(key) else None
    if key == SCHEDULING_POLICY:
        return KeyKind.PROCESS
    return KeyKind.SETTING if _SETTING.fullmatch(key) else None


def why_no_key(key: str) -> str:
    """Return why a key is not valid."""
    if kind_of_key(key.replace("-", "_")) is KeyKind.SETTING:
        return f'PostgreSQL reads "-" as "_": write {key.replace("-", "_")}'
    return (
        "a key is a setting of PostgreSQL, a sysctl, a file below /proc/sys, /proc/irq or /sys, "
        f"a register /dev/cpu/N/msr:0x…, env.NAME, or {SCHEDULING_POLICY}"
    )
