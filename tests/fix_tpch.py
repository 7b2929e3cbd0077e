"""tpchgen, which makes TPC-H's rows: where it was installed, and a mark for tests that need it."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import pytest

# Beside the Python that runs the tests, which need not be on the PATH.
TPCHGEN = shutil.which("tpchgen-cli", path=sysconfig.get_path("scripts")) or shutil.which("tpchgen-cli")
REASON = "tpchgen-cli is not installed: pip install 'pgdyno[tpch]'"
needs_tpchgen = pytest.mark.skipif(TPCHGEN is None, reason=REASON)


def tpchgen() -> Path:
    """Return the program, for tests that are marked."""
    assert TPCHGEN is not None
    return Path(TPCHGEN)
