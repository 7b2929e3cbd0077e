"""``pgdyno switch``: run a server's data with other programs, with a receipt to revert.

Order: query the server's requirements → check them on a scratch server of the other programs, with the real
server's settings → write a receipt → change the file or link that selects the programs → restart → check by
the server which programs run it. If the server does not start, or runs other programs than expected, the
former programs are restored and started.

The file or link that selects a server's programs must be proven to be the server's own. Its configuration's
path is reported by the server, and root uses it: another user's server could report the files of a cluster
that is not its own.
"""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan, preview_apply
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.runs.changes import check_unfinished
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
from pgdyno.postgres.inspection.data_directory import read_configuration
from pgdyno.postgres.process.account import acting_as
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import NEWEST, find_installation
from pgdyno.postgres.server import Server

_UPDATES = "updates of the former programs no longer affect it: build and switch again after each release"
_DEBIANS = Path("/usr/lib/postgresql")  # pg_ctlcluster's directory of programs: PgCommon.pm
_UNQUOTED = re.compile(r"[^\s'\"\\]+")


@dataclass(frozen=True)
class SwitchRequest:
    """``to``: a server's name or a prefix. ``link``: the link it is started through; None: pg_ctl.conf.

    ``accepts_patches``: whether ``to`` may be a build with pgdyno's patches.
    """

    to: str
    link: Path | None = None
    allow_restart: bool = False
    is_dry_run: bool = False
    accepts_patches: bool = False


def switch(access: ServerAccess, request: SwitchRequest, progress: Progress) -> ApplyResult:
    """Switch a running server to other programs; with a dry run, only check and describe.

    Raises: UsageError; RefusedError if they cannot run the server as it is; the errors of apply.
    """
    target = find_installation(request.to, workspace())
    patches = _require_trusted(request, target)
    with reading_session(access.look) as session:
        check_unfinished(
            read_journal(access.journal_directory), session.target, access.revert_command
        )  # first, because an unfinished apply leaves an unreliable state
        progress.step(f"checking on a scratch server whether {target.title} can run it")
        assert access.programs_check is not None  # noqa: S101 — server_access sets it
        files = access.files(session)
        notes = access.programs_check(session, files, target.bin_directory)
        assert files is not None  # noqa: S101 — the check refuses None
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
        progress.step("changing its programs and restarting it")
    result = (preview_apply if request.is_dry_run else apply_plan)(access, apply_request)
    return replace(result, notes=(*result.notes, *patches, *notes, _UPDATES))


