"""Boot-time sources of kernel values, and their precedence in case of conflict.

Sources: sysctl.d(5); sysctl(8) of procps; sd_booted(3), which systemd's own programs use to detect systemd.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from pgdyno.base.facts import Fact
from pgdyno.host.files.tree import EMPTY, Tree
from pgdyno.host.kernel_file import SYSCTL_ROOT
from pgdyno.host.machine.cpu import inspect_cpu

_SYSTEMD, _UDEV = "/run/systemd/system", "/run/udev"
_SYSCTL_PROGRAMS = ("/usr/sbin/sysctl", "/sbin/sysctl", "/usr/bin/sysctl", "/bin/sysctl")
_CONTAINER = "container:"

# Of files with the same name only the first is read. Only sysctl(8) reads the last directory, not systemd.
_DIRECTORIES = (
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
)
_LAST = "/etc/sysctl.conf"


def why_not_this_etc(tree: Tree) -> str | None:
    """Return the reason why the visible /etc is not used at boot; None if it is."""
    where = inspect_cpu(tree, "self").virtualisation
    if not where.or_else("").startswith(_CONTAINER):
        return None
    return f"pgdyno runs in a container ({where.value}); its /etc is not the machine's"


def why_no_sysctls(tree: Tree) -> str | None:
    """Return the reason why nothing reads /etc/sysctl.d at boot; None if something does."""
    if _has_directory(tree, _SYSTEMD) or any(_is_file(tree, path) for path in _SYSCTL_PROGRAMS):
        return None
    return "neither systemd nor the program sysctl is installed to set them"


def why_no_udev(tree: Tree) -> str | None:
    """Return the reason why nothing reads udev's rules; None if something does."""
    return None if _has_directory(tree, _UDEV) else "udev is not running"


def why_no_tmpfiles(tree: Tree) -> str | None:
    """Return the reason why nothing reads /etc/tmpfiles.d at boot; None if something does."""
    return None if _has_directory(tree, _SYSTEMD) else "systemd, which reads tmpfiles.d, is not running"


def set_later(tree: Tree, path: str, keys: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield a file and a key for each of these sysctls that is set again after the file at ``path``.

    Keys are paths: ``/proc/sys/vm/swappiness``.
    """
    name = path.rpartition("/")[2]
    files: dict[str, str] = {}
    for directory in _DIRECTORIES:
        for other in tree.names(directory).or_else(()):
            if other.endswith(".conf") and other > name:
                files.setdefault(other, f"{directory}/{other}")
    in_order = [files[other] for other in sorted(files)]
    is_linked = any(tree.is_same_file(_LAST, file).or_else(default=False) for file in in_order)
    is_read = not is_linked and not _has_directory(tree, _SYSTEMD)
    for file in (*in_order, *([_LAST] if is_read else [])):
        patterns = tuple(_patterns_in(tree.text(file)))
        yield from ((file, key) for key in keys if any(fnmatchcase(key, pattern) for pattern in patterns))


def _patterns_in(text: Fact[str]) -> Iterator[str]:
    """Yield the settings of a sysctl.d file as paths; names may contain ``*``."""
    for line in text.or_else("").splitlines():
        name, is_set, _ = line.partition("=")
        name = name.strip().removeprefix("-")
        if is_set and not line.lstrip().startswith(("#", ";")):
            yield SYSCTL_ROOT + _as_path(name)


def _as_path(name: str) -> str:
    """Convert a name into a path: if its first separator is a dot, dots and slashes are swapped."""
    first = next((char for char in name if char in "./"), "/")
    return name if first == "/" else name.translate(str.maketrans("./", "/."))


def _has_directory(tree: Tree, directory: str) -> bool:
    return tree.names(directory).is_known


def _is_file(tree: Tree, path: str) -> bool:
    text = tree.text(path, limit_bytes=1)
    return text.is_known or text.value == EMPTY
