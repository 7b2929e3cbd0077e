"""Keys of a variant, and their canonical form. Pure.

    jit, pg_stat_statements.max              a setting of PostgreSQL
    vm.swappiness, /proc/sys/vm/swappiness   a sysctl, kept by the path of its file
    /sys/kernel/mm/transparent_hugepage/…    another file of the kernel
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
    """Whose value a key is."""

    SETTING = auto()  # PostgreSQL's
    FILE = auto()  # the kernel's, or a register's
    VARIABLE = auto()  # the environment's
    PROCESS = auto()  # of how the server's program is started


def canonical_key(name: str) -> str:
    """Return the form in which a key is kept. Doing it twice changes nothing.

    PostgreSQL does not tell ``FSYNC`` from ``fsync``, so that nothing here may either.
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
    """Return whose value a key in its one form is; None if it is no key at all, and so nobody's."""
    if _FILE.fullmatch(key) or register_of(key) is not None:
        return KeyKind.FILE
    if key.startswith(ENVIRONMENT):
        return KeyKind.VARIABLE if _VARIABLE.fullmatch(key) else None
    if key == SCHEDULING_POLICY:
        return KeyKind.PROCESS
    return KeyKind.SETTING if _SETTING.fullmatch(key) else None


def why_no_key(key: str) -> str:
    """Return why a key is of no known kind."""
    if kind_of_key(key.replace("-", "_")) is KeyKind.SETTING:
        return f'PostgreSQL would take "-" for "_": write {key.replace("-", "_")}'
    return (
        "a key is a setting of PostgreSQL, a sysctl, a file below /proc/sys, /proc/irq or /sys, "
        f"a register /dev/cpu/N/msr:0x…, env.NAME, or {SCHEDULING_POLICY}"
    )
