"""How a machine's CPUs idle, as its files tell."""

from __future__ import annotations

from pgdyno.host.awake import MAY_SHRINK, POLL_NS, POLLING
from pgdyno.host.files.tree import Tree

_WORDS = ("idle=", "cpuidle", "haltpoll", "intel_idle", "processor.max_cstate", "nohlt", "nohz")


def boot_line(tree: Tree) -> tuple[str, ...]:
    """Return the words of the kernel's command line that concern idling."""
    return tuple(word for word in tree.text("/proc/cmdline").or_else("").split() if word.startswith(_WORDS))


def polling_wanted(tree: Tree) -> dict[str, str]:
    """Return the values to write for idle CPUs to poll, by path, in this order.

    Files that already have the value are left out.
    """
    return {path: value for path, value in POLLING.items() if tree.text(path).or_none() != value}


def why_no_polling(tree: Tree) -> str | None:
    """Say why the kernel cannot be made to poll for a while; None if it can."""
    if not tree.text(POLL_NS).is_known:
        return "the kernel has no module haltpoll"
    if tree.text(MAY_SHRINK).or_none() == "N" and POLL_NS in polling_wanted(tree):
        return f"{MAY_SHRINK} is N, so that CPUs would go on polling afterwards"
    return None
