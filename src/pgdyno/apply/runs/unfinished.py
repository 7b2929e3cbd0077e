"""Refuse changes while an earlier pgdyno run is unfinished: the present values may be partly changed."""

from __future__ import annotations

from pgdyno.apply.ledger.log import Contents
from pgdyno.apply.session.target import is_this_machine
from pgdyno.base.errors import RefusedError, StorageError
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.journal import Receipt, Target

REVERT_HOST = "pgdyno revert --host-only"


def check_unfinished(contents: Contents, server: Target | None, revert_command: str) -> None:
    """Refuse to continue after an interrupted apply or trial, on this machine or on ``server``.

    A running trial holds the journal's lock, so only a preview can encounter one here.
    Raises: RefusedError; StorageError if the journal is damaged.
    """
    if contents.damage:
        raise StorageError(
            "the journal is damaged, so no changes can be recorded in it",
            detail="; ".join(contents.damage),
            hint=f"{revert_command} --all restores the readable entries; then move the journal away",
        )
    for receipt in contents.open:
        if is_this_machine(receipt.target) and (receipt.is_unfinished or receipt.is_of_trial):
            is_ours = server is not None and receipt.server is not None and receipt.server.is_same_as(server)
            raise _interrupted(receipt, "machine", revert_command if is_ours else REVERT_HOST)
        if server is not None and receipt.is_unfinished and receipt.target.is_same_as(server):
            raise _interrupted(receipt, "server", revert_command)


def _interrupted(receipt: Receipt, place: str, revert_command: str) -> RefusedError:
    what = "trial" if receipt.is_of_trial else "setup" if receipt.is_of_machine_alone else "apply"
    return RefusedError(
        f"an earlier {what} ({receipt.apply_id}) was interrupted on this {place}",
        detail=f"{display_name(receipt.key)} may or may not be changed",
        hint=f"{revert_command}, then try again",
    )
