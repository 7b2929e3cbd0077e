"""``pgdyno switch``: run a server's data with other programs, with a receipt to revert.

Order: the server is asked what it needs → a scratch server of the other programs, set as the real one is,
shows that they have it → receipt → what chooses the programs is changed → restart → the server says what
runs it. If it does not come up, or anything else runs it, the former programs run it again before the end.

The file or link that chooses a server's programs is proven to be the server's own. The server itself names
its configuration, and root follows: another user's server could name the files of a
cluster that is not its own.
"""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan, preview_apply
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.runs.unfinished import check_unfinished
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.session import reading_session
from pgdyno.apply.writers.program import program_writers, running_programs
from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.builds.product.manifest import Manifest, read_manifest
from pgdyno.model.plans.journal import ApplyResult
from pgdyno.model.plans.plan import PG_CTL_OPTIONS, PROGRAM_LINK, Change, Effect, Plan, PlanLine
from pgdyno.model.plans.recipe import UNHARDENED
from pgdyno.plan.levers.compiler.optimised_build import LEVER
from pgdyno.postgres import pg_ctl_conf
from pgdyno.postgres.connection.connection import describe
from pgdyno.postgres.inspection.configuration_file import read_configuration
from pgdyno.postgres.process.account import acting_as
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import NEWEST, find_installation
from pgdyno.postgres.server import Server

_UPDATES = "updates of the former programs do not reach it: build and switch again after each release"
_DEBIANS = Path("/usr/lib/postgresql")  # where pg_ctlcluster looks for programs: PgCommon.pm
_UNQUOTED = re.compile(r"[^\s'\"\\]+")


@dataclass(frozen=True)
class SwitchRequest:
    """``to``: a server's name or a prefix. ``link``: the link it starts through; None: pg_ctl.conf.

    ``accepts_patches``: whether ``to`` may be a build from sources that pgdyno has patched.
    """

    to: str
    link: Path | None = None
    allow_restart: bool = False
    is_dry_run: bool = False
    accepts_patches: bool = False


def switch(access: ServerAccess, request: SwitchRequest, progress: Progress) -> ApplyResult:
    """Switch a running server to other programs; with a dry run, only check and describe.

    Raises: UsageError; RefusedError if they cannot run it as it is; whatever apply raises.
    """
    target = find_installation(request.to, workspace())
    patches = _require_trusted(request, target)
    with reading_session(access.look) as session:
        check_unfinished(
            read_journal(access.journal_directory), session.target, access.revert_command
        )  # before what it has left is looked at
        progress.step(f"trying on a scratch server whether {target.title} can run it")
        assert access.programs_check is not None  # noqa: S101 — server_access has made it
        files = access.files(session)
        notes = access.programs_check(session, files, target.bin_directory)
        assert files is not None  # noqa: S101 — the check has refused a server without
        server = access.inspect(session.connection)
        change = _change(request, server, target, files, running_programs(session.connect))
        planned_on = describe(session.connection)
    apply_request = ApplyRequest(
        _plan(change, target),
        allow_restart=request.allow_restart,
        is_start_tried=True,
        planned_on=planned_on,
    )
    if apply_request.plan.lines and not request.is_dry_run:
        progress.step("changing its programs, and restarting it")
    result = (preview_apply if request.is_dry_run else apply_plan)(access, apply_request)
    return replace(result, notes=(*result.notes, *patches, *notes, _UPDATES))


def _require_trusted(request: SwitchRequest, target: Installation) -> tuple[str, ...]:
    """Refuse a build that has failed, one without hardening unless that very one is named, and patches.

    Return a sentence on patches that are accepted.
    """
    manifest = read_manifest(target.bin_directory.parent).value
    if not isinstance(manifest, Manifest) or manifest.optimised is None:
        return ()
    if manifest.verified is None:
        raise RefusedError(
            f"{manifest.name} is not verified",
            detail="it failed when it was last tried",
            hint=f"pgdyno build verify {manifest.name} tries it again",
        )
    if request.to == NEWEST and manifest.verified.is_emulated:
        raise RefusedError(
            f"the newest build, {manifest.name}, was verified under an emulator alone",
            detail="it was never tested on a real CPU of its kind",
            hint=f"--to {manifest.name} takes it nevertheless; pgdyno build list shows the others",
        )
    if request.to == NEWEST and UNHARDENED in manifest.optimised.recipe.split("+"):
        raise RefusedError(
            f"the newest build, {manifest.name}, is not hardened",
            detail=f"its recipe is {manifest.optimised.recipe}",
            hint=f"--to {manifest.name} takes it nevertheless; pgdyno build list shows the others",
        )
    if manifest.patched is None:
        return ()
    if not request.accepts_patches:
        raise RefusedError(
            f"{manifest.name} is a patched PostgreSQL",
            detail=f"patches of pgdyno's to its source: {manifest.patched.names}",
            hint="--patched takes it nevertheless; pgdyno build list shows the others",
        )
    return (f"{manifest.name} is a patched PostgreSQL: {manifest.patched.names}",)


