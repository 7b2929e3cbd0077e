"""Measure whether LZ4 pays off for full-page images, on sampled pages of a data directory.

The data directory is only read. The machine's liblz4 compresses the pages with the function that PostgreSQL
calls for an image (XLogCompressBackupBlock in xloginsert.c). As in PostgreSQL, a page that does not get
smaller stays uncompressed.
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from pathlib import Path

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.probes import PageCompression

PAGES = 64
_LIBRARY = "liblz4.so.1"
_REPEATS = 5  # the fastest is used: other load only makes it slower
_FIRST_USER_NUMBER = 16384  # FirstNormalObjectId in transam.h: catalogs have smaller numbers
_MAIN_FORK = re.compile(r"(\d+)(\.\d+)?")
_BOUNDS = struct.Struct("=12xHH")  # pd_lower and pd_upper of PageHeaderData in bufpage.h
_HEADER_BYTES = 24
_WRITTEN_BYTES = 8 << 20  # half a WAL segment

Compress = Callable[[bytes], int]


def probe_page_compression(
    data_directory: Path, directory: Path, block_bytes: int, identity: AbstractContextManager[None]
) -> Fact[PageCompression]:
    """Measure page compression on a server's data, and write costs in ``directory``.

    Pages are read within ``identity``, with the rights of the data's owner, who may have placed links there.
    Unknown with the reason if there are no pages, they are not readable, or ``directory`` is not on the WAL's
    file system.
    """
    source = f"{PAGES} pages of {data_directory}, compressed by {_LIBRARY}"
    try:
        compress = lz4(block_bytes)
        with identity:
            images = sample_images(data_directory, block_bytes)
            wal_device = (data_directory / "pg_wal").stat().st_dev
        if not images:
            return unknown("no user tables yet", source)
        if wal_device != directory.stat().st_dev:
            return unknown(f"write costs are known only for {directory}, not for the WAL's disk", source)
        write_ns = measure_write_ns(directory)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return unknown(f"{(error.strerror or str(error)).lower()}{where}", source)
    sizes = [min(len(image), compress(image)) for image in images]
    return Fact(
        PageCompression(
            pages=len(images),
            image_bytes=sum(map(len, images)) / len(images),
            compressed_bytes=sum(sizes) / len(images),
            compression_us=_fastest_ns(lambda: [compress(image) for image in images]) / len(images) / 1000,
            write_ns=write_ns,
        ),
        source,
    )


def lz4(largest_bytes: int) -> Compress:
    """Return a function that compresses up to ``largest_bytes`` and returns the compressed size.

    Raises: OSError if the machine has no liblz4.
    """
    library = ctypes.CDLL(_LIBRARY)
    function, capacity = library.LZ4_compress_default, int(library.LZ4_compressBound(largest_bytes))
    target = ctypes.create_string_buffer(capacity)

    def compress(image: bytes) -> int:
        return int(function(image, target, len(image), capacity))

    return compress


def sample_images(data_directory: Path, block_bytes: int, count: int = PAGES) -> list[bytes]:
    """Return full-page images of pages spread over all user tables and indexes, in proportion to their size.

    Only the default tablespace is sampled. Raises: OSError if files are not readable.
    """
    files = sorted(_relation_files(data_directory / "base"))
    ends = list(accumulate(size // block_bytes for _, size in files))
    total = ends[-1] if ends else 0
    numbers = sorted({total * place // count for place in range(count)}) if total else []
    images: list[bytes] = []
    for number in numbers:
        index = next(place for place, end in enumerate(ends) if number < end)
        block = number - (ends[index - 1] if index else 0)
        images += _image(_read_page(files[index][0], block, block_bytes))
    return images


def measure_write_ns(directory: Path) -> float:
    """Return the time per byte of a sequential, flushed overwrite. Raises: OSError."""
    page = os.urandom(8192)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:

        def write() -> None:
            for start in range(0, _WRITTEN_BYTES, len(page)):
                os.pwrite(file.fileno(), page, start)
            os.fdatasync(file.fileno())

        write()  # not measured: it extends the file
        return _fastest_ns(write) / _WRITTEN_BYTES


def _relation_files(base: Path) -> Iterator[tuple[Path, int]]:
    for database in base.iterdir():
        if not database.name.isdecimal():
            continue
        for path in database.iterdir():
            name = _MAIN_FORK.fullmatch(path.name)
            if name is not None and int(name[1]) >= _FIRST_USER_NUMBER:
                found = path.lstat()
                if stat.S_ISREG(found.st_mode):
                    yield path, found.st_size


def _read_page(path: Path, block: int, block_bytes: int) -> bytes:
    """Read a page; never blocks, even if the file was replaced by a FIFO."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, block_bytes, block * block_bytes)
    finally:
        os.close(descriptor)


def _image(page: bytes) -> Sequence[bytes]:
    """Return a page's full-page image in a sequence; empty if the page is new or truncated."""
    if len(page) < _HEADER_BYTES or not any(page):
        return ()
    lower, upper = _BOUNDS.unpack_from(page)
    if not _HEADER_BYTES <= lower < upper <= len(page):
        return (page,)
    return (page[:lower] + page[upper:],)


def _fastest_ns(action: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter_ns()
        action()
        times.append(time.perf_counter_ns() - began)
    return min(times)
