"""`hotloop tune` on whole programs, and the plan that it found done by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.acceptance.hand import seconds_a_step
from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row, Skipped

BUDGET_GPU, BUDGET_CPU = "240s", "210s"
"""With the plan by hand, which takes a minute more, a part on a GPU stays under six minutes."""
ON_A_CPU = ("autocast_bf16", "fused_optimizer", "channels_last", "channels_last_3d")
"""What a CPU's short budget is spent on: it shows that the figures agree, not how much there is to gain."""
BY_HAND = {
    "autocast_bf16": ["--bf16"],
    "tf32_matmul": ["--tf32"],
    "channels_last": ["--channels-last"],
    "channels_last_3d": ["--channels-last"],
    "kernel_autotune": ["--autotune"],
    "fused_optimizer": ["--fused"],
    "pinned_memory": ["--pin"],
}
"""Options of the program that do what a step of a plan does."""


def resnet(place: Place) -> Iterator[Row | Skipped]:
    """A ResNet-50 with a loader that decodes."""
    words = ("resnet", "--loader", "--decode", str(place.size(60, 4)))
    yield from _tune(place, *words, goal=3.0, workers=place.size(8, 0))


def gpt(place: Place) -> Iterator[Row | Skipped]:
    """A GPT with hand-written attention, minGPT's `chargpt`."""
    yield from _tune(place, "gpt", goal=3.48)


def unet3d(place: Place) -> Iterator[Row | Skipped]:
    """A three-dimensional U-Net."""
    yield from _tune(place, "unet3d")


def _tune(place: Place, *words: str, goal: float | None = None, workers: int = 0) -> Iterator[Row | Skipped]:
    command = place.command(*words, "--workers", str(workers), "--steps", str(10**9))
    budget = BUDGET_GPU if place.on_gpu else BUDGET_CPU
    only = [] if place.on_gpu else ["--only", ",".join(ON_A_CPU)]
    done = place.hotloop("tune", "--budget", budget, *only, "--json", "tuned.json", *command)
    model = words[0]
    yield Row(
        what=f"{model}: exit code of tune",
        ours=float(done.returncode),
        truth=0.0,
        within=0.0,
        how="by contract",
    )
    if done.returncode:
        print(done.stderr[-3000:])
        return
    result = json.loads((place.folder / "tuned.json").read_text())
    plan = result["plan"]
    steps = [step["name"] for step in plan["steps"]]
    speedup = plan["speedup"]
    if not steps or speedup is None:
        yield Skipped(f"{model}: the plan by hand", f"nothing was proven: {_reasons(result)}")
        yield from _goal(place, model, None, goal)
        return
    unknown = [
        name for name in steps if name not in {*BY_HAND, "compile", "loader_workers"} | set(_VARIABLES)
    ]
    if unknown:
        yield Skipped(f"{model}: the plan by hand", f"the program has no option for {', '.join(unknown)}")
    else:
        yield from _by_hand(place, words, workers, plan, steps)
    yield from _goal(place, model, speedup, goal)


def _reasons(result: dict[str, Any]) -> str:
    reasons = [
        f"{one['name']}: {one['reason']}" for one in result["refused"] if one["name"].startswith(ON_A_CPU)
    ]
    return "; ".join(reasons)[:300].replace("|", "/").replace("\n", " ")


_VARIABLES: dict[str, tuple[str, ...]] = {"openmp_wait_policy": (), "cpu_allocator": (), "thread_count": ()}
"""Steps of a plan that are variables of the environment: hotloop says which."""


def _by_hand(
    place: Place, words: tuple[str, ...], workers: int, plan: dict[str, Any], steps: list[str]
) -> Iterator[Row]:
    options, variables, num_workers = [], dict[str, str](), workers
    for step in plan["steps"]:
        if step["name"] in _VARIABLES:
            variables.update(_environment(step))
        elif step["name"] == "compile":
            options += ["--compile", step["params"]["mode"]]
        elif step["name"] == "loader_workers":
            num_workers = int(step["params"]["num_workers"])
        else:
            options += BY_HAND[step["name"]]
    original = (*words, "--workers", str(workers))
    changed = (*words, "--workers", str(num_workers), *options)
    hand, spread = seconds_a_step(
        place, {"original": original, "by hand": changed}, {"by hand": variables}, steps=place.size(100, 60)
    )
    low, high = plan["speedup"]["low"], plan["speedup"]["high"]
    ratio = plan["speedup"]["ratio"]
    yield Row(
        what=f"{words[0]}: {' + '.join(steps)}, ratio [{low:.2f}, {high:.2f}]",
        ours=ratio,
        truth=hand["original"] / hand["by hand"],
        within=max(0.05, spread, high / ratio - 1, 1 - low / ratio),
        how="the same by hand, whole processes in ABBA order",
    )


def _environment(step: dict[str, Any]) -> dict[str, str]:
    from hotloop.optimize.registry import get

    return dict(get(step["name"]).environment(step["params"]))


def _goal(
    place: Place, model: str, speedup: dict[str, float] | None, goal: float | None
) -> Iterator[Row | Skipped]:
    if goal is None:
        return
    if not place.on_gpu:
        yield Skipped(f"{model}: at least {goal}x", "the goal is a GPU's")
        return
    yield Row(
        what=f"{model}: speed-up with parity passed",
        ours=speedup["ratio"] if speedup else 1.0,
        truth=goal,
        within=0.0,
        how="the goal",
        at_least=True,
    )
    width = (speedup["high"] - speedup["low"]) / speedup["ratio"] if speedup else 1.0
    yield Row(
        what=f"{model}: width of its interval",
        ours=width,
        truth=0.05,
        within=0.0,
        how="the goal",
        at_most=True,
    )
