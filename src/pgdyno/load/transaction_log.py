"""Read a generator's per-transaction log while it runs; assemble a log sent by another host.

``measure/blocks/transactions.py`` parses it.
"""

from __future__ import annotations

import base64
import errno
import glob
import os
import re
import stat
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgdyno.base.errors import GeneratorFailedError

MOST_BYTES = 2 << 30  # arbitrary: about 60 million transactions since the last call
_SENT_FILE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)  # ARM.THREAD
_MOST_PART_BYTES = 1 << 20  # the program on a load host sends parts of an eighth of that


def log_label(experiment_id: str, workload: str, round_index: int, arm: int) -> str:
    """Return the name of an arm's transaction log; it begins with the experiment's id."""
    return f"{experiment_id}.{workload}.{round_index}.{arm}"


@dataclass
class TransactionLog:
    """All log files of one generator process, ``PREFIX.*``, with the offset up to which each was read.

    They are written by the generators' user, who could fill the disk with them.
    """

    prefix: Path
    _offsets: dict[Path, int] = field(default_factory=dict)

    def read_new(self) -> bytes:
        """Return the complete lines written since the last call; an incomplete one is left for the next.

        Raises: GeneratorFailedError for a file that is not regular, or for more than ``MOST_BYTES``.
        """
        paths = sorted(self.prefix.parent.glob(f"{glob.escape(self.prefix.name)}.*"))
        read: list[bytes] = []
        for path in paths:
            read.append(self._read_file(path, MOST_BYTES - sum(map(len, read))))
        return b"".join(read)

    def _read_file(self, path: Path, most_bytes: int) -> bytes:
        offset = self._offsets.get(path, 0)
        with open(path, "rb", opener=_open_plain) as file:
            new_bytes = os.fstat(file.fileno()).st_size - offset
            if new_bytes > most_bytes:
                raise GeneratorFailedError(
                    "a generator's log is too large",
                    detail=f"{path} has {new_bytes} new bytes; the limit per generator is {MOST_BYTES}",
                    hint="measure in shorter blocks: --block, or block_s in an experiment file",
                )
            file.seek(offset)
            text = file.read(max(0, new_bytes))  # the file may have grown
        complete = text[: text.rfind(b"\n") + 1]
        self._offsets[path] = offset + len(complete)
        return complete


def _open_plain(path: str, flags: int) -> int:
    """Open a log of the generators' user, who could have replaced it with a link or a FIFO."""
    refused = GeneratorFailedError("a generator's log is not a regular file", detail=path)
    try:
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise (refused if error.errno == errno.ELOOP else error) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise refused
    return file


def keep_sent_part(host: str, prefixes: Sequence[Path], event: Mapping[str, Any]) -> int:
    """Append a part of a log sent by a host; return its size. ``prefixes`` are local, by arm.

    Raises: GeneratorFailedError for an invalid event, and for a part that is truncated or too large.
    """
    try:
        arm, thread = map(int, _matched(event["file"]))
        prefix = prefixes[arm]
        packed = base64.b64decode(event["part"], validate=True)
        part = _unpacked(packed)
    except (KeyError, IndexError, TypeError, ValueError, zlib.error) as error:
        raise GeneratorFailedError(f"{host} sent an invalid part of its load's log") from error
    with open(prefix.with_name(f"{prefix.name}.{thread}"), "ab", opener=_open_own) as file:
        file.write(part)
    return len(part)


def _unpacked(packed: bytes) -> bytes:
    """Return a decompressed part. Raises: ValueError or zlib.error if it is truncated or too large."""
    unpacking = zlib.decompressobj()
    part = unpacking.decompress(packed, _MOST_PART_BYTES)
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError("it is truncated, too large, or followed by other data")
    return part


def _matched(name: str) -> Sequence[str]:
    found = _SENT_FILE.fullmatch(name)
    if found is None:
        raise ValueError(name)
    return found.groups()


def _open_own(path: str, flags: int) -> int:
    """Open a log for appending, without following links that the generators' user could have placed there."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
