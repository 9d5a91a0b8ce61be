"""Programs that seed themselves with something new in every run are the same training in every trial."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from hotloop.observe.decode.processes import read_processes
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.setup.program_seeds import ProgramSeeds

from .conftest import RunProgram, run_python, with_probe

_PROGRAM = """
import os, random, time
early = random.randint(1, 10**6)
import numpy as np
import torch
seeds = {
    "time": time.time_ns() % 2**31,
    "urandom": int.from_bytes(os.urandom(4), "big") % 2**31,
    "drawn": random.randint(1, 10000),
    "early": early,
    "constant": 42,
}
draws = []
for name, seed in seeds.items():
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    draws.append((name, random.random(), float(np.random.rand()), float(torch.rand(()))))
draws.append(("default_rng", float(np.random.default_rng().random())))
draws.append(("timed rng", float(np.random.default_rng(time.time_ns()).random())))
draws.append(("sequence", int(np.random.SeedSequence().generate_state(1)[0])))
draws.append(("state", float(np.random.RandomState().rand())))
torch.seed()
draws.append(("torch.seed", float(torch.rand(()))))
random.seed()
np.random.seed()
draws.append(("system", random.random(), float(np.random.rand())))
words = set("to be or not that is the question whether it is nobler".split())
draws.append(("vocabulary", list(words)))
weight = torch.nn.Parameter(torch.rand(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(6):
    weight.sum().backward()
    optimizer.step()
print(*draws, sep="\\n")
"""


@pytest.mark.slow
def test_what_differs_from_run_to_run_is_the_same_in_every_trial(
    run_probed: RunProgram, tmp_path: Path
) -> None:
    seen = run_probed(_PROGRAM)
    assert seen.returncode == 0, seen.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    assert 42 in facts["seeds"]
    assert len(facts["seeds"]) == 6
    trials = []
    for name in ("one", "two"):
        folder = tmp_path / name
        config = ProbeConfig(folder=str(folder), seed=7, program_seeds=tuple(facts["seeds"]))
        environment = {**with_probe(folder, config), "PYTHONHASHSEED": "0"}
        trials.append(run_python(["program.py"], environment, tmp_path).stdout.splitlines())
    assert trials[0] == trials[1]
    # What the program seeds with is what it was seeded with when it was observed.
    assert trials[0][:5] == seen.stdout.splitlines()[:5]


def test_constant_seeds_stay_whatever_the_order() -> None:
    seeds = ProgramSeeds([42, 1_700_000_000, 7], entropy=1)
    assert [seeds.seed(value) for value in (42, 42, 1_800_000_000, 7, 42)] == [42, 42, 1_700_000_000, 7, 42]


def test_seeds_that_come_after_the_observed_ones_are_the_programs_own() -> None:
    seeds = ProgramSeeds([0, 1], entropy=1)
    assert [seeds.seed(epoch) for epoch in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("value", ["a word", None, np.array([1, 2])])
def test_what_is_no_whole_number_is_left_alone(value: object) -> None:
    assert ProgramSeeds([3], entropy=1).seed(value) is value


def test_the_observed_run_has_its_own_entropy() -> None:
    assert ProgramSeeds(None, entropy=None).fresh(32) is None


@pytest.mark.parametrize("bits", [1, 31, 32, 63, 64, 128])
def test_entropy_has_the_bits_asked_for_and_differs_from_draw_to_draw(bits: int) -> None:
    seeds = ProgramSeeds((), entropy=5)
    draws = [seeds.fresh(bits) for _ in range(64)]
    assert all(draw is not None and 0 <= draw < 2**bits for draw in draws)
    assert len(set(draws)) > 1
    assert ProgramSeeds((), entropy=5).fresh(bits) == draws[0]


def test_nothing_of_this_process_was_patched() -> None:
    assert not hasattr(random.seed, "__wrapped__")
    assert "hotloop" not in getattr(sys.modules["numpy"].random.default_rng, "__module__", "")
