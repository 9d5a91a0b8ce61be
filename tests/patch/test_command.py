"""`hotloop patch` as it is typed: what it prints, writes and refuses, and what `run` then makes of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hotloop.cli.app import run
from hotloop.model.secrets import REDACTED
from hotloop.model.sites import Sites
from hotloop.model.tuning import PlanStep
from hotloop.observe.run.observe_command import Interrupted
from hotloop.patch.account_in_plan import with_patch_known
from hotloop.patch.program_files import digest_of
from hotloop.tune.plan.in_source import in_source, rest_of
from hotloop.tune.plan.plan_file import read_plan, to_toml

from ..cli.commands import environment, hotloop
from ..tune.plans import BF16, WORKERS, plan_for, write_plan
from .observing import observe_all

TRAIN = """\
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

settings = SimpleNamespace(workers=0)


class Net(nn.Linear):
    def forward(self, x):
        seen.add(torch.is_autocast_enabled("cpu"))
        return super().forward(x)


if __name__ == "__main__":
    seen = set()
    data = TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
    loader = DataLoader(data, batch_size=4, num_workers=settings.workers)
    model = Net(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print("autocast", *seen, "workers", loader.num_workers)
"""
PLAIN = "autocast False workers 0\n"
"""What the program prints without a plan."""
PASSIVE = PlanStep(name="openmp_wait_policy", ratio=1.1, low=1.05, high=1.15)
UNSAFE = "loader_workers: unsafe, written only with --unsafe"


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Sites:
    """Where a real run of the program was seen to call what."""
    return observe_all({"it": TRAIN}, tmp_path_factory.mktemp("observed"))["it"]


@pytest.fixture
def folder(tmp_path: Path, sites: Sites, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program with a plan of three steps: one that is safe to write, one that is not, one for the launch line."""
    monkeypatch.chdir(tmp_path)
    script = Path("train.py")
    script.write_text(TRAIN)
    plan = msgspec.structs.replace(plan_for(script, BF16, WORKERS, PASSIVE), sites=sites)
    Path("hotloop.toml").write_text(to_toml(with_patch_known(plan, tmp_path)))
    return tmp_path


def test_a_plan_without_steps_says_what_to_type_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(TRAIN)
    write_plan(tmp_path, Path("train.py"))
    assert run(["patch"]) == 0
    captured = capsys.readouterr()
    assert not captured.out
    assert "hotloop tune --budget 30m python train.py" in captured.err
    assert "hotloop lint --diff train.py" in captured.err


def commit(folder: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "as it was"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name not in {".git", "__pycache__"}}


def test_the_diff_is_what_git_apply_takes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["patch"]) == 0
    out, err = capfd.readouterr()
    assert Path("train.py").read_text() == TRAIN
    subprocess.run(["git", "apply"], cwd=folder, input=out, text=True, check=True)
    assert 'with torch.autocast("cpu", dtype=torch.bfloat16):' in Path("train.py").read_text()
    assert UNSAFE in err
    assert "KMP_BLOCKTIME=0 python train.py" in err
    assert 'hotloop.apply("hotloop.toml")' in err
    assert max(len(line) for line in err.splitlines() if not line.startswith("    ")) <= 80


def test_a_file_with_uncommitted_changes_is_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    commit(folder)
    Path("train.py").write_text(TRAIN + "# mine\n")
    plan = read_plan(Path("hotloop.toml"))
    sources = {"train.py": digest_of(Path("train.py").read_bytes())}
    plan = msgspec.structs.replace(plan, sites=msgspec.structs.replace(plan.sites, sources=sources))
    Path("hotloop.toml").write_text(to_toml(plan))
    assert run(["patch", "--write"]) == 2
    err = capfd.readouterr().err
    assert "train.py has changes that are not committed" in err
    assert "--force" in err
    assert Path("train.py").read_text() == TRAIN + "# mine\n"
    assert run(["patch", "--write", "--force"]) == 0
    assert Path("train.py.orig").read_text() == TRAIN + "# mine\n"
    assert "torch.autocast" in Path("train.py").read_text()
    assert "train.py is written (before: train.py.orig)" in capfd.readouterr().err


