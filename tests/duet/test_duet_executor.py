"""The real executor on real programs: structure, never speed."""

from __future__ import annotations

import hashlib
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from hotloop.launch.isolation.decide import plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.machine.environment.contention import ForeignLoad, LoadSnapshot
from hotloop.model.observation import Anchor
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import FailureKind
from hotloop.observe.profile.windows import ALL
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import Rounds, SetFailed, SetOrder, SetRecord
from hotloop.tune.search.knob_screen import switch_order
from hotloop.tune.trials.detailed_look import INSTRUMENTS
from hotloop.tune.trials.duet import DuetExecutor
from hotloop.tune.trials.setting import Setting
from hotloop.tune.trials.void_blocks import ContentionWatch

pytestmark = pytest.mark.slow

TRAIN = """
    import sys, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.randn(512, 16), torch.randint(0, 2, (512,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(int(sys.argv[1])):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        torch.save(model.state_dict(), "checkpoint.pt")
        with open("log.csv", "a") as log:
            log.write(f"{epoch},{loss.item()}\\n")
"""
BLOCKS = Blocks(num_steps=4, discard=1, warm_steps=3, max_rounds=None)
BF16 = Candidate(name="autocast_bf16")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(textwrap.dedent(TRAIN))
    (folder / "checkpoint.pt").write_text("the user's own")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv(
        "HOTLOOP_SCRATCH", str(tmp_path / "scratch")
    )  # others use the usual one at the same time
    before = set(scratch_root().glob("[!.]*"))
    yield
    assert set(scratch_root().glob("[!.]*")) == before
    left = [process.cmdline() for process in psutil.Process().children(recursive=True)]
    assert [words for words in left if "hotloop.launch.watchdog" not in " ".join(words)] == []


def executor(
    project: Path,
    argv: list[str],
    blocks: Blocks = BLOCKS,
    *,
    num_ranks: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> DuetExecutor:
    isolation = plan_isolation(argv, project, scratch_root(), network=True)
    setting = Setting(
        argv=tuple(argv),
        environment=dict(os.environ),
        isolation=isolation,
        anchor=Anchor("optimizer", 0, 1),
        num_ranks=num_ranks,
        step_s=0.01,
        startup_s=5.0,
        peak_bytes=None,
    )
    return DuetExecutor(
        setting, blocks, progress, watch=lambda say, num: ContentionWatch(say, num, Unmeasured())
    )


class Unmeasured(ForeignLoad):
    """Neighbours of the test run must not void blocks: how many steps an arm takes is asserted on."""

    def snapshot(self, pids: tuple[int, ...] = ()) -> LoadSnapshot:
        return LoadSnapshot(
            total_ticks=None,
            busy_ticks=0,
            steal_ticks=0,
            processes={},
            ours=frozenset(),
            throttled_s=None,
            thermal_events=None,
        )


def command(project: Path, *words: str) -> list[str]:
    return [sys.executable, str(project / "train.py"), *words]


def tree(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def never(rounds: Rounds) -> range:
    """It is never enough."""
    return range(len(rounds[0]))


def test_the_original_and_the_plan_are_looked_at_with_every_instrument(project: Path) -> None:
    assert tuple(name for name in ALL if name in INSTRUMENTS) == INSTRUMENTS
    beside: list[str] = []

    def said(text: str) -> None:
        if text == "detailed profiling of the plan":
            beside.extend(process.status() for process in runner._crew.alive[0].run.tree())

    runner = executor(project, command(project, "100000"), progress=said)
    try:
        record = runner.run(SetOrder(plans=((), (BF16,)), max_rounds=3, look_left_s=600.0), never)
    finally:
        runner.close()
    assert isinstance(record, SetRecord)
    assert set(beside) == {psutil.STATUS_STOPPED}, "the original shares the cores with what is looked at"
    for at in range(2):
        arm = record.arm(at)
        assert arm is not None
        assert arm.deep is not None
        assert [name for name in INSTRUMENTS if getattr(arm.deep, name) is None] == []


def test_a_program_against_itself_takes_the_same_steps_with_the_same_losses(project: Path) -> None:
    before = tree(project)
    runner = executor(project, command(project, "100000"))
    try:
        record = runner.run(SetOrder(plans=((), ()), max_rounds=12), never)
    finally:
        runner.close()
    assert isinstance(record, SetRecord)
    assert len(record.rounds) == 12
    assert all(time > 0 for times in record.rounds for time in times)
    one, other = record.arm(0), record.arm(1)
    assert one is not None
    assert other is not None
    assert len(one.losses) >= 3 + 12 * 5
    assert one.losses == other.losses
    assert tree(project) == before


def test_a_candidate_is_seen_to_act_and_rounding_noise_moves_the_losses_a_little(project: Path) -> None:
    runner = executor(project, command(project, "100000"))
    try:
        record = runner.run(SetOrder(plans=((), (), (BF16,)), max_rounds=3, perturbed=(1,)), never)
    finally:
        runner.close()
    assert isinstance(record, SetRecord)
    plain, moved, lower = (record.arm(at) for at in range(3))
    assert plain is not None
    assert moved is not None
    assert lower is not None
    effects = {effect.name: effect for effect in lower.effects}
    assert effects["autocast_bf16"].on, effects
    assert not plain.effects
    assert plain.first_steps_s is not None
    assert lower.losses != plain.losses
    assert moved.losses[0] == plain.losses[0], "the noise comes after the first step"
    assert moved.losses != plain.losses
    assert moved.losses == pytest.approx(plain.losses, rel=0.05)


def test_knobs_are_switched_together_in_one_process(project: Path) -> None:
    runner = executor(project, command(project, "100000"))
    fused = Candidate(name="fused_optimizer", params={"implementation": "fused"})
    threads = Candidate(name="thread_count", params={"num_threads": 1})
    always = Candidate(name="dataset_in_memory")
    order = switch_order([fused, threads], {}, limit_s=60.0, base=(always,))
    wanted = {(), (fused.label,), (threads.label,), (fused.label, threads.label)}
    try:
        # Beside a neighbour a knob may look hopeless in its first blocks, and is left out of the patterns then.
        for _ in range(4):
            record = runner.switch(order, lambda record: len(record.holds) > 20)
            on = {hold.on for hold in record.holds}
            if wanted <= on:
                break
    finally:
        runner.close()
    assert wanted <= on
    assert record.effects[fused.label][0], record.effects
    assert not record.failed
    assert not any(always.label in hold.on for hold in record.holds), "what is always on is switched off"


def test_a_program_that_ends_gives_the_rounds_it_had(project: Path) -> None:
    # 2 epochs of 32 steps: 3 to warm up and 12 blocks of 5 are 63; the 13th block ends early.
    runner = executor(project, command(project, "2"))
    try:
        record = runner.run(SetOrder(plans=((), ()), max_rounds=20), never)
    finally:
        runner.close()
    assert isinstance(record, SetRecord)
    assert len(record.rounds) == 12


class _Busy(Unmeasured):
    """Others take half of the machine, always."""

    ticks = 0

    def snapshot(self, pids: tuple[int, ...] = ()) -> LoadSnapshot:
        self.ticks += 1000
        return msgspec.structs.replace(
            super().snapshot(pids), total_ticks=self.ticks, busy_ticks=self.ticks // 2
        )


def test_a_busy_machine_does_not_use_up_a_short_program(project: Path) -> None:
    # 1 epoch of 32 steps: 3 to warm up and 5 blocks of 5; repeating any of them would leave too few.
    blocks = Blocks(num_steps=4, discard=1, warm_steps=3, max_rounds=5)
    runner = executor(project, command(project, "1"), blocks)
    runner._watch = lambda say, num: ContentionWatch(say, num, _Busy(), lambda _: None)
    try:
        record = runner.run(SetOrder(plans=((), ()), max_rounds=5), never)
    finally:
        runner.close()
    assert isinstance(record, SetRecord)
    assert len(record.rounds) == 5
    assert record.contention.num_noisy == 5
    assert record.aside == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        ("raise ValueError('no luck')", FailureKind.CRASH),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", FailureKind.OUT_OF_MEMORY),
        ("raise MemoryError", FailureKind.OUT_OF_MEMORY),
        ("sys.exit(0)", FailureKind.ENDED),
    ],
)
def test_an_arm_that_ends_is_a_failure_with_its_last_words(
    project: Path, ending: str, kind: FailureKind
) -> None:
    source = (project / "train.py").read_text().replace("optimizer.zero_grad()", ending)
    (project / "train.py").write_text(source)
    runner = executor(project, command(project, "1"))
    try:
        failed = runner.run(SetOrder(plans=((), ()), max_rounds=3), never)
    finally:
        runner.close()
    assert isinstance(failed, SetFailed)
    assert failed.failure.kind is kind
    if ending.startswith("raise ValueError"):
        assert "no luck" in failed.failure.log_end


