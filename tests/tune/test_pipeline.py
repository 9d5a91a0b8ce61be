"""`tune` with its session file, on a program that is simulated."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from hotloop.machine.host.identity import identity
from hotloop.model.ceilings import Ceilings
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.tuning import Failure, FailureKind
from hotloop.observe.run.observe_command import Interrupted
from hotloop.observe.run.origin import origin
from hotloop.optimize.optimization import Optimization
from hotloop.store.session import find_session, new_session
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.design.candidates import Wishes
from hotloop.tune.executor import SetFailed
from hotloop.tune.pipeline import Parts, Tuned, TuneOrder, tune
from hotloop.tune.session.resume import Head

from .sessions import names
from .simulated import QUIET, Clock, SimulatedExecutor, Truth, candidates, observation


class _Simulated(Optimization):
    family = "compute"
    numerics = Numerics.EXACT

    def candidates(self, observation: Observation) -> list[Candidate]:
        return candidates(self.name)

    def validate(self, params: Mapping[str, Any]) -> None: ...


class _Helps(_Simulated):
    name = "a"


class _Null(_Simulated):
    name = "null"


class _Program:
    """What stands where processes would be started."""

    def __init__(self) -> None:
        self.num_observed = 0
        self.executors: list[SimulatedExecutor] = []
        self.before: Callable[[], None] = lambda: None
        self.observed: Callable[[], Observation] = observation
        self.spoiled: Callable[[SimulatedExecutor], SimulatedExecutor] = lambda made: made
        self.blocks: list[Blocks] = []

    def _before(self) -> None:
        self.before()

    def observe(self, *_: object) -> Observation:
        self.num_observed += 1
        return self.observed()

    def executor(
        self, argv: object, observed: object, isolation: object, blocks: Blocks, *_: object, **__: object
    ) -> SimulatedExecutor:
        truth = Truth(factors={"a": 1.5})
        made = SimulatedExecutor(truth, QUIET, Clock(), before=self._before)
        self.blocks.append(blocks)
        self.executors.append(self.spoiled(made))
        return made

    def tune(self, order: TuneOrder, say: Callable[[str], None] = lambda _: None) -> Tuned:
        parts = Parts(self.observe, cast(Any, self.executor), lambda: (_Helps(), _Null()))
        return tune(order, say, say, parts=parts)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Program:
    program = _Program()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "other.py").write_text("pass\n")
    monkeypatch.setattr("sys.stdin", None)
    return program


def _order(script: str = "train.py", *, resume: bool = False) -> TuneOrder:
    return TuneOrder(words=(script,), budget_s=600.0, wishes=Wishes(), resume=resume)


def test_the_result_is_in_the_session(program: _Program, tmp_path: Path) -> None:
    said: list[str] = []
    result = program.tune(_order(), said.append).result
    assert names(result) == ["a"]
    session = find_session(tmp_path)
    assert session.get("result", type(result)) == result
    session.close()
    assert any(text.startswith("hotloop: session ") for text in said)
    assert any("compare a and null" in text for text in said)


def test_what_diagnose_found_out_before_is_in_the_session(program: _Program, tmp_path: Path) -> None:
    limits = Ceilings(compute_samples_per_s=431.0)
    machine = msgspec.to_builtins(identity())
    with contextlib.closing(new_session(tmp_path, "before")) as session:
        session.put("origin", origin("diagnose", ("train.py",)))
        session.put("observation", msgspec.structs.replace(observation(), ceilings=limits, machine=machine))
    name = program.tune(_order()).session
    with contextlib.closing(find_session(tmp_path, name)) as session:
        seen = session.get("observation", Observation)
    assert seen is not None
    assert seen.ceilings == limits


def test_killed_and_resumed_it_does_nothing_twice(program: _Program) -> None:
    whole_result = program.tune(_order()).result
    num_runs = len(program.executors[-1].orders)
    calls = [0]

    def kill() -> None:
        calls[0] += 1
        if calls[0] == 40:
            raise SystemExit(137)

    program.before = kill
    with pytest.raises(SystemExit):
        program.tune(_order("other.py"))
    program.before = lambda: None
    resumed = program.tune(_order("other.py", resume=True)).result
    assert names(resumed) == names(whole_result)
    assert program.num_observed == 2
    # The run that was under way when it was killed is the only one that is there twice.
    assert sum(len(executor.orders) for executor in program.executors[1:]) == num_runs + 1


def test_a_resumed_session_tries_what_was_wished_for_before(program: _Program, tmp_path: Path) -> None:
    asked: list[Wishes | None] = []
    only, other = Wishes(only=("compile",)), Wishes(skip=("compile",))
    for wishes, resume in ((only, False), (Wishes(), True), (other, True), (Wishes(), True)):
        program.tune(msgspec.structs.replace(_order(resume=resume), wishes=wishes))
        with contextlib.closing(find_session(tmp_path)) as session:
            asked.append(session.get("wishes", Wishes))
    assert asked == [only, only, other, other]


def test_resuming_finds_the_newest_session_of_this_command(program: _Program, tmp_path: Path) -> None:
    program.tune(_order("train.py"))
    os.utime(next((tmp_path / ".hotloop").glob("*.sqlite")), ns=(1, 1))
    program.tune(_order("other.py"))
    program.tune(_order("train.py", resume=True))
    assert program.num_observed == 2
    assert program.executors[-1].orders == []


@pytest.mark.parametrize(
    ("spoil", "reason"), [("script", "the script, .* has changed"), ("words", "is one of tuning other.py")]
)
def test_what_cannot_be_gone_on_with_is_said(
    program: _Program, tmp_path: Path, spoil: str, reason: str
) -> None:
    program.tune(_order())
    if spoil == "script":
        (tmp_path / "train.py").write_text("pass  # changed\n")
    with pytest.raises(HotloopError, match=reason):
        program.tune(_order("train.py" if spoil == "script" else "other.py", resume=True))


@pytest.mark.parametrize(("what", "reason"), [("torch", "torch: then 9.9.9, now "), ("machine", "machine: ")])
def test_times_of_another_machine_or_torch_are_not_gone_on_with(
    program: _Program, tmp_path: Path, what: str, reason: str
) -> None:
    program.tune(_order())
    with contextlib.closing(find_session(tmp_path)) as session:
        head = session.get("head", Head)
        assert head is not None
        other = {**head.machine, "cpu_model": "Another Processor"} if what == "machine" else head.machine
        torch = "9.9.9" if what == "torch" else head.torch_version
        session.put("head", msgspec.structs.replace(head, machine=other, torch_version=torch))
    with pytest.raises(HotloopError, match=reason):
        program.tune(_order(resume=True))
    assert program.num_observed == 1


def test_a_program_whose_end_nobody_saw_coming_gets_blocks_that_fit(
    program: _Program, tmp_path: Path
) -> None:
    def ends(made: SimulatedExecutor) -> SimulatedExecutor:
        if not program.executors:
            failure = Failure(kind=FailureKind.ENDED, message="the program ended by itself", num_steps=120)
            cast(Any, made).run = lambda *_: SetFailed(failure)
        return made

    program.spoiled = ends
    assert names(program.tune(_order()).result) == ["a"]
    assert program.blocks[0].max_rounds is None
    assert program.blocks[1].max_rounds is not None
    assert program.blocks[1].warm_steps + program.blocks[1].max_rounds * program.blocks[1].per_block() < 120
    session = find_session(tmp_path)
    assert session.get("observation", Observation).total_steps == 120  # type: ignore[union-attr]
    session.close()


def test_control_c_while_observing_is_control_c(program: _Program) -> None:
    def interrupt() -> Observation:
        raise Interrupted(None)

    program.observed = interrupt
    with pytest.raises(KeyboardInterrupt):
        program.tune(_order())


def test_a_program_of_a_few_steps_is_said_to_be_too_short(program: _Program) -> None:
    program.observed = lambda: msgspec.structs.replace(observation(), total_steps=5)
    with pytest.raises(HotloopError, match="the program ends after 5 steps, too few"):
        program.tune(_order())


def test_a_program_that_fails_while_it_is_observed_is_not_tuned(program: _Program) -> None:
    crashed = msgspec.structs.replace(
        observation(), exit_code=1, run=msgspec.structs.replace(observation().run, num_steps=14)
    )
    program.observed = lambda: crashed
    with pytest.raises(HotloopError, match=r"failed after 14 steps \(exit code 1\)") as caught:
        program.tune(_order())
    assert caught.value.code is ExitCode.PROGRAM_FAILED
    assert not program.executors
