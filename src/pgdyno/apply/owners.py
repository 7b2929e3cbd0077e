"""Refuse changes of host values that another program manages, perhaps only since the plan was made."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base.errors import OwnershipError
from pgdyno.host.files.tree import Tree
from pgdyno.host.kernel_file import display_name
from pgdyno.host.machine.owners import find_owners
from pgdyno.model.plans.plan import Change


def check_owners(tree: Tree, changes: Sequence[Change]) -> None:
    """Refuse changes that another program would overwrite with its own values. Raises: OwnershipError."""
    if not changes:
        return
    for owner in find_owners(tree).or_else(()):
        mine = [display_name(change.key) for change in changes if owner.sets(change.key)]
        if mine:
            raise OwnershipError(owner.warning, detail=f"requested: {', '.join(mine)}", hint=owner.instead)
