"""Check on a scratch server whether other programs can run an existing server. Changes nothing."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.session import Session
from pgdyno.apply.session.target import bound_to
from pgdyno.base.errors import PrivilegeError, RefusedError, ServerStartError
from pgdyno.builds.product.manifest import Manifest, read_manifest
from pgdyno.builds.spec.instructions import lacking as lacking_instructions
from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.cpu import inspect_cpu
from pgdyno.plan.inspection.start_check import StartCheck
from pgdyno.postgres.connection.connection import connect, require_no_pooler
from pgdyno.postgres.connection.network_access import login_rules
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.inspection.server_requirements import (
    ConnectTo,
    paths_of,
    preloaded,
    read_demands,
    read_offers,
)
from pgdyno.postgres.process.account import Account, account_of
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.postgres.requirements import Offers, Requirements, changed, foreign, lacking, version_conflict
from pgdyno.postgres.server import Server

_NOT_THERE = ("could not access file", "could not load library")  # messages for missing libraries


@dataclass(frozen=True)
class InterchangeCheck:
    """Tests other programs in a workspace. ``connect_to`` connects to one of the server's databases."""

    workspace: Workspace
    connect_to: ConnectTo

    def __call__(self, session: Session, files: ServerFiles | None, programs: Path) -> tuple[str, ...]:
        """Return sentences on the changes for the server with these programs.

        Raises: RefusedError with every reason why they cannot run it; PrivilegeError without access to the
        server's files; ServerError if the programs do not run at all; RefusedError behind a pooler.
        """
        require_no_pooler(session.connection)  # other clients would inherit the sessions opened here
        owner = _owner(session, files)
        target = installation_at(programs, owner)
        _require_cpu(target)
        server = inspect_server(session.connection)
        if why := version_conflict(server.version, server.major, target.version, target.major):
            raise RefusedError(f"{target.name} cannot run this server", detail=why)
        demands = read_demands(session.connection, self._databases_of(session), server)
        _require_no_foreign(target, demands, has_paths=bool(paths_of(server)))
        offers = self._offers(target, server, demands)
        if missing := lacking(demands, offers):
            raise _cannot_run(target, "; ".join(missing))
        return changed(demands, offers)

    def _databases_of(self, session: Session) -> ConnectTo:
        """Return a function that connects to databases of the session's server only."""
        return lambda database: bound_to(session.target, lambda: self.connect_to(database))()

    def _offers(self, target: Installation, server: Server, demands: Requirements) -> Offers:
        """Query a scratch server of the programs, with the real server's settings and preloaded libraries."""
        paths = paths_of(server)
        try:
            return self._query(target, server, demands, {**paths, **preloaded(server)})
        except ServerStartError as error:
            failure = error
        # The reason may be a missing preloaded library: report it together with everything else missing.
        try:
            offers = self._query(target, server, demands, paths)
        except ServerStartError as error:
            failure = error
        else:
            if any(why.startswith(_NOT_THERE) for why in offers.refused.values()):
                return offers
        raise _cannot_run(target, f"its scratch server does not start: {failure.detail}") from failure

    def _query(
        self, target: Installation, server: Server, demands: Requirements, settings: dict[str, str]
    ) -> Offers:
        check = StartCheck(target, self.workspace)
        with self.workspace.scratch() as own, login_rules(own) as rules:
            settings = {**settings, "hba_file": str(rules.path)}
            with check.started(server, settings) as scratch, closing(connect(scratch.dsn)) as connection:
                return read_offers(connection, demands, rules)


def _require_cpu(target: Installation) -> None:
    """Refuse code for a different CPU.

    Programs that pgdyno did not build pass: their requirements are unknown.
    """
    if target.foreign_machine:
        raise RefusedError(
            f"{target.name} is for a different machine: {target.foreign_machine}",
            detail="on this machine it runs under an emulator, far too slowly for a server in use",
            hint="make a package with pgdyno build deb, and switch on such a machine",
        )
    manifest = read_manifest(target.bin_directory.parent).value
    if not isinstance(manifest, Manifest) or manifest.optimised is None:
        return
    features = inspect_cpu(Tree(Path("/")), "self").isa_features.or_none()
    if features is None:
        return
    if missing := lacking_instructions(manifest.optimised.instructions, features):
        raise RefusedError(
            f"{target.name} uses instructions that this CPU does not support",
            detail=", ".join(missing),
            hint="build it on a machine like this one, or with --portable",
        )


def _require_no_foreign(target: Installation, demands: Requirements, *, has_paths: bool) -> None:
    """Refuse patched programs for a server that uses libraries not built from the same patched source."""
    manifest = read_manifest(target.bin_directory.parent).value
    if not isinstance(manifest, Manifest) or manifest.patched is None:
        return
    if found := foreign(demands, manifest.patched.own, has_paths=has_paths):
        raise RefusedError(
            f"{target.name} is a patched PostgreSQL, but the server uses libraries not built with it",
            detail=f"not built from the same source: {', '.join(found)}",
            hint="build them with pgdyno build --extensions, or switch to a build without patches",
        )


def _owner(session: Session, files: ServerFiles | None) -> Account:
    """Return the server's user.

    Raises: RefusedError; PrivilegeError if this process cannot act as that user.
    """
    if files is None:
        raise RefusedError(
            "the server cannot be switched from here, because its files are not accessible",
            detail=f"its data directory: {session.target.data_directory or 'not visible to this role'}",
            hint="run pgdyno as root or as the server's user, on its machine or in its container",
        )
    uid = files.owner()
    if os.geteuid() not in (0, uid):
        raise PrivilegeError(
            "only root and the server's user may switch it",
            detail=f"{files.path} belongs to user {uid}",
        )
    try:
        return account_of(uid)
    except KeyError as error:
        raise RefusedError(
            "other programs cannot be tested as the server's user",
            detail=f"{files.path} belongs to user {uid}, which has no name on this machine",
            hint="run pgdyno where that user has a name: in the server's container",
        ) from error


def _cannot_run(target: Installation, why: str) -> RefusedError:
    return RefusedError(
        f"{target.name} cannot run this server as it is",
        detail=why,
        hint="nothing was changed; add missing features with pgdyno build --like and --extensions",
    )
