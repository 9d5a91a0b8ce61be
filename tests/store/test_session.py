"""The session file: what is committed stays, and what is wrong with a file is said."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Failure, FailureKind, Measured, Trial
from hotloop.store.session import (
    ELSEWHERE,
    SCHEMA,
    Session,
    find_session,
    new_session,
    session_folder,
    sessions,
)

from .namespaces import python_on_small_disk


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = new_session(tmp_path, "20260101-120000")
    yield session
    session.close()


def _trial(key: str, ratio: float = 1.0) -> Trial:
    outcome = Measured(pairs=((ratio, math.nan),), step_s=(0.1, 0.2))
    return Trial(
        key=key,
        candidate=Candidate(name=key),
        incumbent=(),
        outcome=outcome,
        decision="accepted",
        seconds=1.5,
    )


class TestValues:
    def test_a_value_comes_back_as_it_was(self, session: Session) -> None:
        failed = Failure(kind=FailureKind.TIMEOUT, message="no step", log_end="…")
        trial = Trial(key="t", candidate=Candidate(name="a"), incumbent=(), outcome=failed, decision="failed")
        session.put("t", trial)
        assert session.get("t", Trial) == trial

    def test_numbers_that_are_none_in_json_come_back_too(self, session: Session) -> None:
        session.put("t", (math.nan, math.inf))
        not_a_number, infinity = session.get("t", tuple[float, float]) or (0.0, 0.0)
        assert math.isnan(not_a_number)
        assert math.isinf(infinity)

    def test_what_is_not_there_is_none(self, session: Session) -> None:
        assert session.get("nothing", Trial) is None

    def test_a_later_value_takes_the_place_of_an_earlier_one(self, session: Session) -> None:
        session.put("t", 1)
        session.put("t", 2)
        assert session.get("t", int) == 2
        assert session.keys() == ["t"]

    def test_keys_are_listed_oldest_first_by_their_beginning(self, session: Session) -> None:
        for key in ("trial|b", "floor|0", "trial|a"):
            session.put(key, 0)
        assert session.keys("trial|") == ["trial|b", "trial|a"]

    def test_it_is_there_when_the_file_is_opened_again(self, session: Session) -> None:
        session.put("t", _trial("t", 1.25))
        again = Session(session.path)
        known = again.get("t", Trial)
        again.close()
        assert known is not None
        assert isinstance(known.outcome, Measured)
        assert known.outcome.pairs[0][0] == 1.25

    def test_an_entry_of_another_kind_is_an_error(self, session: Session) -> None:
        session.put("t", "a word")
        with pytest.raises(HotloopError, match="holds an entry 't' that cannot be read"):
            session.get("t", Trial)

    def test_commits_go_through_a_log_and_reach_the_disk(self, session: Session) -> None:
        assert session._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert session._connection.execute("PRAGMA synchronous").fetchone() == (2,)


class TestFinding:
    def test_the_folder_keeps_itself_out_of_version_control(self, tmp_path: Path) -> None:
        assert (session_folder(tmp_path) / ".gitignore").read_text() == "*\n"

    def test_a_name_that_is_taken_gets_a_number(self, session: Session, tmp_path: Path) -> None:
        other = new_session(tmp_path, "20260101-120000")
        other.close()
        assert other.name == "20260101-120000-2"

    def test_the_newest_is_found(self, session: Session, tmp_path: Path) -> None:
        newer = new_session(tmp_path, "20260101-130000")
        newer.close()
        os.utime(session.path, ns=(1, 1))
        found = find_session(tmp_path)
        found.close()
        assert found.name == newer.name
        assert [path.stem for path in sessions(tmp_path)] == [newer.name, session.name]

    def test_without_any_the_hint_says_how_to_make_one(self, tmp_path: Path) -> None:
        with pytest.raises(HotloopError, match="there is no session in") as caught:
            find_session(tmp_path)
        assert "hotloop tune" in caught.value.hint

    def test_one_that_lies_elsewhere_is_found_by_its_file(self, session: Session, tmp_path: Path) -> None:
        session.close()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        moved = session.path.rename(elsewhere / "moved.sqlite")
        found = find_session(tmp_path, str(moved))
        found.close()
        assert found.path == moved
        with pytest.raises(HotloopError, match=r"there is no file nowhere\.sqlite"):
            find_session(tmp_path, "nowhere.sqlite")

    def test_an_unknown_name_is_answered_with_the_known_ones(self, session: Session, tmp_path: Path) -> None:
        with pytest.raises(HotloopError, match="no session 'other'") as caught:
            find_session(tmp_path, "other")
        assert caught.value.hint == "known: 20260101-120000"


class TestDamage:
    @pytest.mark.parametrize(
        "content", [b"not a database, and long enough to say so", b"\0" * 4096, b"x" * 200]
    )
    def test_another_file_is_said_to_be_damaged_and_left_alone(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "my session.sqlite"
        path.write_bytes(content)
        with pytest.raises(HotloopError, match="is damaged: file is not a database") as caught:
            Session(path)
        assert f"mv '{path}' '{path}.damaged'" in caught.value.hint
        assert caught.value.code is ExitCode.USAGE
        assert path.read_bytes() == content

    def test_a_truncated_file_is_said_to_be_damaged(self, tmp_path: Path) -> None:
        path = _written(tmp_path, 200)
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 3])
        with pytest.raises(HotloopError, match=r"is damaged: database disk image is malformed"):
            _read_all(path, 200)

    def test_overwritten_pages_are_said_to_be_damaged(self, tmp_path: Path) -> None:
        path = _written(tmp_path, 200)
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        path.write_bytes(content)
        with pytest.raises(HotloopError, match="is damaged"):
            _read_all(path, 200)

    def test_a_later_schema_is_not_touched(self, tmp_path: Path) -> None:
        path = _written(tmp_path, 1)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version={SCHEMA + 1}")
        connection.close()
        with pytest.raises(
            HotloopError, match=f"is of schema {SCHEMA + 1}, this hotloop reads schema {SCHEMA}"
        ):
            Session(path)

    def test_a_session_that_another_process_writes_to_is_in_use(self, session: Session) -> None:
        other = sqlite3.connect(session.path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        session._connection.execute("PRAGMA busy_timeout=10")
        with pytest.raises(HotloopError, match="is in use: database is locked"):
            session.put("t", 1)
        other.close()


def _written(folder: Path, num: int) -> Path:
    session = new_session(folder, "s")
    for number in range(num):
        session.put(f"trial|{number}", _trial(f"{number}"))
    session.close()
    return session.path


def _read_all(path: Path, num: int) -> None:
    session = Session(path)
    try:
        for number in range(num):
            session.get(f"trial|{number}", Trial)
    finally:
        session.close()


_WRITE = """
from pathlib import Path
from hotloop.model.errors import HotloopError
from hotloop.store.session import find_session, new_session
try:
    session = {opened}
    for number in range(1000):
        session.put(f"trial|{{number}}", "x" * 1000)
        print(number)
