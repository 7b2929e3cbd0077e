"""``pgdyno accelerate``: permissions."""

from __future__ import annotations

import pytest
from tests.fix_home import pgdyno

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.usefixtures("home")]


def test_permissions_without_a_server_are_refused() -> None:
    done = pgdyno("accelerate", "--embedded", "--allow-load")
    assert done.returncode == 2
    assert "--allow-load requires a running server, and none was named" in done.stderr
