"""Every page of before and after is true: sites are observed by running the program before, and the one after runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.model.safety import Safety
from hotloop.model.sites import Sites
from hotloop.model.tuning import PlanStep
from hotloop.optimize.registry import all_optimizations, get
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.source.outcome import AlreadySo, Edited, Refused

from .observing import observe_all, run_all
from .spec_files import Spec, read_specs

SPECS = read_specs()
WITHOUT_A_PAGE = {
    "thread_count": "a launch line",
    "openmp_wait_policy": "a launch line",
    "cpu_allocator": "a launch line",
    "huge_pages": "a launch line",
    "ram_disk": "a copy, and a path on the program's command line",
    "remote_loading": "a copy, and a path on the program's command line",
    "cpu_affinity": "a launch line, where one can say it",
    "numa_binding": "a launch line",
    "cuda_graphs": "shown, not written: a graph is captured with a batch",
    "device_selection": "a launch line",
    "liger_kernels": "shown, not written: Liger has a function for each kind of model",
    "device_augmentation": "offered: a person decides",
    "sequential_shards": "offered: a person decides",
    "length_bucketing": "offered: a person decides",
    "pad_to_multiple": "offered: a person decides",
    "preallocate_longest": "offered: a person decides",
    "compiled_chains": "shown, not written: a function for each chain wants a name",
    "fused_recurrence": "shown, not written: the names in checkpoints change",
    "slow_in_half": "measured when the program starts",
    "lossy_in_half": "measured when the program starts",
    "allocator_settings": "a launch line",
    "optimizer_memory": "a keyword, as fused_optimizer; 8 bits are shown, not written",
    "chunked_cross_entropy": "shown, not written: the loss needs what only the model can hand out",
    "activation_offloading": "shown, not written: copies beside computing take streams and events",
}
BF16_TOLERANCE = 0.02
"""Of the size of the parameters after a few steps: bfloat16 has 8 bits of mantissa."""
FIRST = {spec.optimization: spec for spec in reversed(SPECS)}
"""Of each page the first section: the everyday tests look at those, the slow ones at all others."""
each = pytest.mark.parametrize(
    "spec",
    [
        pytest.param(spec, id=spec.name, marks=() if spec in FIRST.values() else pytest.mark.slow)
        for spec in SPECS
    ],
)


@pytest.fixture(scope="module")
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sites]:
    """The sites of all programs before, as far as the tests of this run ask for them."""
    own = [item for item in request.session.items if item.path == request.path]
    specs = SPECS if any(item.get_closest_marker("slow") for item in own) else FIRST.values()
    return observe_all({spec.name: spec.before for spec in specs}, tmp_path_factory.mktemp("before"))


def patched(spec: Spec, sites: Sites) -> Patch:
    step = PlanStep(name=spec.optimization, params=spec.params, ratio=1.0, low=1.0, high=1.0)
    return rewrite_plan([step], sites, {"train.py": spec.before.encode()}, Safety.UNSAFE)


@each
def test_the_page_says_what_becomes_of_the_program(spec: Spec, observed: dict[str, Sites]) -> None:
    patch = patched(spec, observed[spec.name])
    outcome = patch.outcomes[0].outcome
    assert type(outcome).__name__ == spec.outcome, outcome
    if isinstance(outcome, Refused):
        assert spec.says in outcome.reason
    if isinstance(outcome, AlreadySo):
        assert spec.says in outcome.where
    if isinstance(outcome, Edited):
        assert outcome.safety is (Safety.UNSAFE if spec.unsafe else Safety.SAFE)
    assert patch.after["train.py"].decode() == (spec.after or spec.before)


@each
def test_applying_twice_changes_nothing(spec: Spec, observed: dict[str, Sites]) -> None:
    once = patched(spec, observed[spec.name])
    step = once.outcomes[0].step
    twice = rewrite_plan([step], once.sites, once.after, Safety.UNSAFE)
    assert twice.after == once.after


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_patched_programs_learn_what_they_learned(observed: dict[str, Sites], tmp_path: Path) -> None:
    same = [spec for spec in SPECS if spec.after and get(spec.optimization).samples(spec.params) == 1]
    patches = {spec.name: patched(spec, observed[spec.name]) for spec in same}
    before = run_all({name: patch.before["train.py"] for name, patch in patches.items()}, tmp_path / "before")
    after = run_all({name: patch.after["train.py"] for name, patch in patches.items()}, tmp_path / "after")
    assert {name: pytest.approx(sizes, rel=BF16_TOLERANCE) for name, sizes in before.items()} == after
    assert [name for name, sizes in before.items() if not sizes] == []


def test_every_optimization_has_a_page_with_five_shapes() -> None:
    shapes = dict.fromkeys((row.name for row in all_optimizations()), 0)
    for spec in SPECS:
        shapes[spec.optimization] += 1
    assert {name: num for name, num in shapes.items() if num < 5 and name not in WITHOUT_A_PAGE} == {}


def test_the_page_of_the_command_says_what_it_writes_for_every_optimization() -> None:
    page = (Path(__file__).parents[2] / "docs" / "patch.md").read_text()
    rows = {
        name
        for line in page.splitlines()
        if line.startswith("| ")
        for name in line.split("|")[1].strip().split(", ")
    }
    assert {row.name for row in all_optimizations()} - rows == set()
