"""Control groups: the directories with the limits of a process.

A limit may be set on the process's group or on any ancestor, in a v1 hierarchy per controller, in the single
v2 hierarchy, or (hybrid) in both. /proc/PID/cgroup names the group relative to the reader's cgroup namespace,
and mountinfo's root field names the mounted part of the hierarchy; finding the directory takes both. Groups
above the mounted part are invisible inside a container.

Source: cgroups(7), cgroup_namespaces(7), Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree, parsed
from pgdyno.host.machine.mounts import MountEntry, read_mountinfo

_UNIFIED = ""  # the controller name in the line of v2, "0::/path"
_IN_EVERY_GROUP = "cgroup.procs"
_NO_GROUP = Unknown("not a control group: it was removed, or another file system is mounted over it")
_INITIAL_NAMESPACE = "cgroup:[4026531835]"  # PROC_CGROUP_INIT_INO in Linux, include/linux/proc_ns.h


@dataclass(frozen=True)
class Membership:
    """The groups of one process, and the mounts for reading their files."""

    groups: dict[str, str]  # controller → path
    mounts: tuple[MountEntry, ...]
    is_namespaced: bool  # if so, the path "/" may be a group below the real root


@dataclass(frozen=True)
class Hierarchy:
    """Directories of one controller, from the top of the mount to the process's group.

    No directories: no group can limit the process (the real root group, or a kernel without groups).
    """

    version: int
    directories: tuple[str, ...]


def read_membership(tree: Tree, process: str) -> Fact[Membership]:
    """Return the groups of ``process`` (``self`` or a process id)."""
    mounts = read_mountinfo(tree, "self")  # not the process's: this process opens the files
    groups = tree.read(f"/proc/{process}/cgroup", parse_groups)
    if groups.value == NO_SUCH_FILE and tree.names(f"/proc/{process}").is_known:
        groups = Fact({}, groups.source)  # the kernel was built without control groups
    if isinstance(groups.value, Unknown):
        return Fact(groups.value, groups.source)
    found = groups.value
    namespace = tree.link("/proc/self/ns/cgroup").or_else(_INITIAL_NAMESPACE)
    is_namespaced = namespace != _INITIAL_NAMESPACE
    return Fact(parsed(mounts, lambda known: Membership(found, known, is_namespaced)).value, groups.source)


def read_hierarchy(tree: Tree, membership: Fact[Membership], controller: str) -> Fact[Hierarchy]:
    """Return the directories that limit ``controller``; unknown if the lowest is not visible as a group.

    Without that check an invisible group would look like a group without limits.
    """
    hierarchy = parsed(membership, lambda known: find_hierarchy(known, controller))
    directories = () if isinstance(hierarchy.value, Unknown) else hierarchy.value.directories
    if directories:
        lowest = tree.names(directories[-1])
        if isinstance(lowest.value, Unknown) and lowest.value != NO_SUCH_FILE:
            return Fact(lowest.value, lowest.source)
        if _IN_EVERY_GROUP not in lowest.or_else(()):
            return Fact(_NO_GROUP, lowest.source)
    return hierarchy


def cgroup_version(mounts: tuple[MountEntry, ...]) -> str:
    """Return v1, v2, hybrid (both are mounted) or none."""
    kinds = {mount.filesystem for mount in mounts} & {"cgroup", "cgroup2"}
    if len(kinds) == 2:
        return "hybrid"
    return {"cgroup": "v1", "cgroup2": "v2"}[kinds.pop()] if kinds else "none"


def parse_groups(text: str) -> dict[str, str]:
    """Parse /proc/PID/cgroup into controller → path; v2's controller is the empty string."""
    groups: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def find_hierarchy(membership: Membership, controller: str) -> Hierarchy | Unknown:
    """Return the hierarchy in which ``controller`` limits the process: its v1 hierarchy if any, else v2's."""
    version = 1 if controller in membership.groups else 2
    path = membership.groups.get(controller if version == 1 else _UNIFIED)
    if path is None:
        return Hierarchy(version, ())
    mounts = [mount for mount in membership.mounts if _carries(mount, version, controller)]
    for mount in reversed(mounts):  # the last mount on a mount point hides the earlier ones
        below = path_below(path, mount.root)
        if below is not None:
            return Hierarchy(version, directories_down(mount.mount_point, below))
    if path == "/" and not membership.is_namespaced:
        return Hierarchy(version, ())
    if not mounts:
        return Unknown(f"the hierarchy of control group {path} is not mounted")
    last = mounts[-1]
    return Unknown(f"control group {path} is outside {last.mount_point}, which shows {last.root}")


def path_below(path: str, root: str) -> tuple[str, ...] | None:
    """Return the path components from ``root`` down to ``path``; None if it is not below.

    Both are relative to a cgroup namespace, so they may start with ``/..``: ``/../db`` is below ``/..``.
    """
    steps, prefix = _steps(path), _steps(root)
    below = steps[len(prefix) :]
    return None if steps[: len(prefix)] != prefix or ".." in below else below


def directories_down(top: str, steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``top`` and every directory down the path: /a, (b, c) → /a, /a/b, /a/b/c."""
    return tuple("/".join((top, *steps[:depth])) for depth in range(len(steps) + 1))


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step for step in path.split("/") if step)


def _carries(mount: MountEntry, version: int, controller: str) -> bool:
    if version == 2:
        return mount.filesystem == "cgroup2"
    return mount.filesystem == "cgroup" and controller in mount.options
