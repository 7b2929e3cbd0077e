"""Every error a user can meet, in one tree.

    PgdynoError                        PGD-000  exit 1
    ├── UsageError                     PGD-100  exit 2   what was asked cannot be understood
    │   ├── VariantError               PGD-101
    │   ├── SettingError               PGD-102  unknown setting, value out of range or not in the list
    │   │   └── HugePagesError         PGD-104  the kernel has no room for so many, at this moment
    │   ├── ExperimentFileError        PGD-103
    │   ├── FormatError                PGD-105  a format has no way to write a name or value
    │   ├── HostsFileError             PGD-106  hosts.toml
    │   └── FleetFileError             PGD-107  fleet.toml
    ├── RefusedError                   PGD-200  exit 4   understood, and refused as unsafe
    │   ├── DurabilityError            PGD-201
    │   ├── MemoryProofError           PGD-202
    │   ├── OwnershipError             PGD-203  somebody else manages this value (Patroni, command line, …)
    │   │   └── AlreadyThereError      PGD-206  what was to be made is there, and not ours
    │   ├── PermissionNotGivenError    PGD-204  --allow-load, --allow-restart or --allow-file missing
    │   └── LockHeldError              PGD-205  another pgdyno works on this server
    ├── ServerError                    PGD-300  exit 1
    │   ├── ConnectionFailedError      PGD-301
    │   ├── ServerStartError           PGD-302
    │   ├── ServerCrashedError         PGD-303
    │   ├── PrivilegeError             PGD-304
    │   ├── DataDirectoryError         PGD-305
    │   └── InstallationError          PGD-306  a server could not be obtained, built or removed
    ├── GeneratorError                 PGD-400  exit 1
    │   ├── GeneratorMissingError      PGD-401
    │   └── GeneratorFailedError       PGD-402
    │       └── LoadHostLostError      PGD-403
    ├── StorageError                   PGD-500  exit 1   disk full, unreadable store or bundle
    ├── MeasurementError               PGD-600  exit 1   the machine is too noisy to say anything
    ├── RemoteHostError                PGD-650  exit 1   a host of a cell does not answer as it should
    ├── StillChangedError              PGD-700  exit 3   failed, and something is still changed
    ├── InterruptedByUserError         PGD-800  exit 130 partial results kept
    └── UnforeseenError                PGD-900  exit 1   what nobody expected, undone like any other failure

Messages follow PostgreSQL's style guide: the message is lower case without a full stop and names the
value; ``detail`` states facts; ``hint`` says what to do, with the command to type.
"""

from __future__ import annotations

from typing import ClassVar


class PgdynoError(Exception):
    """An error with a stable code, a message, and optionally a detail and a hint."""

    code: ClassVar[str] = "PGD-000"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        """Return message, detail and hint, one per line, as PostgreSQL prints them."""
        lines = [self.message]
        if self.detail:
            lines.append(f"DETAIL:  {self.detail}")
        if self.hint:
            lines.append(f"HINT:  {self.hint}")
        return "\n".join(lines)


class UsageError(PgdynoError):
    """The request cannot be understood; nothing was done."""

    code = "PGD-100"
    exit_code = 2


class VariantError(UsageError):
    """A variant does not follow ``[SERVER@]NAME[:setting=value,…]``."""

    code = "PGD-101"


class SettingError(UsageError):
    """A setting is unknown to the server, or its value is not acceptable."""

    code = "PGD-102"


class HugePagesError(SettingError):
    """The kernel has no room for a pool of huge pages: free memory is scattered, or there is too little."""

    code = "PGD-104"


class FormatError(UsageError):
    """A text has something in it that a format has no way to write."""

    code = "PGD-105"


class ExperimentFileError(UsageError):
    """An experiment file is not valid; all its errors are listed at once."""

    code = "PGD-103"


class HostsFileError(UsageError):
    """A file with the hosts of a cell is not valid; all its errors are listed at once."""

    code = "PGD-106"