except HotloopError as error:
    print(error.message, error.hint, error.code.name, sep="\\n")
"""
_READ = """
from pathlib import Path
from hotloop.store.session import find_session
session = find_session(Path())
print(*session.keys())
"""
_NEW = _WRITE.format(opened="new_session(Path(), 's')")
_OLD = _WRITE.format(opened="find_session(Path())")
_CLOSED = """
from pathlib import Path
from hotloop.store.session import new_session
session = new_session(Path(), "s")
session.put("trial", 1)
session.close()
"""
_FILL = """
import contextlib
with contextlib.suppress(OSError), open("rest", "wb", buffering=0) as file:
    while file.write(bytes(4096)):
        pass
"""
_CHECK = """
from pathlib import Path
from hotloop.model.errors import HotloopError
from hotloop.store.session import check_storable
try:
    check_storable(Path())
except HotloopError as error:
    print(error.message)
"""


class TestSpace:
    def test_a_full_disk_is_said_and_what_was_committed_is_kept(self, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        write, read = python_on_small_disk(disk, "size=256k", _NEW, "mount:size=1m", _READ)
        *numbers, message, hint, code = write.stdout.splitlines()
        assert "cannot be written: database or disk is full; what was finished before is kept" in message
        assert hint == "free some space; hotloop tune goes on with --resume"
        assert code == "MACHINE"
        assert len(numbers) > 10
        assert read.stdout.split() == [f"trial|{number}" for number in numbers]

    def test_a_disk_too_small_to_begin_on_is_said(self, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        (write,) = python_on_small_disk(disk, "size=4k", _NEW)
        assert "cannot be written: database or disk is full" in write.stdout
        assert write.stdout.splitlines()[-1] == "MACHINE"

    @pytest.mark.parametrize("program", [_NEW, _OLD])
    def test_a_read_only_folder_is_said(self, tmp_path: Path, program: str) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        _, write = python_on_small_disk(disk, "size=8m", _NEW, "mount:ro", program)
        assert f"{ELSEWHERE}\nMACHINE" in write.stdout

    def test_a_read_only_folder_without_a_session_is_said(self, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        (write,) = python_on_small_disk(disk, "ro", _NEW)
        message = write.stdout.splitlines()[0]
        assert message.startswith("no session can be stored in ")
        assert message.endswith(".hotloop: Read-only file system")

    @pytest.mark.parametrize("options", ["size=256k", "ro"])
    def test_what_is_stored_is_read_where_nothing_can_be_written(self, tmp_path: Path, options: str) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        programs = [_CLOSED, _FILL, f"mount:{options}", _READ, _OLD, _CHECK]
        *_, read, write, check = python_on_small_disk(disk, "size=256k", *programs)
        assert read.stdout.split() == ["trial"]
        assert "cannot be written here: attempt to write a readonly database" in write.stdout
        assert ("no session can be stored in" in check.stdout) is (options == "ro")
