"""Commands as people type them, wrap them and quote them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from hotloop.launch.command import lacks_torch, resolve, script_of
from hotloop.model.errors import HotloopError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one script is the current one."""
    (tmp_path / "fast.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "variables", "program", "end"),
    [
        (("fast.py", "--lr", "3"), [], sys.executable, ["fast.py", "--lr", "3"]),
        (("python fast.py --lr 3",), [], "python", ["fast.py", "--lr", "3"]),
        (("fast.py --name 'two words'",), [], sys.executable, ["fast.py", "--name", "two words"]),
        (("X=1", "python", "fast.py"), ["X=1"], "python", ["fast.py"]),
        (("X=1 Y= fast.py",), ["X=1", "Y="], sys.executable, ["fast.py"]),
        (("sh", "-c", "python fast.py"), [], "sh", ["-c", "python fast.py"]),
    ],
)
def test_what_is_started(words: tuple[str, ...], variables: list[str], program: str, end: list[str]) -> None:
    argv = resolve(words)
    if variables:
        assert Path(argv[0]).name == "env"
        assert argv[1 : 1 + len(variables)] == variables
    begin = len(variables) + 1 if variables else 0
    assert argv[begin] == shutil.which(program)
    assert argv[begin + 1 :] == end
    assert script_of(argv) == Path("fast.py")


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "python fast.py"],
        ["script", "-qefc", "python fast.py --x 'a", "log"],
        ["torchrun", "--nproc-per-node", "2", "fast.py"],
        ["python", "-m", "torch.distributed.run", "fast.py"],
        ["env", "X=1", "python", "fast.py"],
        ["nice", "-n", "5", "python", "fast.py"],
    ],
)
def test_the_script_within(argv: list[str]) -> None:
    assert script_of(argv) == Path("fast.py")


@pytest.mark.parametrize(
    ("argv", "file"),
    [
        (["python", "-m", "pkg.train", "--lr", "1"], "pkg/train.py"),
        (["python", "-u", "-m", "pkg"], "pkg/__main__.py"),
        (["torchrun", "--nproc-per-node", "2", "-m", "pkg.train"], "pkg/train.py"),
        (["python", "-m", "torch.distributed.run", "--module", "pkg.train"], "pkg/train.py"),
        (["python", "-m", "pkg.absent"], None),
        (["python", "fast.py", "-m", "pkg.train"], "fast.py"),
    ],
)
def test_the_file_of_a_module(folder: Path, argv: list[str], file: str | None) -> None:
    (folder / "pkg").mkdir()
    for name in ("train.py", "__main__.py"):
        (folder / "pkg" / name).touch()
    assert script_of(argv) == (Path(file) if file else None)


def test_a_script_that_another_shell_will_find_is_not_missed() -> None:
    assert script_of(["sh", "-c", "cd elsewhere && python other.py"]) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no command was given"),
        (("X=1",), "no command after 'X=1'"),
        (("nothing.py",), "no script 'nothing.py'"),
        (("torchrun-of-mine", "fast.py"), "no program 'torchrun-of-mine'"),
    ],
)
def test_what_cannot_be_run(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(HotloopError, match=said):
        resolve(words)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("fats.py",), "did you mean fast.py?"),
        (("python", "fats.py"), "did you mean fast.py?"),
        (("./go me.sh",), "bash './go me.sh'"),
        (("a.ipynb",), "jupyter nbconvert --to script a.ipynb"),
    ],
)
def test_what_to_type_instead(words: tuple[str, ...], hint: str, folder: Path) -> None:
    for name in ("go me.sh", "a.ipynb"):
        (folder / name).touch(mode=0o644)
    with pytest.raises(HotloopError) as told:
        resolve(words)
    assert hint in (told.value.hint or "")


@pytest.mark.parametrize("words", [(), ("X=1",)])
def test_a_hint_names_no_other_command_of_ours(words: tuple[str, ...]) -> None:
    with pytest.raises(HotloopError) as told:
        resolve(words)
    assert "observe" not in (told.value.hint or "")


def test_a_program_with_a_blank_in_its_name(folder: Path) -> None:
    program = folder / "my program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert resolve((str(program),)) == [str(program)]


def test_whether_a_python_has_torch(folder: Path) -> None:
    assert not lacks_torch([sys.executable, "fast.py"])
    assert not lacks_torch(["sh", "-c", "python fast.py"])
    assert lacks_torch(["env", "X=1", _without_packages(folder), "fast.py"])


def _without_packages(folder: Path) -> str:
    wrapper = folder / "python-bare"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)
