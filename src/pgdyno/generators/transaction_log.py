"""Read a generator's per-transaction log while it runs.

``experiments/blocks/transactions.py`` parses it.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.model.errors import GeneratorFailedError


def log_label(experiment_id: str, workload: str, round_index: int, arm: int) -> str:
    """Return the name under which an arm's transactions are logged; it begins with the experiment's id."""
    return f"{experiment_id}.{workload}.{round_index}.{arm}"


@dataclass
class TransactionLog:
    """All log files of one generator process: ``PREFIX.*``. Remembers how far each has been read."""

    prefix: Path
    _offsets: dict[Path, int] = field(default_factory=dict)

    def read_new(self) -> bytes:
        """Return the complete lines written since the last call; a torn last line is left for the next."""
        paths = sorted(self.prefix.parent.glob(f"{glob.escape(self.prefix.name)}.*"))
        return b"".join(self._read_file(path) for path in paths)

    def _read_file(self, path: Path) -> bytes:
        offset = self._offsets.get(path, 0)
        with open(path, "rb", opener=_open_plain) as file:
            file.seek(offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offsets[path] = offset + len(complete)
        return complete


def _open_plain(path: str, flags: int) -> int:
    """Open a log of the generators' user, who could have put a link or a FIFO there for root to follow."""
    refused = GeneratorFailedError("a generator's log is not a plain file", detail=path)
    try:
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise (refused if error.errno == errno.ELOOP else error) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise refused
    return file