@pytest.mark.parametrize("committed", [True, False])
def test_what_git_does_not_hold_is_backed_up(folder: Path, *, committed: bool) -> None:
    if committed:
        commit(folder)
    assert run(["patch", "--write"]) == 0
    assert files(folder) == {"train.py", "hotloop.toml", *(() if committed else ("train.py.orig",))}


@pytest.mark.parametrize("added", [True, False])
def test_a_file_that_is_in_no_commit_of_its_repository_is_backed_up(folder: Path, *, added: bool) -> None:
    text = Path("train.py").read_text()
    Path("train.py").unlink()
    commit(folder)
    Path("train.py").write_text(text)
    if added:
        subprocess.run(["git", "add", "train.py"], cwd=folder, check=True)
    assert run(["patch", "--write"]) == 0
    assert Path("train.py.orig").read_text() == text


def test_check_says_no_until_it_is_written(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "--check"]) == 1
    assert Path("train.py").read_text() == TRAIN
    assert run(["patch", "--write", "--check"]) == 1, "what was there to patch, was"
    capfd.readouterr()
    assert run(["patch", "--check"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "in the source already: autocast_bf16" in err
    assert "KMP_BLOCKTIME=0 python train.py" in err


@pytest.mark.slow
def test_the_plans_command_is_run_only_when_that_is_asked_for(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Path("train.py").write_text(TRAIN + "# mine\n")
    assert run(["patch"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "train.py changed since the plan was made, so the places to edit are not known" in err
    assert "hotloop patch --observe runs the plan's command to find them: python train.py" in " ".join(
        err.split()
    )
    assert run(["patch", "--observe"]) == 0
    out, err = capfd.readouterr()
    assert "torch.autocast" in out
    assert "observing python train.py" in err


def test_unsafe_edits_are_written_when_asked_for(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["patch", "--unsafe", "--write"]) == 0
    assert "num_workers=2, persistent_workers=True)" in Path("train.py").read_text()
    assert "--unsafe" not in capfd.readouterr().err
    once = Path("train.py").read_bytes()
    assert run(["patch", "--unsafe", "--check"]) == 0
    assert run(["patch", "--unsafe", "--write"]) == 0
    assert Path("train.py").read_bytes() == once


def test_writing_twice_writes_once(folder: Path) -> None:
    assert run(["patch", "--write"]) == 0
    once = Path("train.py").read_bytes()
    plan = Path("hotloop.toml").read_bytes()
    assert run(["patch", "--write"]) == 0
    assert Path("train.py").read_bytes() == once
    assert Path("hotloop.toml").read_bytes() == plan
    assert files(folder) == {"train.py", "train.py.orig", "hotloop.toml"}


@pytest.mark.slow
def test_a_patch_that_is_taken_back_leaves_the_plan_as_it_was_proven(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commit(folder)
    before = read_plan(Path("hotloop.toml"))
    assert run(["patch", "--write"]) == 0
    assert "hotloop.toml notes what is in the source now" in " ".join(capfd.readouterr().err.split())
    plan = read_plan(Path("hotloop.toml"))
    assert (plan.fit, plan.sites, plan.steps) == (before.fit, before.sites, before.steps)
    once = Path("train.py").read_bytes()
    subprocess.run(["git", "checkout", "-q", "train.py"], cwd=folder, check=True)
    done = hotloop("run", "--plan", "hotloop.toml", "train.py", cwd=folder)
    assert "in the source already" not in done.stderr
    assert "edited" not in done.stderr
    assert run(["patch", "--write"]) == 0
    assert Path("train.py").read_bytes() == once


@pytest.mark.slow
def test_run_switches_on_what_is_not_in_the_source(folder: Path) -> None:
    assert run(["patch", "--write"]) == 0
    done = hotloop("run", "--plan", "hotloop.toml", "train.py", cwd=folder)
    assert done.stdout == "autocast True workers 2\n", done.stderr
    assert "in the source already: autocast_bf16" in done.stderr


def apply(folder: Path, capfd: pytest.CaptureFixture[str], *options: str) -> None:
    """Apply the diff, as a user does who does not let hotloop write."""
    capfd.readouterr()
    assert run(["patch", *options]) == 0
    subprocess.run(["git", "apply"], cwd=folder, input=capfd.readouterr().out, text=True, check=True)


@pytest.mark.parametrize("options", [(), ("--unsafe",)], ids=["safe", "unsafe"])
def test_a_patch_is_known_however_it_was_applied(
    folder: Path, capfd: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    apply(folder, capfd, *options)
    plan = read_plan(Path("hotloop.toml"))
    found = in_source(plan, folder, ())
    assert set(found.steps) == {"autocast_bf16", *(["loader_workers"] if options else [])}
    assert {step.name for step in rest_of(plan, found)} == {step.name for step in plan.steps} - set(
        found.steps
    )
    assert run(["patch", *options]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "nothing to do, in the source already: " in err
    assert ("loader_workers: not written: written only with --unsafe" in err) == (not options)
    assert "KMP_BLOCKTIME=0 python train.py" in err


def test_an_edit_elsewhere_in_a_patched_file_leaves_the_patch_known(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    apply(folder, capfd)
    Path("train.py").write_text(Path("train.py").read_text().replace("lr=0.1", "lr=0.2"))
    assert in_source(read_plan(Path("hotloop.toml")), folder, ()).steps == ("autocast_bf16",)


def test_what_the_user_takes_out_again_is_switched_on(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    apply(folder, capfd, "--unsafe")
    Path("train.py").write_text(Path("train.py").read_text().replace("num_workers=2", "num_workers=3"))
    assert in_source(read_plan(Path("hotloop.toml")), folder, ()).steps == ("autocast_bf16",)


def test_a_patched_program_has_no_original_to_be_proven_against(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["patch", "--write"]) == 0
    assert run(["patch", "--prove"]) == 2
    err = " ".join(capfd.readouterr().err.split())
    assert "the patch is in the source, and a proof runs the original beside it" in err
    assert "hotloop compare --baseline REV python train.py" in err


def test_ctrl_c_while_it_is_observed_ends_the_command(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise Interrupted(None)

    monkeypatch.setattr("hotloop.cli.patch.observe", interrupted)
    Path("train.py").write_text(TRAIN + "# mine\n")
    assert run(["patch", "--observe"]) == 130
    assert "interrupted" in capfd.readouterr().err


def test_a_command_that_held_a_secret_is_not_run_for_a_proof(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotloop.cli.patch.Prover", lambda *_: pytest.fail("run"))
    plan = read_plan(Path("hotloop.toml"))
    fit = msgspec.structs.replace(plan.fit, command=("python", "train.py", "--token", REDACTED))
    Path("hotloop.toml").write_text(to_toml(msgspec.structs.replace(plan, fit=fit)))
    assert run(["patch", "--prove"]) == 2
    assert "it held a secret" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("torch_version", "prints"),
    [("", "autocast True workers 2\n"), ("9.9.9", PLAIN)],
    ids=["here", "elsewhere"],
)
def test_two_lines_switch_on_what_cannot_be_written(folder: Path, torch_version: str, prints: str) -> None:
    Path("train.py").write_text('import hotloop\nhotloop.apply("hotloop.toml")\n' + TRAIN)
    plan = read_plan(Path("hotloop.toml"))
    if torch_version:
        fit = msgspec.structs.replace(plan.fit, torch_version=torch_version)
        Path("hotloop.toml").write_text(to_toml(msgspec.structs.replace(plan, fit=fit)))
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == prints, done.stderr
    assert ("was proven elsewhere" in done.stderr) == bool(torch_version)
