"""Kernel files that a study may set: those that levers change, and those that a user allows by name.

This is checked before anything runs. Restoring needs no permission: a receipt only has to be one that pgdyno
can have written, see ``apply/ledger/receipt.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from os.path import realpath

from pgdyno.base.errors import PermissionNotGivenError, RefusedError, UsageError
from pgdyno.host.kernel_file import COUPLED, display_name, sysctl_path
from pgdyno.model.variants.durability import why_refused_file
from pgdyno.model.variants.variant import KeyKind, Variant, kind_of_key, setting_key
from pgdyno.plan.engine.context import matches
from pgdyno.plan.levers import load
from pgdyno.plan.levers.system.checked_network import AFFINITIES
from pgdyno.plan.peers.tuned_profile import PROFILE

_POOL = sysctl_path("vm.nr_hugepages")  # another name of a pool that a lever fills


def require_allowed_files(variants: Iterable[Variant], allowed: Collection[str]) -> None:
    """Refuse files that could harm the machine, and files that are not allowed. ``allowed``: paths.

    Raises: RefusedError, PermissionNotGivenError.
    """
    for variant in variants:
        for path in variant.files:
            if not is_levers(path):
                _require_allowed(variant.name, path, allowed)


def allowed_file(text: str) -> str:
    """Return the path of a kernel file that a user allows.

    Raises: UsageError for anything else.
    """
    path = setting_key(text)
    if kind_of_key(path) is not KeyKind.FILE:
        raise UsageError(
            f'--allow-file "{text}" is not a kernel file',
            hint="name a sysctl (vm.overcommit_memory), or a file below /proc/sys, /proc/irq or /sys",
        )
    return path


def is_levers(path: str) -> bool:
    """Whether a plan or a bundled study sets this file, or a lever suggests it for a variant."""
    return any(matches(path, pattern) for pattern in _levers_files())


@cache
def _levers_files() -> tuple[str, ...]:
    levers = [module.LEVER for module in load().values()]
    set_by_plans = [*(file for lever in levers for file in lever.files), *PROFILE]
    instant = [file for lever in levers if lever.is_instant for file in lever.reads]
    other_ways = [COUPLED[file] for file in set_by_plans if file in COUPLED]
    return (*set_by_plans, *instant, *other_ways, _POOL, AFFINITIES)


def _require_allowed(variant: str, path: str, allowed: Collection[str]) -> None:
    reason = why_refused_file(path) or why_refused_file(realpath(path))
    if reason is not None:
        raise RefusedError(
            f'variant "{variant}" may not set {display_name(path)}', detail=reason, hint="omit it"
        )
    if path not in allowed:
        name = display_name(path) if setting_key(display_name(path)) == path else path
        raise PermissionNotGivenError(
            f'variant "{variant}" sets {name}, which was not allowed',
            detail="no lever of pgdyno sets it: its effect on this machine is untested",
            hint=f"if you know its effect, add --allow-file {name}",
        )
