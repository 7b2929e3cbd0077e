"""Hints for the processor are in a patched server's program: a compiler may drop them without a word."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter

import pytest
from tests.fix_servers import RealServer
from tests.integration.patches.wire import PATCHED_BUILD

pytestmark = [
    *PATCHED_BUILD,
    pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump (apt install binutils)"),
]

FUNCTION = re.compile(r"[0-9a-f]+ <(\w+)[^>]*>:")
PREFETCH = re.compile(r"\t(?:prefetch\w*|prfm)\s")
OF_KEYS, LEAST_OF_KEYS = "_bt_", 4  # two keys in each of two searches, which may be part of other functions
LEAST_OF_PAGES = 2  # in whichever functions of bufmgr.c the search for a page has become part of


def prefetches(server: RealServer) -> Counter[str]:
    """Return how many prefetches each function of a server has."""
    found: Counter[str] = Counter()
    function = ""
    argv = ["objdump", "--disassemble", "--no-show-raw-insn", str(server.bin_directory / "postgres")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as dumping:
        assert dumping.stdout is not None
        for line in dumping.stdout:
            if begins := FUNCTION.match(line):
                function = begins[1]
            found[function] += bool(PREFETCH.search(line))
    assert dumping.returncode == 0
    return found


def test_prefetches_are_where_the_patches_have_them(released: RealServer, patched: RealServer) -> None:
    before, after = prefetches(released), prefetches(patched)
    of_keys = [sum(n for name, n in found.items() if name.startswith(OF_KEYS)) for found in (before, after)]
    assert of_keys[0] == 0
    assert of_keys[1] >= LEAST_OF_KEYS
    assert (after - before).total() - of_keys[1] >= LEAST_OF_PAGES
