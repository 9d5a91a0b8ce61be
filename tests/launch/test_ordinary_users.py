"""Who is not root, and works where people work: in a team's folder, below a folder of root's, at home."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.launch.isolation import landlock
from hotloop.launch.isolation.decide import NO_NAMESPACES
from tests.attack.running import NOT_REDIRECTED, NOT_RENAMED
from tests.attack.setups import furnish, snapshot
from tests.launch import ordinary_user
from tests.launch.ordinary_user import OTHER, TEAM, USER, Project, give, give_all

pytestmark = pytest.mark.slow
WAYS = Path(__file__).parents[1] / "attack" / "ways.py"
TRY_ALL_WAYS = """
import json, os, sys
from pathlib import Path
import msgspec
from hotloop.launch.isolation.decide import plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from tests.attack.running import _run
isolation = plan_isolation(sys.argv[1:], Path.cwd(), scratch_root(), network=False)
log = _run(sys.argv[1:], isolation)
print(json.dumps({"isolation": msgspec.to_builtins(isolation), "log": log}))
"""
JUDGE = """
import os, sys
from hotloop.launch.isolation.decide import Exceptions
from hotloop.observe.run.blame import whose
print(whose(sys.argv[1:], os.environ, Exceptions(), 1, 1.0, lambda text: None, lambda text: None, 60.0))
"""
TRAIN = """
import torch
from torch import nn
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(60):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    with open("log.txt", "a") as file:
        file.write(f"{step}\\n")
    if step % 20 == 0:
        torch.save(model.state_dict(), "checkpoint.pt")
"""
PLACES = ("team", "root above", "home", "a colleague's")


@pytest.fixture(scope="module")
def python() -> str:
    if os.getuid() != 0:
        pytest.skip("only root can act for an ordinary user")
    found = ordinary_user.python()
    if found is None or not ordinary_user.may_be_read():
        pytest.skip("no Python here, or no code of ours, that an ordinary user may read")
    return found


@pytest.fixture
def top() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="hotloop-people-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(params=PLACES)
def project(request: pytest.FixtureRequest, top: Path) -> Project:
    return _project(str(request.param), top)


@pytest.fixture
def team(top: Path) -> Project:
    return _project("team", top)


def _project(place: str, top: Path) -> Project:
    home = give(top / "home", USER, USER, 0o755)
    if place == "home":
        folder = give(home / "project", USER, USER, 0o755)
    elif place == "root above":
        give(top / "dept", 0, 0, 0o755)
        folder = give(give(top / "dept" / "user", USER, USER, 0o755) / "project", USER, USER, 0o755)
    else:
        give(top / "team", 0, TEAM, 0o2775)
        folder = give(top / "team" / "project", USER if place == "team" else OTHER, TEAM, 0o2775)
    furnish(folder / "runs")
    for name in ("log.txt", "checkpoint.pt"):
        (folder / name).write_text("old\n")
    (folder / "train.py").write_text(TRAIN)
    shared = place in ("team", "a colleague's")
    give_all(folder, OTHER if place == "a colleague's" else USER, TEAM if shared else USER)
    return Project(folder, home, top)


def test_everything_can_be_written_and_nothing_changes(python: str, project: Project) -> None:
    before = snapshot(project.watched)
    done = ordinary_user.run([python, "-c", TRY_ALL_WAYS, python, str(WAYS), "runs"], project)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    if not told["isolation"]["covered"] and "Operation not permitted" in told["isolation"]["missing"]:
        pytest.skip("user namespaces are not permitted on this machine")
    assert told["isolation"]["covered"]
    assert told["isolation"]["uncovered"] is None
    outcomes = dict(line.split(": ", 1) for line in told["log"].splitlines() if ": " in line)
    assert len(outcomes) >= 27
    failed = {way: outcome for way, outcome in outcomes.items() if outcome != "ok"}
    assert failed.keys() <= NOT_RENAMED, failed
    assert snapshot(project.watched) == before


def test_a_guard_stands_in_and_says_what_it_cannot_catch(python: str, team: Project) -> None:
    if landlock.version() < landlock.DENIES_TRUNCATION:
        pytest.skip("no Landlock on this machine")
    before = snapshot(team.watched)
    words = [python, "-c", TRY_ALL_WAYS, python, str(WAYS), "runs"]
    done = ordinary_user.run(words, team, {NO_NAMESPACES: "1"})
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["isolation"]["guarded"]
    assert "what C++, Rust and other programs write fails" in told["isolation"]["missing"]
    outcomes = dict(line.split(": ", 1) for line in told["log"].splitlines() if ": " in line)
    failed = {way: outcome for way, outcome in outcomes.items() if outcome != "ok"}
    assert failed.keys() <= NOT_REDIRECTED, failed
    assert snapshot(team.watched) == before


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise ValueError('bad batch 7')", "the failure is the program's own"),
        ("open('new', 'w').close(); raise ValueError('bad batch 7')", "was not judged"),
        ("open('log.txt', 'a').write('x')", "THE FAILURE IS HOTLOOP'S"),
        (
            "open('{elsewhere}/x', 'w')",
            "the failure is hotloop's. Let it write there: --writable {elsewhere}",
        ),
    ],
    ids=["fails", "writes and fails", "works", "writes where nobody foresaw it"],
)
def test_nothing_is_said_of_a_failure_that_was_not_seen(
    program: str, said: str, python: str, team: Project
) -> None:
    give(team.watched / "alien", 0, 0, 0o755)
    elsewhere = give(team.watched / "alien" / "deep", USER, USER, 0o755)
    (team.folder / "fails.py").write_text(program.replace("{elsewhere}", str(elsewhere)))
    before = snapshot(team.watched)
    done = ordinary_user.run([python, "-c", JUDGE, python, "fails.py"], team)
    assert said.replace("{elsewhere}", str(elsewhere)) in done.stdout, done.stdout + done.stderr
    assert snapshot(team.watched) == before


def test_a_program_in_a_team_s_folder_is_observed(python: str, team: Project) -> None:
    before = snapshot(team.folder)
    words = [python, "-m", "hotloop", "observe", "--no-deep", "--no-color", "--json", str(team.home / "seen")]
    done = ordinary_user.run([*words, python, "train.py"], team)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail" not in done.stderr
    assert json.loads((team.home / "seen").read_text())["exit_code"] in (None, 0)
    shutil.rmtree(team.folder / ".hotloop")
    after = snapshot(team.folder)
    assert {name for name in after if after[name][-1] != before[name][-1]} == set()
    assert after.keys() == before.keys()
