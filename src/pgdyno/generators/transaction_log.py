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

_MOST_BYTES = 2 << 30  # arbitrary: some 60 million transactions since the last call


def log_label(experiment_id: str, workload: str, round_index: int, arm: int) -> str:
    """Return the name under which an arm's transactions are logged; it begins with the experiment's id."""
    return f"{experiment_id}.{workload}.{round_index}.{arm}"


@dataclass
class TransactionLog:
    """All log files of one generator process: ``PREFIX.*``. Remembers how far each has been read.

    They are written by the generators' user, who could make them as large as the disk.
    """

    prefix: Path
    _offsets: dict[Path, int] = field(default_factory=dict)

    def read_new(self) -> bytes:
        """Return the complete lines written since the last call; a torn last line is left for the next."""
        paths = sorted(self.prefix.parent.glob(f"{glob.escape(self.prefix.name)}.*"))
        read: list[bytes] = []
        for path in paths:
            read.append(self._read_file(path, _MOST_BYTES - sum(map(len, read))))
        return b"".join(read)

    def _read_file(self, path: Path, most_bytes: int) -> bytes:
        offset = self._offsets.get(path, 0)
        with open(path, "rb", opener=_open_plain) as file:
            new_bytes = os.fstat(file.fileno()).st_size - offset
            if new_bytes > most_bytes:
                raise GeneratorFailedError(
                    "a generator's log is larger than what is read at once",
                    detail=f"{path} has {new_bytes} new bytes, a generator may write {_MOST_BYTES}",
                    hint="measure in shorter blocks: --block, or block_s in an experiment file",
                )
            file.seek(offset)
            text = file.read(max(0, new_bytes))  # it grows meanwhile
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
