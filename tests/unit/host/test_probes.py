"""Measured costs: what compression saves, and obstacles to io_uring in one line."""

from __future__ import annotations

from pgdyno.host.probes import IoUringCause, IoUringObstacle, PageCompression


def test_compression_saves_bytes_and_the_time_to_write_them() -> None:
    pages = PageCompression(100, image_bytes=6000, compressed_bytes=2000, compression_us=3, write_ns=2)
    assert pages.saved_bytes == 4000
    assert pages.saved_us == 8  # 4000 bytes at 2 ns each


def test_an_obstacle_has_its_evidence_and_the_remedy() -> None:
    obstacle = IoUringObstacle(IoUringCause.MEMLOCK, "ENOMEM", "raise LimitMEMLOCK")
    assert str(obstacle) == "too little memory may be locked (ENOMEM); raise LimitMEMLOCK"
