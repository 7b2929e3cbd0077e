"""Whether LZ4 pays is found out on the pages of a real server: text compresses, random digits do not."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
from tests.fix_servers import RealServer
from tests.unit.host.probing.test_compression_probe import needs_lz4

from pgdyno.base.facts import Unknown
from pgdyno.host.probes import PageCompression
from pgdyno.host.probing.compression_probe import probe_page_compression

pytestmark = [pytest.mark.server, needs_lz4]

# As sysbench fills its column c: groups of random digits.
DIGITS = """
    CREATE TABLE filled AS
    SELECT n, (SELECT string_agg(lpad((random() * 1e11)::bigint::text, 11, '0'), '-')
                 FROM generate_series(1, 15) WHERE n > 0) AS c
      FROM generate_series(1, 5000) n"""
TEXT = """
    CREATE TABLE filled AS
    SELECT n, repeat('the customer has been told that the order is on its way; ', 4) AS c
      FROM generate_series(1, 5000) n"""


def found_with(server: RealServer, filling: str) -> PageCompression:
    """Return what was found, on a machine that takes 10 µs for a page and 3 ns to write a byte."""
    server.execute(filling)
    server.execute("CHECKPOINT")
    found = probe_page_compression(
        server.data_directory, server.data_directory.parent, 8192, nullcontext()
    ).value
    assert not isinstance(found, Unknown), found.reason
    assert found.pages == 64
    assert min(found.compression_us, found.write_ns) > 0
    return replace(found, compression_us=10.0, write_ns=3.0)


def test_repeated_text_is_worth_it(scratch_pg15: RealServer) -> None:
    found = found_with(scratch_pg15, TEXT)
    assert found.saved_bytes > 0.7 * found.image_bytes
    assert found.saved_us > found.compression_us


def test_random_digits_are_not(scratch_pg15: RealServer) -> None:
    found = found_with(scratch_pg15, DIGITS)
    assert found.saved_bytes < 0.25 * found.image_bytes
    assert found.saved_us < found.compression_us
