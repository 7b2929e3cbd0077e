"""Words in sentences."""

from __future__ import annotations

from pgdyno.base.text import sentence


def test_sentence_keeps_the_spelling_of_settings() -> None:
    assert sentence("full-page images per row") == "Full-page images per row"
    assert sentence("the pool is empty") == "The pool is empty"
    assert sentence("io_method=io_uring was left out") == "io_method=io_uring was left out"
    assert sentence("") == ""
