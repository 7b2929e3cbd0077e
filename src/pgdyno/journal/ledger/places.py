"""Other journals on this host.

Root's journal for an ordinary user, other users' journals for root.

Two journals may hold receipts for one server. Neither knows of the other, so that the user has to. Their
owners can put anything there: nothing of it keeps root waiting, or is more than a journal that is not read.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from pathlib import Path

from pgdyno.journal.ledger.log import FILE, read_journal
from pgdyno.model.errors import StorageError
from pgdyno.model.plans.journal import OtherJournal

SYSTEM_DIRECTORY = Path("/var/lib/pgdyno/journal")
USER_STATE = Path(".local/state")
_IN_STATE = Path("pgdyno/journal")
_LIMIT_BYTES = 4 << 20  # arbitrary: thousands of changes


def candidate_directories() -> tuple[Path, ...]:
    """Return where journals lie: the system's, this user's, and, for root, one in each user's home.

    This user may have two, with and without PGDYNO_HOME. Homes of others are closed to an ordinary user, and
    looking there could mount them over the network.
    """
    own = []
    if home := os.environ.get("PGDYNO_HOME"):
        own.append(Path(home) / "journal")
    own.append(Path(os.environ.get("XDG_STATE_HOME") or Path.home() / USER_STATE) / _IN_STATE)
    homes = sorted({entry.pw_dir for entry in pwd.getpwall()}) if os.geteuid() == 0 else []
    return (SYSTEM_DIRECTORY, *own, *(Path(home) / USER_STATE / _IN_STATE for home in homes))


def other_journals(own: Path, candidates: Iterable[Path]) -> tuple[OtherJournal, ...]:
    """Return the journals among ``candidates`` that are not our own and are not known to be done with."""
    found = [_look(directory) for directory in dict.fromkeys(candidates) if directory != own]
    return tuple(journal for journal in found if journal is not None and journal.open_receipts != 0)


def _look(directory: Path) -> OtherJournal | None:
    try:
        (directory / FILE).lstat()
        return OtherJournal(str(directory), len(read_journal(directory, _LIMIT_BYTES).open))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        return OtherJournal(str(directory), None) if _is_seen(directory) else None
    except (StorageError, OSError):
        return OtherJournal(str(directory), None)


def _is_seen(directory: Path) -> bool:
    """Whether a directory is known to exist. One that is closed to us does; in a closed home nobody knows."""
    try:
        directory.stat()
    except OSError:
        return False
    return True
