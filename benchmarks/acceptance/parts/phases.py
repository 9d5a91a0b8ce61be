"""Forward, backward and optimizer against the program's own stamps around them."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row
from hotloop.model.observation import Phase

PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)


def run(place: Place) -> Iterator[Row]:
    """Observe a whole run that stamps its phases."""
    for model in ("gpt", "unet3d"):
        steps = place.size(200, 60)
        observation = place.observe_whole(model, "--phases", "--steps", str(steps), truth="phases.json")
        stamps = place.truth("phases.json")["phases_s"]
        late = range(5, steps)
        for number, phase in enumerate(PHASES):
            spent = [stamps[4 * step + number + 1] - stamps[4 * step + number] for step in late]
            seen = observation.phases.get(phase)
            yield Row(
                what=f"{model}, {phase.value}, s",
                ours=seen.median_s if seen else None,
                truth=median(spent),
                # The loss is computed after the forward's hook ends and before the backward's begins.
                within=0.10 if phase is not Phase.OPTIMIZER else 0.15,
                how="the program's own stamps around it",
            )