def _change(
    request: SwitchRequest, server: Server, target: Installation, files: ServerFiles, running: str
) -> Change:
    if request.link is not None:
        require_owners(request.link.absolute(), files)
        kind, key, value = PROGRAM_LINK, *_through_link(request.link.absolute(), target, running)
    else:
        kind, key, value = PG_CTL_OPTIONS, *_through_pg_ctl(server, target, files, running)
    return Change(LEVER.name, kind, key, running, value, Effect.RESTART)


def _through_link(link: Path, target: Installation, running: str) -> tuple[str, str]:
    """Return the link and its new target. Raises: UsageError if the server is started differently."""
    leads_to = (link / "bin").resolve()
    if link.is_symlink() and str(leads_to) != running:
        raise UsageError(
            f"the server is not started through {link}",
            detail=f"it runs from {running}, and the link leads to {leads_to}",
        )
    return str(link), str(target.bin_directory.resolve().parent)


def _through_pg_ctl(
    server: Server, target: Installation, files: ServerFiles, running: str
) -> tuple[str, str]:
    """Return Debian's pg_ctl.conf and its options.

    Raises: UsageError if this is no cluster of Debian's; RefusedError if it is another server's.
    """
    configuration = Path(server.settings["config_file"].setting)
    file, program = configuration.with_name("pg_ctl.conf"), target.bin_directory.resolve() / "postgres"
    if not file.is_file():
        raise UsageError(
            "pgdyno does not know how this server's programs are chosen",
            detail=f"there is no pg_ctl.conf beside {configuration}, as clusters of Debian's have",
            hint="start it through a symbolic link to the prefix, and name that with --link; or stop it, and "
            f"start it with {target.bin_directory}/pg_ctl yourself",
        )
    require_owners(file, files)
    require_own_configuration(configuration, files)
    if not _UNQUOTED.fullmatch(str(program)):
        raise UsageError(
            f'"{program}" cannot stand in {file}',
            detail="pg_ctlcluster splits options at blanks, and quotes end them",
            hint="name the prefix by a path without blanks, quotes and backslashes",
        )
    former = program_writers(None)[PG_CTL_OPTIONS].value(str(file)) or ""
    _require_chosen(file, former, server, running)
    return str(file), pg_ctl_conf.naming(former, program)


def _require_chosen(file: Path, options: str, server: Server, running: str) -> None:
    """Refuse if other programs run than were selected: reverting would start untested ones."""
    chosen = pg_ctl_conf.program_in(options) or _DEBIANS / str(server.major) / "bin/postgres"
    if str(chosen.resolve().parent) != running:
        raise RefusedError(
            f"the server does not run from what {file} chooses",
            detail=f"it runs from {running}, and the file chooses {chosen}",
            hint="restart it, or put the file right, before anything else is changed",
        )


def _plan(change: Change, target: Installation) -> Plan:
    line = PlanLine(
        change=change,
        layer=LEVER.layer,
        reason=f"the server is to be run by {target.title}",
        evidence="asked for",
        risk=LEVER.risk,
        undo="pgdyno revert: the former programs run it again; nothing in its data has changed",
    )
    is_due = change.current != str(target.bin_directory.resolve())
    return Plan((line,) if is_due else (), (), (), None)


def require_owners(choice: Path, files: ServerFiles) -> None:
    """Refuse a link, or a file, in a directory of another user than the server's owner and root.

    Raises: RefusedError; DataDirectoryError.
    """
    owner = files.owner()
    try:
        uid = choice.parent.stat().st_uid
    except OSError as error:
        raise RefusedError(f"{choice.parent} cannot be looked at", detail=error.strerror) from error
    if uid not in (0, owner):
        raise RefusedError(
            f"{choice} is not this server's to change",
            detail=f"{choice.parent} belongs to user {uid}, and {files.path} to user {owner}",
            hint="the directory of what chooses a server's programs belongs to the server's user, or to root",
        )


def require_own_configuration(configuration: Path, files: ServerFiles) -> None:
    """Refuse a configuration file that does not name this server's data directory, as Debian's do.

    Raises: RefusedError; DataDirectoryError.
    """
    named = _data_directory_in(configuration, files.owner())
    if named is None or not _is_same(Path(named), files.path):
        raise RefusedError(
            f"{configuration} is not this server's own",
            detail=f"its data_directory is {named or 'not set'}, and the server's is {files.path}",
            hint="files made by pg_createcluster name it; those of other clusters are left alone",
        )


def _data_directory_in(configuration: Path, owner: int) -> str | None:
    """Return the data directory that a configuration names, read with the rights of the server's owner."""
    try:
        with acting_as(owner) if os.geteuid() == 0 else nullcontext():
            settings = list(read_configuration(configuration))
    except OSError as error:
        raise RefusedError(
            f"{configuration} cannot be read by the server's user",
            detail=f"{error.filename}: {error.strerror}",
        ) from error
    return next((one.value for one in reversed(settings) if one.name == "data_directory"), None)


def _is_same(named: Path, path: Path) -> bool:
    try:
        return named.samefile(path)
    except OSError:  # there is no such directory
        return False
