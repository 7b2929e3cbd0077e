"""``pgdyno switch``: let other programs run a server's data, with a receipt; ``pgdyno revert`` goes back.

Order: the server is asked what it needs → a scratch server of the other programs, set as the real one is,
shows that they have it → receipt → what chooses the programs is changed → restart → the server says what
runs it. If it does not come up, or anything else runs it, the former programs run it again before the end.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.app import wiring
from pgdyno.app.apply import ApplyRequest, apply_plan, preview_apply
from pgdyno.app.start_check import StartCheck
from pgdyno.host.cpu import inspect_cpu
from pgdyno.host.tree import Tree
from pgdyno.journal.access import ServerAccess
from pgdyno.journal.session import Session, reading_session
from pgdyno.journal.target import bound_to
from pgdyno.journal.writers.program import program_writers, running_programs
from pgdyno.model import pg_ctl_conf
from pgdyno.model.errors import PrivilegeError, RefusedError, UsageError
from pgdyno.model.interchange import Demands, Offers, changed, lacking, unfit_version
from pgdyno.model.journal import ApplyResult
from pgdyno.model.plan import PG_CTL_OPTIONS, PROGRAM_LINK, Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.model.server import Server
from pgdyno.server.account import account_of
from pgdyno.server.connection import connect, describe
from pgdyno.server.inspection import inspect_server
from pgdyno.server.installation import Installation, installation_at
from pgdyno.server.interchange import ConnectTo, preloaded, read_demands, read_offers
from pgdyno.server.registry import find_installation
from pgdyno.toolchain.instructions import lacking as lacking_instructions
from pgdyno.toolchain.manifest import Manifest, read_manifest

LEVER = "optimised_build"
_UPDATES = "updates of the former programs do not reach it: build and switch again after each release"


@dataclass(frozen=True)
class SwitchRequest:
    """``to``: a server's name or a prefix. ``link``: what it is started through; None: by pg_ctl.conf."""

    to: str
    link: Path | None = None
    allow_restart: bool = False
    is_dry_run: bool = False


def switch(access: ServerAccess, request: SwitchRequest) -> ApplyResult:
    """Switch a running server to other programs; with a dry run make every check and say what would be done.

    Raises: UsageError; RefusedError if they cannot run it as it is; whatever apply raises.
    """
    target = find_installation(request.to, wiring.workspace())
    _require_cpu(target)
    with reading_session(access.connect) as session:
        server = inspect_server(session.connection)
        _require_within_reach(access, session, target)
        _require_version(server, target)
        demands = read_demands(session.connection, _databases_of(access, session), server)
        change = _change(request, server, target, running_programs(session.connect))
        is_due = _is_due(session, change, target)
        planned_on = describe(session.connection)
    offers = _offers(target, server, demands)
    _require(demands, offers, target)
    apply_request = ApplyRequest(
        _plan(change, target, is_due=is_due),
        allow_restart=request.allow_restart,
        is_start_tried=True,
        planned_on=planned_on,
    )
    result = (preview_apply if request.is_dry_run else apply_plan)(access, apply_request)
    return replace(result, notes=(*result.notes, *changed(demands, offers), _UPDATES))


def _databases_of(access: ServerAccess, session: Session) -> ConnectTo:
    """Return what connects to any database of the session's server, and of no other one."""
    connect_to = access.connect_to
    assert connect_to is not None  # noqa: S101 — wiring says how
    return lambda database: bound_to(session.target, lambda: connect_to(database))()


def _require_cpu(target: Installation) -> None:
    """Refuse code for another CPU than this one. What pgdyno has not built says nothing of itself."""
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


