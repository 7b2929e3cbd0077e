"""Quotes and escapes of configuration files, against guc-file.l."""

from __future__ import annotations

import pytest

from pgdyno.postgres.guc_text import unquoted


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8MB", "8MB"),
        ("'8MB'", "8MB"),
        ("''", ""),
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\tb\nc\\d'", "a\tb\nc\\d"),
        (r"'\101\7x'", "A\ax"),
        (r"'\q'", "q"),
    ],
)
def test_a_text_stands_for_the_value_that_the_server_reads(text: str, value: str) -> None:
    assert unquoted(text) == value
