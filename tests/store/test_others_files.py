"""What lies in `.hotloop/` may be somebody else's: it is not written to, followed or read by others."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from hotloop.model.errors import HotloopError
from hotloop.store.session import Session, find_session, new_session, session_folder, sessions
from hotloop.store.user_key import user_key
from hotloop.tune.session.resume import session_of

WORDS = ("python", "train.py", "--token", "very-secret", "--lr", "1")


def _application(path: Path) -> bytes:
    connection = sqlite3.connect(path)
    connection.execute("create table mail (id)")
    connection.commit()
    connection.close()
    return path.read_bytes()


def test_a_link_to_another_applications_database_is_not_followed(tmp_path: Path) -> None:
    content = _application(tmp_path / "mail.db")
    folder = session_folder(tmp_path)
    (folder / "20260101-000000.sqlite").symlink_to(tmp_path / "mail.db")
    assert sessions(tmp_path) == []
    with pytest.raises(HotloopError, match="is a link, so it is not opened as a session"):
        Session(folder / "20260101-000000.sqlite")
    assert (tmp_path / "mail.db").read_bytes() == content
    assert not (tmp_path / "mail.db-wal").exists()


def test_another_applications_database_is_left_alone(tmp_path: Path) -> None:
    path = session_folder(tmp_path) / "a.sqlite"
    content = _application(path)
    with pytest.raises(HotloopError, match="is another application's database"):
        find_session(tmp_path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/nowhere", path)])
def test_what_is_no_file_is_passed_over(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(session_folder(tmp_path) / "a.sqlite")
    assert sessions(tmp_path) == []


def test_a_dangling_gitignore_makes_no_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / ".hotloop").mkdir()
    (tmp_path / ".hotloop" / ".gitignore").symlink_to(tmp_path / "elsewhere")
    session_folder(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / ".hotloop").symlink_to("other")
    with pytest.raises(HotloopError, match="is a link, so nothing is written there"):
        new_session(tmp_path, "a")
    assert list((tmp_path / "other").iterdir()) == []


def test_a_session_is_this_users_alone_and_says_what_it_is(tmp_path: Path) -> None:
    session = new_session(tmp_path, "a")
    session.put("a", 1)
    session.close()
    assert stat.S_IMODE(session.path.stat().st_mode) == 0o600
    assert session.path.read_bytes()[68:72] == b"hotl"


@pytest.mark.parametrize("value", ["'text'", "7", "NULL", "x'c1'"])
def test_cells_of_wrong_types_are_an_error_in_words(tmp_path: Path, value: str) -> None:
    session = new_session(tmp_path, "a")
    session._connection.execute("drop table entry")
    session._connection.execute("create table entry (key, body, at)")
    session._connection.execute(f"insert into entry values ('t', {value}, 0), (7, x'00', 0), (NULL, NULL, 0)")
    assert session.keys() == ["t"]
    with pytest.raises(HotloopError, match="cannot be read"):
        session.get("t", int)
    session.close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_a_session_in_use_is_not_joined(project: Path) -> None:
    first = session_of(WORDS, None, resume=False)
    with pytest.raises(HotloopError, match="is being used by another hotloop"):
        session_of(WORDS, None, resume=True)
    first.close()
    session_of(WORDS, None, resume=True).close()


def test_secrets_are_compared_and_not_kept(project: Path) -> None:
    session_of(WORDS, None, resume=False).close()
    for file in (project / ".hotloop").iterdir():
        assert b"very-secret" not in file.read_bytes()
    session_of(WORDS, None, resume=True).close()
    with pytest.raises(HotloopError, match="cannot be gone on with"):
        session_of((*WORDS[:3], "another", *WORDS[4:]), None, resume=True)


def test_the_key_is_made_once_for_this_user_alone(project: Path) -> None:
    key = user_key()
    assert key is not None
    assert key == user_key()
    assert stat.S_IMODE((project / "cache" / "hotloop" / "key").stat().st_mode) == 0o600
