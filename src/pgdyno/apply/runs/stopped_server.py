"""A server that does not accept connections: its open receipts and the location of its files.

It is identified by its address at the time of the change, or by its files. Receipts of other servers are
never changed or shown for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pgdyno.apply.ledger.log import Contents
from pgdyno.apply.runs.host_run import receipts_of_host
from pgdyno.apply.runs.manual_commands import still_changed
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.target import is_on_this_machine
from pgdyno.base.errors import ConnectionFailedError, UsageError
from pgdyno.model.plans.journal import Receipt, Target


@dataclass(frozen=True)
class Stopped:
    """A server that is down: its open receipts, newest first, and its files."""

    receipts: tuple[Receipt, ...]
    files: ServerFiles

    @property
    def target(self) -> Target:
        """The server at the time of its last change."""
        return self.receipts[0].target


def find_stopped(access: ServerAccess, contents: Contents, failure: ConnectionFailedError) -> Stopped:
    """Return the server that does not accept connections because of ``failure``.

    Raises: the failure if there is nothing to revert on this server; UsageError if it could be one of
    several; StillChangedError if its files are not accessible or its postmaster runs.
    """
    receipts = receipts_of_named(access, contents)[::-1]
    if not receipts:
        raise _nothing_of_this_server(contents, failure)
    targets = list(dict.fromkeys(receipt.target for receipt in receipts))
    if not all(targets[0].is_same_as(target) for target in targets):
        raise UsageError(
            "several servers have open changes, and it is ambiguous which one is meant",
            detail="; ".join(f"{one.address}, data directory {one.data_directory}" for one in targets),
            hint="name one by its own address, or a stopped one by its files with --pgdata DIR",
        )
    files = files_of_named(access, receipts)
    has_postmaster = files is not None and files.has_postmaster()
    if files is None or has_postmaster:
        raise still_changed(
            failure, receipts, is_server_up=has_postmaster, revert_command=access.revert_command
        ) from failure
    return Stopped(receipts, files)


def receipts_of_named(access: ServerAccess, contents: Contents) -> tuple[Receipt, ...]:
    """Return the open receipts of the server that the user named, oldest first, without contacting it.

    Raises: DataDirectoryError for a named directory that is not a server's data directory.
    """
    files = None if access.data_directory is None else ServerFiles(access.data_directory)
    if files is not None and files.path.is_dir():
        files.owner()  # raises with the reason if the named files cannot be used
    return tuple(
        receipt
        for receipt in contents.open
        if receipt.target.address in access.addresses or (files is not None and files.is_of(receipt.target))
    )


def files_of_named(access: ServerAccess, receipts: tuple[Receipt, ...]) -> ServerFiles | None:
    """Return the files of the server that these receipts are about; None if they are not accessible.

    Unless the user named them, the data directory reported by the server is used, but only if it ran on this
    machine: a primary elsewhere has the same system identifier, and often the same path, as its standby here.
    """
    places = {receipt.target.data_directory for receipt in receipts}
    if access.data_directory is not None:
        files = ServerFiles(access.data_directory)
    elif len(places) == 1 and None not in places and all(is_on_this_machine(one.target) for one in receipts):
        files = ServerFiles(Path(str(places.pop())))
    else:
        return None
    return files if all(files.is_of(receipt.target) for receipt in receipts) else None


def _nothing_of_this_server(contents: Contents, failure: ConnectionFailedError) -> ConnectionFailedError:
    places = list(dict.fromkeys(one.target.address for one in contents.open if not one.is_on_host))
    hints = []
    if places:
        hints.append(
            f"the journal has changes of the server at {', and at '.join(places)}: use exactly this address "
            "in --dsn, or name its files with --pgdata DIR if it is down"
        )
    if receipts_of_host(contents.receipts, None):
        hints.append("pgdyno revert --host-only undoes the changes of this machine")
    if not hints:
        return failure
    return ConnectionFailedError(failure.message, detail=failure.detail, hint="; ".join(hints))
