"""An attached server: the prerequisites for measuring its configuration on scratch servers."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base.errors import RefusedError, ServerError
from pgdyno.base.facts import Unknown
from pgdyno.model.variants.durability import why_refused
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.durability import check_found
from pgdyno.plan.engine.resources import Figures, holds_huge_pages
from pgdyno.plan.inspection.inspect import inspect_dsn
from pgdyno.plan.inspection.server_programs import OwnPrograms, own_programs
from pgdyno.plan.subject import Subject, subject_of
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.server import Server

# Settings for locations, authentication, logging, client defaults and loaded libraries: a scratch server has
# its own. Libraries are excluded because an extension may write, connect, or need its own files.
_OWN_SETTINGS = frozenset(
    {
        "application_name",
        "archive_cleanup_command",
        "archive_command",
        "archive_library",
        "archive_mode",
        "client_encoding",
        "cluster_name",
        "config_file",
        "data_directory",
        "DateStyle",
        "default_text_search_config",
        "default_transaction_read_only",
        "dynamic_library_path",
        "event_source",
        "external_pid_file",
        "hba_file",
        "hot_standby",
        "ident_file",
        "idle_in_transaction_session_timeout",
        "include_dir",
        "jit_provider",
        "listen_addresses",
        "local_preload_libraries",
        "lock_timeout",
        "log_timezone",
        "port",
        "primary_conninfo",
        "primary_slot_name",
        "recovery_end_command",
        "recovery_init_sync_method",
        "restore_command",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "statement_timeout",
        "stats_temp_directory",
        "synchronous_standby_names",
        "temp_tablespaces",
        "TimeZone",
        "timezone_abbreviations",
        "transaction_read_only",
    }
)
_OWN_PREFIXES = ("lc_", "log_", "logging_", "ssl", "syslog_", "unix_socket_", "krb_", "recovery_target")

_PAGES_ARE_HELD = (
    "the server keeps its huge pages: the scratch servers run with 4 kB pages unless the pool has room for "
    "them too; see memory on huge pages below"
)


@dataclass(frozen=True)
class Attached:
    """A running server: the baseline for scratch servers of the same build, or itself the measured server."""

    dsn: str
    target: str
    data_directory: str
    subject: Subject
    installation: Installation
    base: Variant
    notes: tuple[str, ...]


def attach(dsn: str, figures: Figures) -> Attached:
    """Inspect a running server and return its configuration as a variant. Read-only; generates no load.

    Raises: ConnectionFailedError; ServerError if its programs are not accessible; RefusedError if a user
    other than the scratch servers' account can replace them; DurabilityError if its settings may lose data,
    because pgdyno does not tune such a server.
    """
    inspection = inspect_dsn(dsn, figures)
    found = inspection.inspected
    if isinstance(found, Unknown):
        raise ServerError("the server could not be inspected", detail=found.reason)
    check_found(found.server, found.target)
    own = own_programs(found.postmaster_pid)
    if isinstance(own, Unknown):
        raise ServerError(
            f"the programs of the server at {found.target} are not accessible",
            detail=own.reason,
            hint="run pgdyno as root or as the server's user, on its host or in its container",
        )
    _require_runnable(own)
    kept = [guc for guc in found.server.non_default_settings if _shapes_performance(guc)]
    settings = {guc.name: guc.display() for guc in kept}
    notes = _notes(found.server)
    if settings.get("huge_pages") == "on":
        settings["huge_pages"] = "try"  # a second server with "on" would not start: the first holds the pages
    if holds_huge_pages(found.server):
        notes = (*notes, _PAGES_ARE_HELD)
    base = Variant("as-found", settings)
    data_directory = found.server.data_directory.or_else("")  # known: the server is proven to run here
    return Attached(dsn, found.target, data_directory, subject_of(inspection), own.installation, base, notes)


def _require_runnable(own: OwnPrograms) -> None:
    """Refuse programs that users other than root and the scratch servers' account can replace."""
    user, account = own.workspace.account, workspace().account
    if user != account:
        programs = own.installation.bin_directory
        raise RefusedError(
            f'user "{account.name}" does not run the programs in {programs}',
            detail=f'users other than root can replace them, and scratch servers run as "{account.name}"',
            hint=f"run pgdyno as {user.name}, or make root the owner and only writer of these programs and "
            "all parent directories (chown root, chmod g-w,o-w)",
        )


def _notes(server: Server) -> tuple[str, ...]:
    preloaded = server.settings["shared_preload_libraries"].setting
    return (f"the server preloads {preloaded}; the scratch servers do not",) if preloaded else ()


def _shapes_performance(guc: Guc) -> bool:
    """Whether a scratch server should copy this setting; False for settings of extensions."""
    if guc.name in _OWN_SETTINGS or guc.name.startswith(_OWN_PREFIXES) or "." in guc.name:
        return False
    if why_refused(guc.name.lower(), guc.display()) is not None:
        return False
    return not guc.is_read_only and guc.context != "internal"