TRAINED_BY_A_CHILD = """
    import torch, torch.multiprocessing
    from torch import nn

    def train(_, model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        while True:
            model(torch.ones(4, 16)).mean().backward()
            optimizer.step()

    if __name__ == "__main__":
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
        print(model(torch.ones(1, 16)).shape)
        torch.multiprocessing.spawn(train, args=(model,), nprocs=1)
"""


def test_a_process_that_forwards_and_never_steps_holds_up_nobody(project: Path) -> None:
    (project / "train.py").write_text(textwrap.dedent(TRAINED_BY_A_CHILD))
    runner = executor(project, [sys.executable, "train.py"])
    record = runner.run(SetOrder(plans=((), ()), max_rounds=2), lambda _: (0, 1))
    runner.close()
    assert isinstance(record, SetRecord), record
    assert len(record.rounds) == 2


def test_two_arms_of_two_ranks_do_not_collide(project: Path) -> None:
    source = (project / "train.py").read_text()
    source = source.replace(
        "data = Tensor", "import torch.distributed as dist; dist.init_process_group('gloo')\ndata = Tensor"
    )
    source = source.replace(
        "optimizer = torch", "model = nn.parallel.DistributedDataParallel(model)\noptimizer = torch"
    )
    (project / "train.py").write_text(source)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    runner = executor(project, [*torchrun, str(project / "train.py"), "100000"], num_ranks=2)
    if not runner.isolation.network:
        pytest.skip("network namespaces are not permitted here")
    try:
        record = runner.run(SetOrder(plans=((), ()), max_rounds=3), never)
    finally:
        runner.close()
    assert isinstance(record, SetRecord), record
    one, other = record.arm(0), record.arm(1)
    assert one is not None
    assert other is not None
    assert one.losses == other.losses
