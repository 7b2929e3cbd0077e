"""Names of future WAL segments, as PostgreSQL's own documentation and source make them."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import ServerError
from pgdyno.postgres.process.wal_segments import WalPosition, wal_position

CONTROL = """\
pg_control version number:            1800
Latest checkpoint's REDO location:    0/FE000028
Latest checkpoint's REDO WAL file:    0000000100000000000000FE
Latest checkpoint's TimeLineID:       1
Bytes per WAL segment:                16777216
"""
MB = 1 << 20


def test_the_position_is_what_pg_controldata_says() -> None:
    assert wal_position(CONTROL) == WalPosition(timeline=1, segment=0xFE, segment_bytes=16 * MB)


def test_after_the_segment_ff_the_middle_of_the_name_counts_on() -> None:
    assert wal_position(CONTROL).following(3) == [
        "0000000100000000000000FF",
        "000000010000000100000000",
        "000000010000000100000001",
    ]


def test_larger_segments_are_fewer_to_a_middle() -> None:
    # 4 GB are four segments of 1 GB: after number 7, which is 1/3, comes 2/0.
    assert WalPosition(timeline=26, segment=7, segment_bytes=1024 * MB).following(1) == [
        "0000001A0000000200000000"
    ]
    text = CONTROL.replace("0000000100000000000000FE", "0000001A0000000100000003")
    assert wal_position(text.replace("16777216", "1073741824")) == WalPosition(26, 7, 1024 * MB)


def test_an_answer_in_another_form_is_an_error_with_the_answer() -> None:
    with pytest.raises(ServerError) as caught:
        wal_position("pg_control version number: 1\n")
    assert caught.value.message == "pg_controldata reports no WAL file or no segment size"
    assert caught.value.detail == "pg_control version number: 1"
