"""Pages are whole in themselves: their policy names the style sheet by its hash, and nothing else may run."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from jinja2 import UndefinedError
from tests.golden.synthetic import experiment

from pgdyno.report.elements.html import render
from pgdyno.results.page import render_page

PAGE = render_page(experiment())


def test_the_policy_has_the_hash_of_the_style_sheet_in_the_page() -> None:
    [style] = re.findall(r"<style>(.*?)</style>", PAGE, re.DOTALL)
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', PAGE)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"style-src 'sha256-{digest}'" in policy.replace("&#39;", "'")
    assert "<script" not in PAGE


def test_a_value_that_a_page_lacks_is_an_error_and_no_empty_text() -> None:
    with pytest.raises(UndefinedError):
        render("page.html.j2")
