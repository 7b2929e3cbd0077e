"""Marks tests that take huge pages for the asking."""

from __future__ import annotations

from pathlib import Path

import pytest

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")

needs_huge_pages = pytest.mark.skipif(
    not THP.is_file() or "[never]" in THP.read_text(), reason=f"no huge pages for the asking: {THP}"
)
