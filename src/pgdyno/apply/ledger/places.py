"""Other journals on this host: root's journal for an ordinary user, other users' journals for root.

Two journals may contain receipts for the same server without referring to each other, so the user is told
about both. Their owners can put anything there: at worst, root regards such a journal as unreadable, without
blocking on it. Root never undoes changes by another user's journal: root can only run that user's own pgdyno.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from pgdyno.apply.ledger.log import read_journal
from pgdyno.base.errors import StorageError
from pgdyno.model.plans.journal import OtherJournal, Receipt
from pgdyno.postgres.process.workspace import JOURNAL_FILE, USER_STATE, as_owner

SYSTEM_DIRECTORY = Path("/var/lib/pgdyno/journal")
_IN_STATE = Path("pgdyno/journal")
_LIMIT_BYTES = 4 << 20  # arbitrary: thousands of changes
_ADDRESS = re.compile(r"host=[\w./:@-]+ port=[0-9]{1,5}", re.ASCII)  # of a target, perhaps by another user


def candidate_directories() -> tuple[Path, ...]:
    """Return possible journal directories: the system's, this user's, and, for root, one in each user's home.

    This user may have two, with and without PGDYNO_HOME. An ordinary user cannot read other homes, and access
    could mount them over the network.
    """
    own = []
    if home := os.environ.get("PGDYNO_HOME"):
        own.append(Path(home) / "journal")
    own.append(Path(os.environ.get("XDG_STATE_HOME") or Path.home() / USER_STATE) / _IN_STATE)
    homes = sorted({entry.pw_dir for entry in pwd.getpwall()}) if os.geteuid() == 0 else []
    return (SYSTEM_DIRECTORY, *own, *(Path(home) / USER_STATE / _IN_STATE for home in homes))


def other_journals(own: Path, candidates: Iterable[Path]) -> tuple[OtherJournal, ...]:
    """Return the journals among ``candidates`` other than ``own`` that have, or may have, open receipts."""
    found = [_look(directory) for directory in dict.fromkeys(candidates) if directory != own]
    return tuple(journal for journal in found if journal is not None and journal.open_receipts != 0)


def _look(directory: Path) -> OtherJournal | None:
    try:
        status = (directory / JOURNAL_FILE).lstat()
        receipts = read_journal(directory, _LIMIT_BYTES).open
        return OtherJournal(str(directory), len(receipts), _undoing(directory, status.st_uid, receipts))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        return OtherJournal(str(directory), None) if _is_seen(directory) else None
    except (StorageError, OSError):
        return OtherJournal(str(directory), None)


def _undoing(directory: Path, uid: int, receipts: Sequence[Receipt]) -> str | None:
    """Return the command that undoes a journal's changes, for its user or root; None if unknown."""
    places = {receipt.target.address for receipt in receipts if not receipt.is_on_host}
    address = places.pop() if len(places) == 1 else ""
    words = ["pgdyno", "revert"]
    words += ["--dsn", f"{address} dbname=postgres"] if _ADDRESS.fullmatch(address) else []
    if uid == os.geteuid():
        return shlex.join(["env", f"PGDYNO_HOME={directory.parent}", *words])
    if os.geteuid() != 0:
        return None
    # A user's journal must be in that user's home, where other users cannot replace it.
    owner = next(
        (one for one in pwd.getpwall() if one.pw_uid == uid and _is_in(Path(one.pw_dir), directory)), None
    )
    return None if owner is None else as_owner(owner.pw_name, directory.parent, words)


def _is_in(home: Path, directory: Path) -> bool:
    return directory == home / USER_STATE / _IN_STATE


def _is_seen(directory: Path) -> bool:
    """Whether a directory is known to exist: it may be unreadable, but not below an unreadable home."""
    try:
        directory.stat()
    except OSError:
        return False
    return True
