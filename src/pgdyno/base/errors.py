"""All errors that users may see, as one hierarchy.

    PgdynoError                        PGD-000  exit 1
    ├── UsageError                     PGD-100  exit 2   invalid arguments
    │   ├── VariantError               PGD-101
    │   ├── SettingError               PGD-102  unknown setting, value out of range or not in the list
    │   │   └── HugePagesError         PGD-104  the kernel cannot allocate so many at present
    │   ├── ExperimentFileError        PGD-103
    │   ├── FormatError                PGD-105  a name or value cannot be expressed in a format
    │   ├── HostsFileError             PGD-106  hosts.toml
    │   └── FleetFileError             PGD-107  fleet.toml
    ├── RefusedError                   PGD-200  exit 4   valid, but refused as unsafe
    │   ├── DurabilityError            PGD-201
    │   ├── MemoryProofError           PGD-202
    │   ├── OwnershipError             PGD-203  managed by another tool (Patroni, command line, …)
    │   │   └── AlreadyThereError      PGD-206  the object exists, and pgdyno did not create it
    │   ├── PermissionNotGivenError    PGD-204  --allow-load, --allow-restart or --allow-file missing
    │   └── LockHeldError              PGD-205  another pgdyno process uses this server
    ├── ServerError                    PGD-300  exit 1
    │   ├── ConnectionFailedError      PGD-301
    │   ├── ServerStartError           PGD-302
    │   ├── ServerCrashedError         PGD-303
    │   ├── PrivilegeError             PGD-304
    │   ├── DataDirectoryError         PGD-305
    │   ├── InstallationError          PGD-306  a server could not be obtained, built or removed
    │   └── SchemaChangeError          PGD-307  a statement of a variant's SQL was rejected
    ├── GeneratorError                 PGD-400  exit 1
    │   ├── GeneratorMissingError      PGD-401
    │   └── GeneratorFailedError       PGD-402
    │       └── LoadHostLostError      PGD-403
    ├── StorageError                   PGD-500  exit 1   disk full, unreadable store or bundle
    ├── MeasurementError               PGD-600  exit 1   no result, for example on a noisy machine
    ├── RemoteHostError                PGD-650  exit 1   a host of a cell is unreachable or responds wrongly
    ├── StillChangedError              PGD-700  exit 3   failed, and something is still changed
    ├── InterruptedByUserError         PGD-800  exit 130 partial results kept
    └── UnforeseenError                PGD-900  exit 1   an unexpected error, undone like any other failure

Messages follow PostgreSQL's style guide: the message is lower case without a full stop and contains the
value; ``detail`` states facts; ``hint`` suggests an action, with the command to type.
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
    """The arguments are invalid; nothing was done."""

    code = "PGD-100"
    exit_code = 2


class VariantError(UsageError):
    """A variant does not follow ``[SERVER@]NAME[:setting=value,…]``."""

    code = "PGD-101"


class SettingError(UsageError):
    """A setting is unknown to the server, or its value is not acceptable."""

    code = "PGD-102"


class HugePagesError(SettingError):
    """The kernel cannot allocate a pool of huge pages: free memory is fragmented or too small."""

    code = "PGD-104"


class FormatError(UsageError):
    """A text contains something that cannot be expressed in a format."""

    code = "PGD-105"


class ExperimentFileError(UsageError):
    """An experiment file is not valid; all its errors are listed at once."""

    code = "PGD-103"


class HostsFileError(UsageError):
    """A file with the hosts of a cell is not valid; all its errors are listed at once."""

    code = "PGD-106"


class FleetFileError(UsageError):
    """A fleet file is not valid; all its errors are listed at once."""

    code = "PGD-107"


class RefusedError(PgdynoError):
    """A valid request, refused as unsafe; nothing was changed."""

    code = "PGD-200"
    exit_code = 4


class DurabilityError(RefusedError):
    """The durability lock: the change could lose committed data."""

    code = "PGD-201"


class MemoryProofError(RefusedError):
    """The plan's worst case does not fit into the smallest memory limit.

    ``connections``: how many connections would fit, if their number is the cause.
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
    """The value is managed by another program or user: one would overwrite the other."""

    code = "PGD-203"


class AlreadyThereError(OwnershipError):
    """The object to create exists, and pgdyno did not create it; nothing was changed."""

    code = "PGD-206"


class PermissionNotGivenError(RefusedError):
    """The step would load or restart a server, or change a machine, without its owner's permission."""

    code = "PGD-204"


class LockHeldError(RefusedError):
    """Another pgdyno process uses this server or journal."""

    code = "PGD-205"


class ServerError(PgdynoError):
    """An error of the PostgreSQL server under test."""

    code = "PGD-300"


class ConnectionFailedError(ServerError):
    """No connection: unreachable, wrong password, no such database."""

    code = "PGD-301"


class ServerStartError(ServerError):
    """A server did not start; the message contains its last log lines."""

    code = "PGD-302"


class ServerCrashedError(ServerError):
    """A server terminated while it was measured."""

    code = "PGD-303"


class PrivilegeError(ServerError):
    """The role or the operating-system user lacks a privilege."""

    code = "PGD-304"


class DataDirectoryError(ServerError):
    """A data directory of another major version or owner, or not a data directory."""

    code = "PGD-305"


class InstallationError(ServerError):
    """A server could not be obtained or built: no mirror, no such version, no compiler, failed build."""

    code = "PGD-306"


class SchemaChangeError(ServerError):
    """A server rejected a statement of a variant's SQL; the arm is a failed trial."""

    code = "PGD-307"


class GeneratorError(PgdynoError):
    """An error of the load generator."""

    code = "PGD-400"


class GeneratorMissingError(GeneratorError):
    """The load generator is not installed; the hint names the package."""

    code = "PGD-401"


class GeneratorFailedError(GeneratorError):
    """The load generator exited with an error or stopped making progress."""

    code = "PGD-402"


class LoadHostLostError(GeneratorFailedError):
    """The connection to a load host was lost, or its driver died, while it issued load."""

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
    """The measurement gave no result, for example because too many blocks were void."""

    code = "PGD-600"


class RemoteHostError(PgdynoError):
    """A host of a cell is unreachable, or responds wrongly; the detail contains ssh's message."""

    code = "PGD-650"


class StillChangedError(PgdynoError):
    """A failure that left something changed; the hint contains the ``pgdyno revert`` command."""

    code = "PGD-700"
    exit_code = 3


class InterruptedByUserError(PgdynoError):
    """Ctrl-C or SIGTERM; results so far are stored."""

    code = "PGD-800"
    exit_code = 130


class UnforeseenError(PgdynoError):
    """An unexpected error: a problem of the machine, or a bug in pgdyno."""

    code = "PGD-900"


class LeftServerWarning(UserWarning):
    """A server left running by a killed pgdyno was stopped."""


def as_pgdyno_error(error: Exception | KeyboardInterrupt) -> PgdynoError:
    """Return any error as one with message, detail and hint."""
    if isinstance(error, PgdynoError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return InterruptedByUserError("interrupted")
    return UnforeseenError(f"unforeseen {type(error).__name__}: {error}")
