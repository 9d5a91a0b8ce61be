"""Start an arm: the user's command with a plan on, held before its first step."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from hotloop.launch.caches import COMPILERS, TUNERS, seed_caches
from hotloop.launch.environment import PASSIVE, own_caches, probed, quiet, with_changes
from hotloop.launch.isolation.decide import guard_orders
from hotloop.launch.isolation.scratch import new_scratch
from hotloop.launch.process import start
from hotloop.observe.profile.windows import orders
from hotloop.probe.control.control_page import ControlPage
from hotloop.probe.process.config import ProbeConfig
from hotloop.stats.parity import perturbation
from hotloop.tune.executor import PlanSteps, SetOrder, plan_key
from hotloop.tune.plan.orders import activation_orders, with_plan
from hotloop.tune.trials.arm import Arm
from hotloop.tune.trials.counted_memory import ORDER as COUNTER
from hotloop.tune.trials.detailed_look import INSTRUMENTS
from hotloop.tune.trials.memory_cap import cap_bytes, cap_orders
from hotloop.tune.trials.ranks import REAP_S, of_ranks
from hotloop.tune.trials.setting import Setting

SEED = 20_250_101
"""All arms start from it; a program that seeds for itself overrides it."""


def start_arm(setting: Setting, order: SetOrder, at: int, caches: Path, memory_limit_bytes: int) -> Arm:
    """Start one arm of a set.

    Args:
        setting: what all arms share.
        order: the set.
        at: which of its plans.
        caches: where what this session's plans compile and tune is kept.
        memory_limit_bytes: of all its processes together.
    """
    scratch = new_scratch("arm")
    folder = scratch / "probe"
    folder.mkdir()
    page = ControlPage.create(folder / "control", go_until=0)
    told = scratch / "probe.json"
    _config(setting, order, at, folder, scratch).save(told)
    plan = order.plans[at]
    own, compiled = _caches_of(plan, caches), compiled_in(caches)
    seed_caches(setting.environment, compiled, COMPILERS)
    seed_caches(setting.environment, own / "caches", TUNERS)
    environment = own_caches(quiet(setting.environment, scratch), own, compiled)
    environment.update(of_ranks(setting.environment, own_network=setting.isolation.network))
    # A vocabulary made of a set has another order in every process.
    environment.setdefault("PYTHONHASHSEED", "0")
    if order.passive:
        environment = with_changes(environment, PASSIVE)
    environment = probed(with_plan(environment, plan), told)
    return Arm(
        start(
            setting.argv, environment, setting.isolation, scratch, log=scratch / "log", stdin=setting.stdin
        ),
        page,
        setting.anchor,
        num_ranks=setting.num_ranks,
        memory_limit_bytes=memory_limit_bytes,
        plan=plan,
        counter=counter_of(setting, order),
        device_limit_bytes=cap_bytes(setting, order, at),
        settle_s=REAP_S if setting.devices and setting.num_ranks > 1 else 0.0,
    )


def _config(setting: Setting, order: SetOrder, at: int, folder: Path, scratch: Path) -> ProbeConfig:
    return ProbeConfig(
        folder=str(folder),
        anchor=(setting.anchor.kind, setting.anchor.slot, setting.anchor.every),
        activations=(*cap_orders(setting, order, at), *activation_orders(order.plans[at])),
        seed=SEED,
        program_seeds=setting.program_seeds,
        perturb=perturbation("bfloat16") if at in order.perturbed else 0.0,
        perturb_number=1 + order.num_perturbed + sum(other < at for other in order.perturbed),
        losses=True,
        instruments=instruments_of(setting, order),
        **guard_orders(setting.isolation, scratch),
    )


def instruments_of(setting: Setting, order: SetOrder) -> tuple[dict[str, Any], ...]:
    """Return what the probe of an arm is told of the instruments that it may be asked for; the counter comes last."""
    looks = orders(INSTRUMENTS) if order.look_left_s is not None else ()
    return (*looks, COUNTER) if setting.counts_memory and not setting.devices else looks


def counter_of(setting: Setting, order: SetOrder) -> int | None:
    """Return the number of the counter among an arm's instruments; None: it has none."""
    known = instruments_of(setting, order)
    return len(known) if COUNTER in known else None


def compiled_in(caches: Path) -> Path:
    """Return where all plans of a session keep compiled code."""
    return caches / "compiled"


def _caches_of(plan: PlanSteps, caches: Path) -> Path:
    """What libraries tune for one plan: cold in its first arm, warm in its later ones, never another plan's."""
    return caches / hashlib.sha256(plan_key(plan).encode()).hexdigest()[:16]
