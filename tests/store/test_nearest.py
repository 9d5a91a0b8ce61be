"""Sessions of the folders above are found from below; a session knows the folder it was made in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop.store.nearest import folder_of, folder_of_sessions
from hotloop.store.session import new_session, session_folder


@pytest.fixture
def below(tmp_path: Path) -> Path:
    """Two folders under one that holds a session."""
    new_session(tmp_path, "first").close()
    folder = tmp_path / "project" / "part"
    folder.mkdir(parents=True)
    return folder


def test_the_nearest_folder_with_sessions_is_meant(below: Path, tmp_path: Path) -> None:
    assert folder_of_sessions(below) == tmp_path
    session_folder(below.parent)  # made, and nothing stored
    assert folder_of_sessions(below) == tmp_path
    new_session(below.parent, "second").close()
    assert folder_of_sessions(below) == below.parent


def test_without_any_it_is_the_folder_itself(tmp_path: Path) -> None:
    assert folder_of_sessions(tmp_path) == tmp_path


def test_what_somebody_else_stored_above_is_not_meant(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert folder_of_sessions(below) == below


def test_a_session_knows_its_folder(tmp_path: Path) -> None:
    session = new_session(tmp_path, "first")
    try:
        assert folder_of(session) == tmp_path
    finally:
        session.close()