class FleetFileError(UsageError):
    """A file that orders a fleet is not valid; all its errors are listed at once."""

    code = "PGD-107"


class RefusedError(PgdynoError):
    """Understood, possible, and refused as unsafe; nothing was changed."""

    code = "PGD-200"
    exit_code = 4


class DurabilityError(RefusedError):
    """The durability lock: the change could lose committed data."""

    code = "PGD-201"


class MemoryProofError(RefusedError):
    """The plan's worst case does not fit into the smallest memory limit.

    ``connections``: how many would fit, if their number is what is too much.
    """

    code = "PGD-202"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        connections: int | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.connections = connections


class OwnershipError(RefusedError):
    """The value is managed by another program or user, who would overwrite ours or be overruled."""

    code = "PGD-203"


class AlreadyThereError(OwnershipError):
    """The thing to be made exists and is not ours, so that nothing was changed and nothing is to undo."""

    code = "PGD-206"


class PermissionNotGivenError(RefusedError):
    """The step loads or restarts a server, or changes a machine, and its owner has not allowed it."""

    code = "PGD-204"


class LockHeldError(RefusedError):
    """Another pgdyno process works on this server or journal."""

    code = "PGD-205"


class ServerError(PgdynoError):
    """Something about the PostgreSQL server under test."""

    code = "PGD-300"


class ConnectionFailedError(ServerError):
    """No connection: unreachable, wrong password, no such database."""

    code = "PGD-301"


class ServerStartError(ServerError):
    """A server did not come up; the message carries its last log lines."""

    code = "PGD-302"


class ServerCrashedError(ServerError):
    """A server went away while it was being measured."""

    code = "PGD-303"


class PrivilegeError(ServerError):
    """The role or the operating-system user may not do this."""

    code = "PGD-304"


class DataDirectoryError(ServerError):
    """A data directory of another major version, another owner, or not one at all."""

    code = "PGD-305"


class InstallationError(ServerError):
    """A server could not be obtained or built: no mirror, no such version, no compiler, failed build."""

    code = "PGD-306"


class GeneratorError(PgdynoError):
    """Something about the program that issues the load."""

    code = "PGD-400"


class GeneratorMissingError(GeneratorError):
    """The load generator is not installed; the hint names the package."""

    code = "PGD-401"


class GeneratorFailedError(GeneratorError):
    """The load generator ended with an error or stopped making progress."""

    code = "PGD-402"


class LoadHostLostError(GeneratorFailedError):
    """A load host, or the driver there, went away while it issued load."""

    code = "PGD-403"

    def __init__(
        self, message: str, *, host: str, detail: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.host = host


class StorageError(PgdynoError):
    """A file could not be written or read: disk full, damaged store, bundle with wrong checksums."""

    code = "PGD-500"


class MeasurementError(PgdynoError):
    """The measuring could not give an answer, for example because too many blocks were void."""

    code = "PGD-600"


class RemoteHostError(PgdynoError):
    """A host of a cell is not reached, or does not answer as it should; the detail has ssh's words."""

    code = "PGD-650"


class StillChangedError(PgdynoError):
    """A failure that left something changed; the hint carries the ``pgdyno revert`` line."""

    code = "PGD-700"
    exit_code = 3


class InterruptedByUserError(PgdynoError):
    """Ctrl-C or SIGTERM; results so far are stored."""

    code = "PGD-800"
    exit_code = 130


class UnforeseenError(PgdynoError):
    """An error that no code of pgdyno expects: of the machine, or a mistake in pgdyno."""

    code = "PGD-900"


class LeftServerWarning(UserWarning):
    """A server that a killed pgdyno had left running was ended."""


def as_pgdyno_error(error: Exception | KeyboardInterrupt) -> PgdynoError:
    """Return any error as one with message, detail and hint."""
    if isinstance(error, PgdynoError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return InterruptedByUserError("interrupted")
    return UnforeseenError(f"unforeseen {type(error).__name__}: {error}")
