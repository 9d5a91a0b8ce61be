"""The bottleneck, in one sentence with its number."""

from __future__ import annotations

from hotloop.diagnose.price.cost import MATERIAL, evaluated_share, loop_s, phase_share
from hotloop.diagnose.price.facts import step_loader
from hotloop.model.ceilings import Ceilings
from hotloop.model.diagnosis import Bottleneck
from hotloop.model.observation import Observation, Phase

_KINDS: dict[str, tuple[Phase, ...]] = {
    "input": (Phase.DATA,),
    "transfer": (Phase.TRANSFER,),
    "compute": (Phase.FORWARD, Phase.BACKWARD),
    "communication": (Phase.COMMUNICATION,),
    "optimizer": (Phase.OPTIMIZER,),
    "host": (Phase.OTHER,),
}
_SAYS = {
    "transfer": "of the step copies batches to the device",
    "compute": "of the step is forward and backward",
    "communication": "of the step waits for other ranks",
    "optimizer": "of the step is the optimizer",
    "host": "of the step is in none of the loop's phases (logging, metrics, your own code between them)",
}
_PARTS = {
    "evaluation_s": ("evaluation", "is evaluation"),
    "rollout_s": ("rollout", "is rollouts (the model acts in environments)"),
    "checkpoint_s": ("checkpoint", "is saving checkpoints"),
    "epoch_boundary_s": ("epoch_boundary", "goes to starting the loader anew"),
    "irregular_step_s": (
        "host",
        "lies between steps, in what the program does now and then (plots, simulation, logging)",
    ),
}
_HALF = 0.5
"""A part between the steps that takes more than all steps and other parts together is the bottleneck."""


def bottleneck(observation: Observation) -> Bottleneck | None:
    """Return what takes most of the time; None: no step was measured."""
    if observation.step is None or not observation.phases:
        return None
    return _between(observation) or _within(observation)


def _between(observation: Observation) -> Bottleneck | None:
    whole_s = loop_s(observation)
    for name, (kind, says) in _PARTS.items():
        share = observation.run.parts.get(name, 0.0) / whole_s if whole_s else 0.0
        if share > _HALF:
            return Bottleneck(kind, share, f"{kind.replace('_', ' ')}-bound: {share:.0%} of the loop {says}")
    return None


def _within(observation: Observation) -> Bottleneck:
    shares = {kind: phase_share(observation, *phases) for kind, phases in _KINDS.items()}
    kind = max(shares, key=lambda name: shares[name])
    if kind == "input":
        return Bottleneck(kind, shares[kind], _input_sentence(observation, shares[kind]))
    rest = _data_rest(observation, shares["input"])
    infers = observation.anchor is not None and observation.anchor.infers
    says = "of the step is the forward pass" if kind == "compute" and infers else _SAYS[kind]
    says += _without_gradients(observation) if kind == "compute" else ""
    return Bottleneck(kind, shares[kind], f"{kind}-bound: {shares[kind]:.0%} {says}{rest}")


def _without_gradients(observation: Observation) -> str:
    share = evaluated_share(observation)
    return f", {share:.0%} in forwards without gradients" if share >= MATERIAL else ""


def _input_sentence(observation: Observation, share: float) -> str:
    says = f"input-bound: {share:.0%} of the step waits for data"
    step = observation.step
    assert step is not None
    if step.samples_per_s is None or share >= 1.0:
        return says
    limits = observation.ceilings or Ceilings()
    alone = limits.compute_samples_per_s or step.samples_per_s / (1.0 - share)
    given = limits.loader_now or _loader_rate(observation, share)
    turns = "; without workers they take turns" if _takes_turns(observation) else ""
    return f"{says}; compute alone would run at {_rate(alone)} samples/s, the loader alone at {_rate(given)}{turns}"


def _loader_rate(observation: Observation, share: float) -> float:
    """Without workers loading and computing take turns; with workers a loop that waits runs at the loader's pace."""
    step = observation.step
    assert step is not None
    assert step.samples_per_s is not None
    return step.samples_per_s / share if _takes_turns(observation) else step.samples_per_s


def _takes_turns(observation: Observation) -> bool:
    """Whether loading and computing take turns: there are no workers."""
    loader = step_loader(observation)
    return loader is None or loader.num_workers == 0


def _data_rest(observation: Observation, share: float) -> str:
    if Phase.DATA not in observation.phases:
        return ""
    return f"; waiting for data takes {share:.0%}"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.2g}"
