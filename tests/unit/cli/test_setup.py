"""``pgdyno setup``: refused where nothing to set up is named."""

from __future__ import annotations

import pytest

from pgdyno.cli.main import main


def test_nothing_is_set_up_without_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["setup"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "pgdyno: ERROR:  nothing to set up was named  (PGD-100)\nHINT:  pgdyno setup --account\n"
    )
