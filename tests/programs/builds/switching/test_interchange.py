"""Programs that a server may be switched to."""

from __future__ import annotations

import pytest
from tests.programs.builds.test_built_servers import EMULATED, FOREIGN

from pgdyno.base.errors import RefusedError
from pgdyno.builds.switching import interchange


def test_a_server_in_use_is_not_switched_to_it() -> None:
    with pytest.raises(RefusedError) as caught:
        interchange._require_cpu(EMULATED)
    assert caught.value.message == f"built-0000000000ff is for a different machine: {FOREIGN}"
