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

_MACHINE_LOCK = Path("/run/pgdyno.lock")  # where root alone can write
_SOME_SYSCTL = "/proc/sys/vm/swappiness"  # which every kernel has


def workspace() -> Workspace:
    """Return this user's workspace.

    Raises: RefusedError if others could change it or its journal: what a receipt says is restored, the
    restart command among it is run, and what lies there is removed, with this user's rights.
    """
    root = default_root()
    for path in (root, root / "journal" / JOURNAL_FILE):
        require_trusted(path, "what its journal says is restored with your rights", _as_its_owner(root))
    return Workspace(root, current_account())


def _as_its_owner(root: Path) -> str | None:
    """Return how to go on; None if root's own home is to be mended, or belongs to a user without a name."""
    if os.geteuid() != 0:
        return (
            f"set PGDYNO_HOME to a directory that you alone can change; or chmod go-w what is yours of {root}"
        )
    try:
        owner = pwd.getpwuid(root.stat().st_uid)
    except (OSError, KeyError):
        return None
    if owner.pw_uid == 0:
        return None
    return f"work as that user: {as_owner(owner.pw_name, root, ['pgdyno', 'status'])}"


def clear_abandoned() -> None:
    """Remove scratch directories with their servers, and groups of awake CPUs, that killed pgdynos have left.

    Raises: RefusedError as ``workspace``; ServerError if a server does not end.
    """
    workspace().clear_abandoned()
    remove_left_groups(Tree())


def available_memory_bytes() -> int:
    """Return the memory available to new servers, within the host's and all cgroup limits."""
    return available_memory(Tree(Path("/")), "self").or_else(0)


def online_cpus() -> tuple[int, ...]:
    """Return the CPUs that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def may_change_host() -> bool:
    """Whether this user may change the machine: in a container even root finds its files read-only."""
    return os.geteuid() == 0 and os.access(_SOME_SYSCTL, os.W_OK)


def machine_claimed(*, is_wanted: bool) -> AbstractContextManager[None]:
    """Return a lock that keeps other pgdynos of root, in any home, from changing the machine.

    Entering it raises LockHeldError if another one does. Who may not change the machine claims nothing.
    """
    may_claim = may_change_host() and os.access(_MACHINE_LOCK.parent, os.W_OK)
    return exclusive_lock(_MACHINE_LOCK) if is_wanted and may_claim else nullcontext()


def memory_group_place() -> GroupPlace:
    """Return where control groups with a limit on memory can be made. Raises: PrivilegeError."""
    tree = Tree(Path("/"))
    hierarchy = read_hierarchy(tree, read_membership(tree, "self"), "memory").value
    if isinstance(hierarchy, Unknown):
        raise PrivilegeError("the memory of a server cannot be limited here", detail=hierarchy.reason)
    return find_place(hierarchy.version, hierarchy.directories)
