"""What is typed after a patch was shown writes that patch, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.patch.account import to_type


@pytest.mark.parametrize(
    ("plan_file", "unsafe", "observed", "options"),
    [
        (None, False, False, ""),
        (Path("a plan.toml"), False, False, " 'a plan.toml'"),
        (None, True, False, " --unsafe"),
        (Path("p.toml"), True, True, " --unsafe --observe p.toml"),
    ],
)
def test_the_patch_that_was_shown_is_the_one_that_is_written(
    plan_file: Path | None, unsafe: bool, observed: bool, options: str
) -> None:
    lines = [line.strip() for line in to_type(plan_file, unsafe=unsafe, observed=observed)]
    assert lines[-2:] == [f"hotloop patch --write{options}", f"hotloop patch --prove{options}"]
