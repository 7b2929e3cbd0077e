"""What of a running server's settings a scratch server beside it is given."""

from __future__ import annotations

import pytest
from tests.fix_settings import MAJORS, settings_of

from pgdyno.model.variants.variant import Variant, require_measurable
from pgdyno.plan.attached import _shapes_performance


@pytest.mark.parametrize("major", MAJORS)
def test_nothing_that_may_not_be_measured_is_taken_over(major: int) -> None:
    taken = {guc.name: guc.display() for guc in settings_of(major).values() if _shapes_performance(guc)}
    assert {"shared_buffers", "work_mem", "fsync"} <= {*taken}
    assert not {"extension_control_path", "oauth_validator_libraries", "krb_server_keyfile"} & {*taken}
    require_measurable([Variant("as-found", taken)])
