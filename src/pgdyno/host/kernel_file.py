"""Files of the kernel that show a value and accept another: /proc/sys, /sys, /proc/irq. Pure.

A file is named by its path on the host, ``/proc/sys/vm/swappiness``; people see a sysctl by the name that
sysctl(8) gives it. Values are compared as the kernel writes them, which is not always as they were written.

Source: Linux, Documentation/admin-guide/sysctl/, Documentation/ABI/, sysctl(8).
"""

from __future__ import annotations

import re

SYSCTL_ROOT = "/proc/sys/"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""Changes from boot to boot: what was written into the kernel before is gone then."""
COUPLED = {
    f"{SYSCTL_ROOT}vm/{one}": f"{SYSCTL_ROOT}vm/{other}"
    for pair in (
        ("dirty_bytes", "dirty_ratio"),
        ("dirty_background_bytes", "dirty_background_ratio"),
        ("overcommit_kbytes", "overcommit_ratio"),
    )
    for one, other in (pair, pair[::-1])
}
"""Two ways to say one thing: writing one sets the other to 0, which means that it does not count."""
_SCHEDULER = "/queue/scheduler"
_HUGE_PAGES = ("/transparent_hugepage/enabled", "/transparent_hugepage/shmem_enabled")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_MASK = re.compile(r"^[0-9a-f]+(,[0-9a-f]{8})*$", re.IGNORECASE)
_IS_MASK = re.compile(r"(_cpus|/smp_affinity)$")


def sysctl_path(name: str) -> str:
    """Return where a sysctl lies: ``vm.swappiness`` → ``/proc/sys/vm/swappiness``."""
    return SYSCTL_ROOT + name.replace(".", "/")


def set_anew_by(path: str) -> tuple[str, ...]:
    """Return the files, as patterns, that the kernel sets to values of its own when ``path`` is written.

    An I/O scheduler comes with a depth of the queue and tunables of its own; what they were before is gone.
    Transparent huge pages come with more memory that is kept free, to make such pages of.
    """
    if path.endswith(_HUGE_PAGES):
        return (f"{SYSCTL_ROOT}vm/min_free_kbytes",)
    if not path.endswith(_SCHEDULER):
        return ()
    queue = path.removesuffix("/scheduler")
    return (f"{queue}/nr_requests", f"{queue}/iosched/*")  # in this order: the depth sets tunables


def display_name(path: str) -> str:
    """Return a sysctl's name; for other files, the path."""
    return path.removeprefix(SYSCTL_ROOT).replace("/", ".") if path.startswith(SYSCTL_ROOT) else path


def value_in(text: str) -> str:
    """Return the value in a file's first line: the choice in brackets where there are several.

    Columns are parted by one space, however the kernel parts them.
    """
    line = text.partition("\n")[0]
    choice = _CHOICE.search(line)
    return choice[1] if choice is not None else " ".join(line.split())


def choices_in(text: str) -> tuple[str, ...]:
    """Return the choices in a file: ``none [mq-deadline]`` → none, mq-deadline; empty if none."""
    line = text.partition("\n")[0]
    return tuple(word.strip("[]") for word in line.split()) if _CHOICE.search(line) else ()


def is_same(path: str, one: str, other: str) -> bool:
    """Whether two values of a file mean the same: masks of CPUs may have leading zeros."""
    one, other = " ".join(one.split()), " ".join(other.split())
    if one == other:
        return True
    is_mask = _IS_MASK.search(path) and _MASK.match(one) and _MASK.match(other)
    return bool(is_mask) and int(one.replace(",", ""), 16) == int(other.replace(",", ""), 16)
