"""A browser for all tests of this directory, where one is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.chromium import Browser, Tab, find_chromium, running_browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Run one Chromium for the session."""
    program = find_chromium()
    if program is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    directory: Path = tmp_path_factory.mktemp("chromium")
    with running_browser(program, directory) as running:
        yield running


@pytest.fixture
def tab(browser: Browser) -> Tab:
    """Open a fresh tab."""
    return browser.new_tab()
