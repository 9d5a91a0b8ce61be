"""The patched program runs in a folder that looks like the user's: its files, its data, and what lies around it."""

from __future__ import annotations

from pathlib import Path

from hotloop.patch.patched_tree import patched_tree


def test_it_holds_the_patched_files_and_sees_all_else(tmp_path: Path) -> None:
    folder = tmp_path / "repository" / "mnist"
    (folder / "models").mkdir(parents=True)
    (folder / "checkpoints").mkdir()
    (folder / "train.py").write_text("before")
    (folder / "models" / "net.py").write_text("net")
    (folder / "models" / "other.py").write_text("other")
    (folder.parent / "data").mkdir()
    (folder.parent / "data" / "images").write_text("images")
    (tmp_path / "shared").write_text("shared")
    with patched_tree(folder, {"train.py": b"after", "models/net.py": b"patched"}) as tree:
        assert tree.name == "mnist"
        assert (tree / "train.py").read_text() == "after"
        assert not (tree / "train.py").is_symlink()
        assert (tree / "models" / "net.py").read_text() == "patched"
        assert (tree / "models" / "other.py").read_text() == "other"
        assert (tree / "checkpoints").is_dir()
        assert (tree / ".." / "data" / "images").read_text() == "images"
        assert (tree / ".." / ".." / "shared").read_text() == "shared"
        kept = tree
    assert not kept.exists()
    assert (folder / "train.py").read_text() == "before"
    assert (folder.parent / "data" / "images").read_text() == "images"
