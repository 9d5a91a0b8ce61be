"""What a run writes reaches nobody's files, wherever they lie, with namespaces and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.launch.isolation import landlock
from hotloop.launch.isolation.decide import NO_LANDLOCK, NO_NAMESPACES, check_covered
from hotloop.model.errors import ExitCode, HotloopError
from tests.attack.running import NOT_REDIRECTED, attack
from tests.attack.setups import SETUPS

EVERYDAY = ("link to another disk", "chain of links", "shared memory", "odd name")


@pytest.fixture(params=["namespaces", "guard"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "guard":
        if not landlock.version():
            pytest.skip("no Landlock on this machine")
        monkeypatch.setenv(NO_NAMESPACES, "1")
    return str(request.param)


@pytest.mark.parametrize("name", EVERYDAY)
def test_every_way_of_writing_is_seen_by_the_program_alone(name: str, mode: str) -> None:
    with SETUPS[name]() as setup:
        done = attack(setup)
    if done.isolation.uncovered is not None:  # said beforehand, and `tune` refuses
        assert mode == "guard"
        assert "/dev/shm" in done.isolation.uncovered
        return
    assert not done.differences
    failed = {way: outcome for way, outcome in done.outcomes.items() if outcome != "ok"}
    assert len(done.outcomes) >= 27
    if mode == "namespaces":
        assert not failed
        assert done.isolation.missing is None
    else:
        assert failed.keys() <= NOT_REDIRECTED, failed
        assert "a guard inside Python" in (done.isolation.missing or "")


def test_what_the_user_excepts_is_really_written(mode: str, tmp_path: Path) -> None:
    with SETUPS["temporary folder"]() as setup:
        done = attack(setup, writable=(Path(setup.folder),))
        assert (Path(setup.folder) / "new").read_text() == "new"
        assert (Path(setup.folder) / "shell").exists()
    assert "are real, as asked for (--writable)" in (done.isolation.missing or "")


def test_without_any_protection_by_the_kernel_it_is_said_and_tuning_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NO_NAMESPACES, "1")
    monkeypatch.setenv(NO_LANDLOCK, "1")
    with SETUPS["temporary folder"]() as setup:
        done = attack(setup)
    assert done.differences  # what the guard cannot catch
    with pytest.raises(HotloopError, match="your files cannot be kept safe here") as caught:
        check_covered(done.isolation, allow_writes=False)
    assert caught.value.code is ExitCode.MACHINE
    assert "--allow-writes" in caught.value.hint
    check_covered(done.isolation, allow_writes=True)