def _require_within_reach(access: ServerAccess, session: Session, target: Installation) -> None:
    """Refuse a server elsewhere, and programs that the data directory's owner cannot run."""
    files = access.files(session)
    if files is None:
        raise RefusedError(
            "the server's files are out of reach, so that it cannot be switched from here",
            detail=f"its data directory: {session.target.data_directory or 'not shown to this role'}",
            hint="run pgdyno as root or as the server's user, on its machine or in its container",
        )
    owner = files.path.stat().st_uid
    if os.geteuid() not in (0, owner):
        raise PrivilegeError(
            "only root and the server's own user may switch it",
            detail=f"{files.path} belongs to user {owner}",
        )
    installation_at(target.bin_directory, account_of(owner))


def _require_version(server: Server, target: Installation) -> None:
    if why := unfit_version(server.version, server.major, target.version, target.major):
        raise RefusedError(f"{target.name} cannot run this server", detail=why)


def _offers(target: Installation, server: Server, demands: Demands) -> Offers:
    """Ask a scratch server of the programs, with the real one's settings and preloaded libraries.

    Raises: SettingError, ServerStartError in its own words if it does not come up.
    """
    check = StartCheck(target, wiring.workspace())
    with check.started(server, preloaded(server)) as scratch, closing(connect(scratch.dsn)) as connection:
        return read_offers(connection, demands.libraries)


def _require(demands: Demands, offers: Offers, target: Installation) -> None:
    if missing := lacking(demands, offers):
        raise RefusedError(
            f"{target.name} cannot run this server as it is",
            detail="; ".join(missing),
            hint="pgdyno build has --like and --extensions for what is missing; nothing was changed",
        )


def _change(request: SwitchRequest, server: Server, target: Installation, running: str) -> Change:
    if request.link is not None:
        kind, key, value = PROGRAM_LINK, *_through_link(request.link.absolute(), target, running)
    else:
        kind, key, value = PG_CTL_OPTIONS, *_through_pg_ctl(server, target)
    return Change(LEVER, kind, key, running, value, Effect.RESTART)


def _through_link(link: Path, target: Installation, running: str) -> tuple[str, str]:
    """Return the link and what it is to lead to. Raises: UsageError if the server is started otherwise."""
    leads_to = (link / "bin").resolve()
    if link.is_symlink() and str(leads_to) != running:
        raise UsageError(
            f"the server is not started through {link}",
            detail=f"it runs from {running}, and the link leads to {leads_to}",
        )
    return str(link), str(target.bin_directory.resolve().parent)


def _through_pg_ctl(server: Server, target: Installation) -> tuple[str, str]:
    """Return Debian's pg_ctl.conf and its options. Raises: UsageError if this is no cluster of Debian's."""
    configuration = Path(server.settings["config_file"].setting)
    file, program = configuration.with_name("pg_ctl.conf"), target.bin_directory.resolve() / "postgres"
    if not file.is_file():
        raise UsageError(
            "pgdyno does not know what chooses this server's programs",
            detail=f"there is no pg_ctl.conf beside {configuration}, as clusters of Debian's have",
            hint="start it through a symbolic link to the prefix, and name that with --link; or stop it, and "
            f"start it with {target.bin_directory}/pg_ctl yourself",
        )
    if " " in str(program):
        raise UsageError(f'"{program}" has spaces', detail=f"{file} splits its options at them")
    former = pg_ctl_conf.options_in(file.read_text(errors="surrogateescape")) or ""
    return str(file), pg_ctl_conf.naming(former, program)


def _is_due(session: Session, change: Change, target: Installation) -> bool:
    """Whether anything is to be done: the choice has to be another one, or others run than were chosen."""
    chosen = program_writers(session.connect)[change.kind].value(change.key)
    return (chosen, change.current) != (change.value, str(target.bin_directory.resolve()))


def _plan(change: Change, target: Installation, *, is_due: bool) -> Plan:
    line = PlanLine(
        change=change,
        layer=Layer.COMPILER,
        reason=f"the server is to be run by {target.title}",
        evidence="asked for",
        risk=Risk.RESTART,
        undo="pgdyno revert: the former programs run it again; nothing in its data has changed",
    )
    return Plan((line,) if is_due else (), (), (), None)
