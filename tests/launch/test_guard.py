"""The guard inside Python: what a program writes is seen by itself, and by nobody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hotloop.launch.isolation.keep_outputs import keep_writes
from hotloop.launch.isolation.overlays import COVERS
from tests.observe.conftest import tree_hash

_PROGRAM = """
import json, logging, os, pathlib, shutil, sys
from hotloop.probe.setup.write_guard import install
install([os.getcwd()], sys.argv[1])

open("new.txt", "w").write("new")
assert open("new.txt").read() == "new"
open("old.txt", "a").write(" and more")
assert open("old.txt").read() == "old and more"
with open("old.txt", "r+") as file:
    file.write("OLD")
assert pathlib.Path("old.txt").read_text() == "OLD and more"
os.makedirs("runs/1/checkpoints", exist_ok=True)
os.makedirs("runs/1/checkpoints", exist_ok=True)
pathlib.Path("runs/1/log.csv").write_text("a,b")
pathlib.Path("runs/touched").touch()
assert sorted(os.listdir("runs")) == ["1", "touched"]
assert sorted(entry.name for entry in os.scandir("runs/1")) == ["checkpoints", "log.csv"]
assert sorted(path.name for path in pathlib.Path(".").glob("*.txt")) == ["gone.txt", "moved.txt", "new.txt", "old.txt"]
os.remove("gone.txt")
assert not os.path.exists("gone.txt") and "gone.txt" not in os.listdir()
try:
    open("gone.txt")
except FileNotFoundError:
    pass
else:
    raise AssertionError("a removed file can be opened")
os.rename("moved.txt", "there.txt")
assert not os.path.exists("moved.txt") and open("there.txt").read() == "moved"
shutil.copy("old.txt", "runs/copy.txt")
shutil.rmtree("folder")
assert not os.path.isdir("folder")
os.mkdir("folder")
assert os.listdir("folder") == []
json.dump([1], open("runs/x.json", "w"))
os.replace("runs/x.json", "runs/y.json")
assert json.load(open("runs/y.json")) == [1]
handler = logging.FileHandler("runs/train.log")
handler.emit(logging.LogRecord("n", 20, "p", 1, "line", None, None))
handler.close()
assert "line" in open("runs/train.log").read()
attempts = [lambda: open("no/such/x", "w"), lambda: os.mkdir("runs")]
for wrong in (*attempts, lambda: open("new.txt", "x"), lambda: os.rmdir("runs")):
    try:
        wrong()
    except OSError:
        continue
    raise AssertionError("an error of the system is missing")
os.chmod("old.txt", 0o600)
shutil.rmtree("runs/1")
assert not os.path.exists("runs/1")
print("all seen")
"""


def test_the_program_sees_its_writes_and_the_tree_stays_as_it_was(tmp_path: Path) -> None:
    project, scratch = tmp_path / "project", tmp_path / "scratch" / "writes" / "guard"
    (project / "folder").mkdir(parents=True)
    scratch.mkdir(parents=True)
    for name in ("old", "gone", "moved", "folder/inside"):
        (project / f"{name}.txt").write_text(name)
    before = tree_hash(project)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(scratch)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "all seen\n", done.stderr
    assert tree_hash(project) == before

    (scratch / COVERS).write_text("/")
    keep_writes(tmp_path / "scratch", tmp_path / "kept" / "files", project)
    assert (tmp_path / "kept" / "files" / "old.txt").read_text() == "OLD and more"
    assert (tmp_path / "kept" / "files" / "runs" / "y.json").exists()
