"""Bytes written to storage by the server per transaction, as counted by the kernel's block layer."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, per_transaction
from pgdyno.measure.meters._io import io_bytes

METER = Meter("written_bytes_per_transaction", "/proc/PID/io of all server processes")


def read(context: MeterContext) -> Counters | None:
    """Return bytes so far; /proc/PID/io is readable for the server's user and for root."""
    return io_bytes(context, "write_bytes")


value = per_transaction
