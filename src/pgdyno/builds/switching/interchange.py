"""Check on a scratch server whether other programs can run a server as it is.

Changes nothing.
"""

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
from pgdyno.postgres.connection.login_rules import login_rules
from pgdyno.postgres.demands import Demands, Offers, changed, foreign, lacking, unfit_version
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.inspection.interchange import ConnectTo, paths_of, preloaded, read_demands, read_offers
from pgdyno.postgres.process.account import Account, account_of
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.postgres.server import Server

_NOT_THERE = ("could not access file", "could not load library")  # what the server says of such libraries


@dataclass(frozen=True)
class InterchangeCheck:
    """Tries other programs in a workspace. ``connect_to`` leads to the server's databases."""

    workspace: Workspace
    connect_to: ConnectTo

    def __call__(self, session: Session, files: ServerFiles | None, programs: Path) -> tuple[str, ...]:
        """Return sentences on how the server would differ with these programs.

        Raises: RefusedError with all that keeps them from running it; PrivilegeError if we may not look;
        ServerError if they do not run at all; RefusedError behind a pooler.
        """
        require_no_pooler(session.connection)  # a session of each database would be left to others
        owner = _owner(session, files)
        target = installation_at(programs, owner)
        _require_cpu(target)
        server = inspect_server(session.connection)
        if why := unfit_version(server.version, server.major, target.version, target.major):
            raise RefusedError(f"{target.name} cannot run this server", detail=why)
        demands = read_demands(session.connection, self._databases_of(session), server)
        _require_no_foreign(target, demands, has_paths=bool(paths_of(server)))
        offers = self._offers(target, server, demands)
        if missing := lacking(demands, offers):
            raise _cannot_run(target, "; ".join(missing))
        return changed(demands, offers)

    def _databases_of(self, session: Session) -> ConnectTo:
        """Return a function that connects to the databases of the session's server only."""
        return lambda database: bound_to(session.target, lambda: self.connect_to(database))()

    def _offers(self, target: Installation, server: Server, demands: Demands) -> Offers:
        """Ask a scratch server of the programs, with the real one's settings and preloaded libraries."""
        paths = paths_of(server)
        try:
            return self._asked(target, server, demands, {**paths, **preloaded(server)})
        except ServerStartError as error:
            failure = error
        # It may be a preloaded library that is missing: then that is said, with all else that is.
        try:
            offers = self._asked(target, server, demands, paths)
        except ServerStartError as error:
            failure = error
        else:
            if any(why.startswith(_NOT_THERE) for why in offers.refused.values()):
                return offers
        raise _cannot_run(target, f"a scratch server of it does not come up: {failure.detail}") from failure

    def _asked(
        self, target: Installation, server: Server, demands: Demands, settings: dict[str, str]
    ) -> Offers:
        check = StartCheck(target, self.workspace)
        with self.workspace.scratch() as own, login_rules(own) as rules:
            settings = {**settings, "hba_file": str(rules.path)}
            with check.started(server, settings) as scratch, closing(connect(scratch.dsn)) as connection:
                return read_offers(connection, demands, rules)


def _require_cpu(target: Installation) -> None:
    """Refuse code for another CPU than this one.

    Programs that pgdyno has not built carry no such information.
    """
    if target.foreign_machine:
        raise RefusedError(
            f"{target.name} is for another machine: {target.foreign_machine}",
            detail="here an emulator runs it, far too slowly for a server that is in use",
            hint="switch on such a machine, where pgdyno build deb takes it",
        )
    manifest = read_manifest(target.bin_directory.parent).value
    if not isinstance(manifest, Manifest) or manifest.optimised is None:
        return
    features = inspect_cpu(Tree(Path("/")), "self").isa_features.or_none()
    if features is None:
        return
    if missing := lacking_instructions(manifest.optimised.instructions, features):
        raise RefusedError(
            f"{target.name} has instructions that this CPU does not know",
            detail=", ".join(missing),
            hint="build it on a machine like this one, or with --portable",
        )


def _require_no_foreign(target: Installation, demands: Demands, *, has_paths: bool) -> None:
    """Refuse patched programs for a server that uses libraries compiled from other sources than theirs."""
    manifest = read_manifest(target.bin_directory.parent).value
    if not isinstance(manifest, Manifest) or manifest.patched is None:
        return
    if found := foreign(demands, manifest.patched.own, has_paths=has_paths):
        raise RefusedError(
            f"{target.name} is a patched PostgreSQL, and the server uses libraries of others",
            detail=f"not built from the same sources: {', '.join(found)}",
            hint="pgdyno build --extensions builds them with it; or switch to a build without patches",
        )


def _owner(session: Session, files: ServerFiles | None) -> Account:
    """Return the user that the server runs as. Raises: RefusedError, PrivilegeError if we cannot be him."""
    if files is None:
        raise RefusedError(
            "the server's files are not accessible, so that it cannot be switched from here",
            detail=f"its data directory: {session.target.data_directory or 'not shown to this role'}",
            hint="run pgdyno as root or as the server's user, on its machine or in its container",
        )
    uid = files.owner()
    if os.geteuid() not in (0, uid):
        raise PrivilegeError(
            "only root and the server's own user may switch it",
            detail=f"{files.path} belongs to user {uid}",
        )
    try:
        return account_of(uid)
    except KeyError as error:
        raise RefusedError(
            "whether the server's user can run other programs cannot be tried",
            detail=f"{files.path} belongs to user {uid}, who has no name on this machine",
            hint="run pgdyno where he has one: in the server's container",
        ) from error


def _cannot_run(target: Installation, why: str) -> RefusedError:
    return RefusedError(
        f"{target.name} cannot run this server as it is",
        detail=why,
        hint="nothing was changed; pgdyno build --like and --extensions add missing features",
    )
