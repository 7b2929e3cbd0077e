"""The local machine and user: workspace, memory, CPUs, permission to change the host."""

from __future__ import annotations

import os
import pwd
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pgdyno.base.errors import PrivilegeError
from pgdyno.base.facts import Unknown
from pgdyno.host.files.lock import exclusive_lock
from pgdyno.host.files.tree import Tree
from pgdyno.host.files.trusted_files import require_trusted
from pgdyno.host.machine.cgroups import read_hierarchy, read_membership
from pgdyno.host.machine.limits import available_memory
from pgdyno.host.probing.spinners import remove_left_groups
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.memory_limit import GroupPlace, find_place
from pgdyno.postgres.process.workspace import JOURNAL_FILE, Workspace, as_owner, default_root

_MACHINE_LOCK = Path("/run/pgdyno.lock")  # in a directory that only root can write to
_SOME_SYSCTL = "/proc/sys/vm/swappiness"  # present in every kernel


def workspace() -> Workspace:
    """Return this user's workspace.

    Raises: RefusedError if other users could change it or its journal: with this user's rights, pgdyno
    restores values from receipts, runs their restart commands, and removes files there.
    """
    root = default_root()
    for path in (root, root / "journal" / JOURNAL_FILE):
        require_trusted(path, "values in its journal are restored with your rights", _as_its_owner(root))
    return Workspace(root, current_account())


def _as_its_owner(root: Path) -> str | None:
    """Return a hint; None for root if the workspace is root's own or its owner has no name."""
    if os.geteuid() != 0:
        return f"set PGDYNO_HOME to a directory that only you can change, or chmod go-w your part of {root}"
    try:
        owner = pwd.getpwuid(root.stat().st_uid)
    except (OSError, KeyError):
        return None
    if owner.pw_uid == 0:
        return None
    return f"run pgdyno as that user: {as_owner(owner.pw_name, root, ['pgdyno', 'status'])}"


def remove_orphans() -> None:
    """Remove leftovers of killed pgdynos: scratch directories with their servers, and groups of spinners.

    Raises: RefusedError as ``workspace``; ServerError if a server does not end.
    """
    workspace().remove_orphans()
    remove_left_groups(Tree())


def available_memory_bytes() -> int:
    """Return the memory available to new servers, within the host's and all cgroup limits; 0 if unknown."""
    return available_memory(Tree(Path("/")), "self").or_else(0)


def online_cpus() -> tuple[int, ...]:
    """Return the CPUs that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def may_change_host() -> bool:
    """Whether this user may change kernel settings: in a container, they are read-only even for root."""
    return os.geteuid() == 0 and os.access(_SOME_SYSCTL, os.W_OK)


def machine_claimed(*, is_wanted: bool) -> AbstractContextManager[None]:
    """Return a lock that prevents root's other pgdynos, in any workspace, from changing the machine.

    Entering it raises LockHeldError if another process holds it. Without rights to change the machine, or
    unless ``is_wanted``, it does nothing.
    """
    may_claim = may_change_host() and os.access(_MACHINE_LOCK.parent, os.W_OK)
    return exclusive_lock(_MACHINE_LOCK) if is_wanted and may_claim else nullcontext()


def memory_group_place() -> GroupPlace:
    """Return a place for control groups with a memory limit. Raises: PrivilegeError."""
    tree = Tree(Path("/"))
    hierarchy = read_hierarchy(tree, read_membership(tree, "self"), "memory").value
    if isinstance(hierarchy, Unknown):
        raise PrivilegeError("the memory of a server cannot be limited here", detail=hierarchy.reason)
    return find_place(hierarchy.version, hierarchy.directories)
