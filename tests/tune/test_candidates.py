"""What is tried: what applies, what the user allows, the most promising first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from hotloop.model.ceilings import Prediction
from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.ratio import Ratio
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.registry import all_optimizations
from hotloop.tune.design.candidates import Wishes, conflicts, propose

from .simulated import observation


class _Known(Optimization):
    """Applies, unless it has no prior."""

    family = "test"

    def __init__(
        self, name: str, prior: float | None, numerics: Numerics = Numerics.EXACT, clash: tuple[str, ...] = ()
    ) -> None:
        self._prior = prior
        vars(self).update(name=name, numerics=numerics, conflicts=frozenset(clash))

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        if self._prior is None:
            raise DoesNotApply("the program has no DataLoader")
        return [self.candidate(prior=self._prior)]

    def validate(self, params: Mapping[str, Any]) -> None: ...


CATALOGUE = (
    _Known("small", 1.1),
    _Known("large", 2.0, clash=("small",)),
    _Known("rough", 1.5, Numerics.TOLERANCE),
    _Known("other", 3.0, Numerics.SEMANTIC),
    _Known("absent", None),
)


def _proposed(wishes: Wishes) -> tuple[list[str], dict[str, str]]:
    found, refused = propose(observation(), CATALOGUE, wishes)
    return [candidate.name for candidate in found], {one.name: one.reason for one in refused}


def test_by_default_the_most_promising_comes_first_and_another_training_is_left_out() -> None:
    found, refused = _proposed(Wishes())
    assert found == ["large", "rough", "small"]
    assert refused == {
        "other": "changes the training (semantic); allow it with --allow semantic",
        "absent": "does not apply: the program has no DataLoader",
    }


def test_what_was_predicted_of_this_program_goes_before_what_is_expected_of_any() -> None:
    told = Prediction(name="small", ratio=Ratio(2.5, 2.3, 2.7), method="switched on and off")
    seen = msgspec.structs.replace(observation(), predictions=(told,))
    found, _ = propose(seen, CATALOGUE, Wishes())
    assert [one.name for one in found] == ["small", "large", "rough"]
    assert found[0].predicted == told.ratio


def test_another_training_may_be_allowed() -> None:
    assert _proposed(Wishes(allow=Numerics.SEMANTIC))[0][0] == "other"


def test_only_these() -> None:
    found, refused = _proposed(Wishes(only=("small", "absent")))
    assert found == ["small"]
    assert refused["large"] == "not asked for (--only)"
    assert refused["absent"].startswith("does not apply")


def test_not_these() -> None:
    found, refused = _proposed(Wishes(skip=("large",)))
    assert found == ["rough", "small"]
    assert refused["large"] == "left out (--skip)"


def test_what_is_far_slower_on_such_a_machine_is_tried_where_it_is_asked_for_only() -> None:
    emulated = [_Known("emulated", 0.3)]
    found, refused = propose(observation(), emulated, Wishes())
    assert found == []
    assert [one.name for one in refused] == ["emulated"]
    assert refused[0].reason.endswith("to measure it anyway: --only emulated")
    found, refused = propose(observation(), emulated, Wishes(only=("emulated",)))
    assert [one.name for one in found] == ["emulated"]
    assert refused == []


def test_an_unknown_name_is_said_before_anything_runs() -> None:
    with pytest.raises(HotloopError, match="there is no optimization named 'autocast_bf61'") as caught:
        Wishes(skip=("autocast_bf61",)).check()
    assert "autocast_bf16" in caught.value.hint
    Wishes(only=("autocast_bf16",), skip=("compile",)).check()


def test_a_conflict_holds_both_ways() -> None:
    found = conflicts(CATALOGUE, on_cpu=False)
    assert found["small"] == {"large"}
    assert found["large"] == {"small"}
    assert found["rough"] == frozenset()


@pytest.mark.parametrize("on_cpu", [False, True])
def test_what_brings_nothing_together_on_a_cpu_is_tried_together_elsewhere(*, on_cpu: bool) -> None:
    found = conflicts(all_optimizations(), on_cpu=on_cpu)
    assert ("device_prefetch" in found["dataset_in_memory"]) is on_cpu
    assert ("dataset_in_memory" in found["device_prefetch"]) is on_cpu
