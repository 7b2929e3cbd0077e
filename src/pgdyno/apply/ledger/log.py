"""The journal: append-only JSON lines in one directory.

Each line is on disk before the corresponding action is taken.

    {"sha256": first 16 digits of the entry's hash, "entry": {"format": 1, "event": …, …}}

    receipt              an original value, written before it is changed
    state                a receipt's new state
    interim              pgdyno's temporary value: about to be set, or its value as adjusted by the kernel
    restoring            an original value is about to be restored
    restarting           a restart is about to be requested
    restarted            the restart succeeded
    torn                 the previous line was cut off by a crash and does not count

Complete lines are never rewritten. An entry that could not be written completely, for example on a full disk,
is removed at once. A line cut off by a crash is the last one; it does not count, and the next entry is
written after a ``torn`` line. Any other unreadable line is damage, and is reported.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pgdyno.apply.ledger.receipt import advanced, receipt_document, receipt_of
from pgdyno.base.errors import StorageError
from pgdyno.base.facts import Json
from pgdyno.host.files.directory import sync_directory
from pgdyno.host.files.lock import exclusive_lock
from pgdyno.model.plans.journal import Receipt, ReceiptState
from pgdyno.postgres.process.workspace import JOURNAL_FILE

_LOCK = "lock"
_FORMAT = 1
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: a FIFO does not block


@dataclass(frozen=True)
class Contents:
    """A journal's contents. ``damage``: descriptions of unreadable lines, except a torn last one.

    ``restarting``: ids of applies that requested a restart with unknown outcome.
    """

    receipts: tuple[Receipt, ...]
    damage: tuple[str, ...]
    restarting: frozenset[str] = frozenset()
    is_torn: bool = False

    @property
    def open(self) -> tuple[Receipt, ...]:
        """Receipts of changes that may still be in place, oldest first."""
        return tuple(receipt for receipt in self.receipts if receipt.is_open)


@dataclass(frozen=True)
class Journal:
    """A journal that is locked for writing; see ``open_journal``."""

    directory: Path
    _file: int

    def read(self) -> Contents:
        """Return the current contents of the open file, even if another file has its name by now."""
        return _contents(os.pread(self._file, os.fstat(self._file).st_size, 0))

    def add(self, *receipts: Receipt) -> None:
        """Write receipts, all or none. They are on disk when this returns; then the changes may be made."""
        self._append(*({"event": "receipt", "receipt": receipt_document(one)} for one in receipts))

    def advance(
        self, receipt: Receipt, state: ReceiptState, *, effective: str | None = None, note: str | None = None
    ) -> Receipt:
        """Record a receipt's new state, and return the updated receipt."""
        after = advanced(receipt, state, effective=effective, note=note)
        self._append(
            {"event": "state", "id": receipt.id, "state": state, "effective": effective, "note": note}
        )
        return after

    def intend(self, receipt: Receipt, value: str) -> Receipt:
        """Record a temporary value by pgdyno, and return the updated receipt."""
        self._append({"event": "interim", "id": receipt.id, "value": value})
        return replace(receipt, interims=(*receipt.interims, value))

    def restoring(self, receipt: Receipt) -> Receipt:
        """Record that the original value is about to be restored, and return the updated receipt."""
        self._append({"event": "restoring", "id": receipt.id})
        return replace(receipt, is_being_restored=True)

    def restarting(self, apply_id: str) -> None:
        """Record that a restart is about to be requested."""
        self._append({"event": "restarting", "apply_id": apply_id})

    def restarted(self, apply_id: str) -> None:
        """Record that the restart succeeded."""
        self._append({"event": "restarted", "apply_id": apply_id})

    def seal(self) -> None:
        """Mark a cut-off last line, if there is one, so that it does not count."""
        self._append()

    def _append(self, *entries: Mapping[str, Json]) -> None:
        head: dict[str, Json] = {"format": _FORMAT, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        lines = b"".join(_line({**head, **entry}) for entry in entries)
        try:
            with _all_or_nothing(self._file):
                # A second Ctrl-C can cut off a line while the journal is open.
                seal = b"" if _ends_with_a_line(self._file) else b"\n" + _line({**head, "event": "torn"})
                _write_all(self._file, seal + lines)
                os.fsync(self._file)
        except OSError as error:
            raise _not_written(self.directory, error) from error


@contextmanager
def open_journal(directory: Path) -> Iterator[Journal]:
    """Provide the journal in ``directory``, created if necessary, locked against other pgdyno processes.

    Raises: LockHeldError if another process holds the lock; StorageError if the journal cannot be written, or
    if users other than this one and root can write it, because its values are restored.
    """
    with ExitStack() as held:
        try:
            _create(directory)
            held.enter_context(exclusive_lock(directory / _LOCK))
            file = os.open(directory / JOURNAL_FILE, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise _not_written(directory, error) from error
        try:
            _require_ours(directory, os.fstat(file))
            journal = Journal(directory, file)
            # A full disk must not keep revert from restoring; the next entry tries again.
            with suppress(StorageError):
                journal.seal()
            yield journal
        finally:
            os.close(file)


def read_journal(directory: Path, limit_bytes: int | None = None) -> Contents:
    """Return the contents of the journal in ``directory``; empty if there is none.

    Needs no lock.

    Raises: StorageError if the file cannot be read, exceeds the limit, or was written by a newer pgdyno.
    """
    try:
        raw = read_plain(directory / JOURNAL_FILE, limit_bytes)
    except FileNotFoundError:
        raw = b""
    except OSError as error:
        raise StorageError(f"could not read the journal in {directory}", detail=error.strerror) from error
    return _contents(raw)


def _contents(raw: bytes) -> Contents:
    lines = raw.split(b"\n")
    torn_end = lines.pop()  # text after the last line feed
    return replace(_fold([_entry(line) for line in lines]), is_torn=bool(torn_end))


def _fold(entries: list[dict[str, Any] | None]) -> Contents:
    receipts: dict[str, Receipt] = {}
    interims: dict[str, list[str]] = {}  # by receipt; lists, because appending to a tuple copies it
    damage: list[str] = []
    restarting: set[str] = set()
    unread: list[str] = []  # damage, unless the next readable line is a seal
    for number, entry in enumerate(entries, start=1):
        if entry is None:
            unread.append(f"line {number} of the journal cannot be read")
            continue
        damage += [] if _is_seal(entry) else unread
        unread = []
        if number < len(entries) and _is_seal(entries[number]):
            continue
        try:
            _take(entry, receipts, interims, restarting)
        except (KeyError, TypeError, ValueError, StorageError) as error:
            damage.append(f"line {number} of the journal is invalid: {error}")
    found = (replace(one, interims=tuple(interims[id_])) for id_, one in receipts.items())
    return Contents(tuple(found), (*damage, *unread), frozenset(restarting))


def _is_seal(entry: dict[str, Any] | None) -> bool:
    """Whether an entry marks the preceding lines as cut off; these may include another seal."""
    return entry is not None and entry["event"] == "torn"


def _take(
    entry: Mapping[str, Any],
    receipts: dict[str, Receipt],
    interims: dict[str, list[str]],
    restarting: set[str],
) -> None:
    """Apply one entry to the receipts, their temporary values and the pending restarts."""
    match entry["event"]:
        case "receipt":
            receipt = receipt_of(entry["receipt"])
            receipts[receipt.id], interims[receipt.id] = receipt, []
        case "state":
            state = ReceiptState(entry["state"])
            receipts[entry["id"]] = advanced(
                receipts[entry["id"]], state, effective=entry["effective"], note=entry["note"]
            )
        case "interim":
            interims[entry["id"]].append(entry["value"])
        case "restoring":
            receipts[entry["id"]] = replace(receipts[entry["id"]], is_being_restored=True)
        case "restarting":
            restarting.add(entry["apply_id"])
        case "restarted":
            restarting.discard(entry["apply_id"])
        case "torn":
            pass
        case unknown:
            raise ValueError(f'unknown event "{unknown}"')


def _line(entry: Mapping[str, Json]) -> bytes:
    return json.dumps({"sha256": _checksum(entry), "entry": entry}).encode() + b"\n"


def _entry(line: bytes) -> dict[str, Any] | None:
    """Return the entry in a line; None if the line is damaged.

    Raises: StorageError for another format, which this version could misread.
    """
    try:
        document = json.loads(line)
        entry = document["entry"]
        if document["sha256"] != _checksum(entry):
            return None
        written_as = entry["format"]
        if "event" not in entry:
            return None
    except (ValueError, KeyError, TypeError, RecursionError):  # the last: for thousands of brackets
        return None
    if written_as != _FORMAT:
        raise StorageError(
            f"the journal has format {written_as}, but this pgdyno only supports format {_FORMAT}",
            hint="use the pgdyno that made the changes, or a newer one",
        )
    return dict(entry)


def _checksum(entry: Mapping[str, Json]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:16]


def _require_ours(directory: Path, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
        raise StorageError(
            f"the journal in {directory} cannot be trusted",
            detail="other users can write it, and its values would be restored with your privileges",
            hint="set PGDYNO_HOME to a directory of your own",
        )


def _create(directory: Path) -> None:
    """Create directory and file, and sync both to disk before anything relies on them."""
    if not directory.parent.is_dir():
        directory.parent.mkdir(parents=True)
        if os.geteuid() == 0:
            directory.parent.chmod(0o755)  # independent of the umask: the servers' account needs access
    if not directory.is_dir():
        directory.mkdir(mode=0o700)
        sync_directory(directory.parent)
    path = directory / JOURNAL_FILE
    if not path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    sync_directory(directory)


@contextmanager
def _all_or_nothing(file: int) -> Iterator[None]:
    """Remove the appended data if the block fails or is interrupted.

    On a full disk, only the beginning of a line is written. The next entry would be appended to it, and both
    would be lost.
    """
    length = os.fstat(file).st_size
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        if not is_whole:
            os.ftruncate(file, length)


def _ends_with_a_line(file: int) -> bool:
    """Whether the file is empty or ends with a line feed, not with a line cut off by a crash or Ctrl-C."""
    length = os.fstat(file).st_size
    return length == 0 or os.pread(file, 1, length - 1) == b"\n"


def _write_all(file: int, content: bytes) -> None:
    """Write everything; a short write is repeated, so that a full disk becomes an error."""
    while content:
        content = content[os.write(file, content) :]


def _not_written(directory: Path, error: OSError) -> StorageError:
    return StorageError(
        f"could not write the journal in {directory}",
        detail=error.strerror,
        hint="nothing is changed without a receipt: free disk space or grant access there, then try again",
    )


def read_plain(path: Path, limit_bytes: int | None) -> bytes:
    """Return the content of a regular file. Raises: OSError, also for other files and above the limit."""
    descriptor = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read() if limit_bytes is None else file.read(limit_bytes + 1)
    finally:
        os.close(descriptor)
    if limit_bytes is not None and len(content) > limit_bytes:
        raise OSError(errno.EFBIG, f"it has more than {limit_bytes} bytes")
    return content