def _require_trusted(request: SwitchRequest, target: Installation) -> tuple[str, ...]:
    """Return a sentence on accepted patches, if any.

    Refuse a failed build, patches that are not accepted, and an unhardened or emulated build that is not
    explicitly named.
    """
    manifest = read_manifest(target.bin_directory.parent).value
    if not isinstance(manifest, Manifest) or manifest.optimised is None:
        return ()
    if manifest.verified is None:
        raise RefusedError(
            f"{manifest.name} is not verified",
            detail="its last verification failed",
            hint=f"pgdyno build verify {manifest.name} verifies it again",
        )
    if request.to == NEWEST and manifest.verified.is_emulated:
        raise RefusedError(
            f"the newest build, {manifest.name}, was only verified under an emulator",
            detail="it was never tested on a real CPU of its kind",
            hint=f"--to {manifest.name} selects it anyway; pgdyno build list shows other builds",
        )
    if request.to == NEWEST and UNHARDENED in manifest.optimised.recipe.split("+"):
        raise RefusedError(
            f"the newest build, {manifest.name}, is not hardened",
            detail=f"its recipe is {manifest.optimised.recipe}",
            hint=f"--to {manifest.name} selects it anyway; pgdyno build list shows other builds",
        )
    if manifest.patched is None:
        return ()
    if not request.accepts_patches:
        raise RefusedError(
            f"{manifest.name} is a patched PostgreSQL",
            detail=f"pgdyno's patches in its source: {manifest.patched.names}",
            hint="--patched accepts it; pgdyno build list shows other builds",
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
    """Return the link and its new target. Raises: UsageError if the server does not run through the link."""
    leads_to = (link / "bin").resolve()
    if link.is_symlink() and str(leads_to) != running:
        raise UsageError(
            f"the server is not started through {link}",
            detail=f"it runs from {running}, but the link leads to {leads_to}",
        )
    return str(link), str(target.bin_directory.resolve().parent)


def _through_pg_ctl(
    server: Server, target: Installation, files: ServerFiles, running: str
) -> tuple[str, str]:
    """Return the path of Debian's pg_ctl.conf, and its new options.

    Raises: UsageError if this is not a Debian cluster; RefusedError if the file is another server's.
    """
    configuration = Path(server.settings["config_file"].setting)
    file, program = configuration.with_name("pg_ctl.conf"), target.bin_directory.resolve() / "postgres"
    if not file.is_file():
        raise UsageError(
            "pgdyno does not know how this server's programs are selected",
            detail=f"there is no pg_ctl.conf next to {configuration}, unlike in Debian's clusters",
            hint="start it through a symbolic link to the prefix, and name the link with --link; or stop it, "
            f"and start it with {target.bin_directory}/pg_ctl yourself",
        )
    require_owners(file, files)
    require_own_configuration(configuration, files)
    if not _UNQUOTED.fullmatch(str(program)):
        raise UsageError(
            f'"{program}" cannot be written in {file}',
            detail="pg_ctlcluster splits options at spaces, and quotes end them",
            hint="name the prefix by a path without spaces, quotes and backslashes",
        )
    former = program_writers(None)[PG_CTL_OPTIONS].value(str(file)) or ""
    _require_chosen(file, former, server, running)
    return str(file), pg_ctl_conf.naming(former, program)


def _require_chosen(file: Path, options: str, server: Server, running: str) -> None:
    """Refuse if the running programs are not the selected ones: reverting would start untested ones."""
    chosen = pg_ctl_conf.program_in(options) or _DEBIANS / str(server.major) / "bin/postgres"
    if str(chosen.resolve().parent) != running:
        raise RefusedError(
            f"the server does not run the programs that {file} selects",
            detail=f"it runs from {running}, but the file selects {chosen}",
            hint="restart it or correct the file first",
        )


def _plan(change: Change, target: Installation) -> Plan:
    line = PlanLine(
        change=change,
        layer=LEVER.layer,
        reason=f"switch the server to {target.title}",
        evidence="requested by the user",
        risk=LEVER.risk,
        undo="pgdyno revert: the former programs run it again; its data are unchanged",
    )
    is_due = change.current != str(target.bin_directory.resolve())
    return Plan((line,) if is_due else (), (), (), None)


def require_owners(choice: Path, files: ServerFiles) -> None:
    """Require that the directory of a link or file belongs to the server's user or root.

    Raises: RefusedError; DataDirectoryError.
    """
    owner = files.owner()
    try:
        uid = choice.parent.stat().st_uid
    except OSError as error:
        raise RefusedError(f"could not read {choice.parent}", detail=error.strerror) from error
    if uid not in (0, owner):
        raise RefusedError(
            f"{choice} does not belong to this server",
            detail=f"{choice.parent} belongs to user {uid}, but {files.path} belongs to user {owner}",
            hint="the directory of this file or link must belong to the server's user or to root",
        )


def require_own_configuration(configuration: Path, files: ServerFiles) -> None:
    """Require that a configuration file names this server's data directory, as Debian's do.

    Raises: RefusedError; DataDirectoryError.
    """
    named = _data_directory_in(configuration, files.owner())
    if named is None or not _is_same(Path(named), files.path):
        raise RefusedError(
            f"{configuration} is not this server's configuration",
            detail=f"its data_directory is {named or 'not set'}, but the server's is {files.path}",
            hint="files made by pg_createcluster name it; pgdyno does not change those of other clusters",
        )


def _data_directory_in(configuration: Path, owner: int) -> str | None:
    """Return the data directory in a configuration file, read with the server owner's privileges."""
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
    except OSError:  # ``named`` does not exist
        return False
