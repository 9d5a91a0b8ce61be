"""A session with everything in it, of any size, made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from hotloop.model.ceilings import Ceilings
from hotloop.model.comparison import Change, Comparison, PhaseChange, Side, TunedSide
from hotloop.model.deep import CallSite, CallSites, Deep, Frame, HostLine, HostSamples, Sample
from hotloop.model.diagnosis import Bottleneck
from hotloop.model.finding import Finding, Severity
from hotloop.model.machine import (
    CheckStatus,
    DeviceRates,
    EnvironmentCheck,
    MachineCard,
    MachineIdentity,
    Rate,
)
from hotloop.model.machine import Cores as MachineCores
from hotloop.model.monitors import Monitor, Monitors
from hotloop.model.observation import (
    Anchor,
    Coverage,
    Memory,
    Observation,
    Phase,
    PhaseTime,
    RankObservation,
    RunAccount,
    StepTime,
)
from hotloop.model.operators import DetailedTimeline, Efficiency, Operator, Operators, TimelineLane
from hotloop.model.optimization import Candidate, Numerics, Refusal
from hotloop.model.origin import CodeState, Origin
from hotloop.model.program import ProgramFacts
from hotloop.model.ratio import Ratio
from hotloop.model.step_memory import ModuleMemory, PhaseMemory, StepMemory
from hotloop.model.step_series import StepKind, StepSeries, TimelineSpan
from hotloop.model.tuning import (
    Baseline,
    Contention,
    Failure,
    FailureKind,
    Measured,
    ParityEvidence,
    Plan,
    PlanStep,
    Switched,
    Trial,
    TuneResult,
)
from hotloop.report.content.content import Excerpt, HeldSteps, LossCurves, ReportContent, SetSamples
from hotloop.report.content.headline import headline, savings

from .results import FIT

WORDS = ("python", "train.py", "--epochs", "3")
SHARES = {
    Phase.DATA: 0.46,
    Phase.FORWARD: 0.2,
    Phase.BACKWARD: 0.27,
    Phase.OPTIMIZER: 0.05,
    Phase.OTHER: 0.02,
}
STEP_S = 0.134
NUM_HOLDS = 40
FACTORS = (
    ("loader_workers", 1.44),
    ("debug_apis_off", 1.36),
    ("autocast_bf16", 1.21),
    ("channels_last", 1.19),
)
MACHINE = {
    "cpu_model": "AMD EPYC 9R45",
    "num_cores": 8,
    "memory_bytes": 64 << 30,
    "os": "Linux 6.8 x86_64",
    "python_version": "3.11",
    "accelerators": [],
}
SOURCE = """    for images, labels in loader:
        optimizer.zero_grad()
        with torch.autograd.detect_anomaly():
            loss = criterion(model(images), labels)
            loss.backward()
        optimizer.step()
        running += loss.item()"""


def series(num: int, rank: int | None = None, seed: int = 0) -> StepSeries:
    """Steps with drift, outliers, two epochs' starts and an evaluation in each."""
    draw = np.random.default_rng(seed)
    durations = STEP_S * np.exp(draw.normal(0, 0.05, num))
    durations[draw.random(num) < 0.01] *= 2.5
    epochs = tuple(range(num // 5, num, max(1, num // 5)))
    durations[list(epochs)] += 1.2
    kind = np.full(num, StepKind.STEADY, dtype=np.uint8)
    kind[: min(8, num // 4)] = StepKind.WARM_UP
    kind[list(epochs)] = StepKind.IRREGULAR
    starts = np.concatenate([[0.0], np.cumsum(durations)[:-1]]) + 3.0
    return StepSeries(
        rank=rank,
        pid=1000 + (rank or 0),
        num=num,
        begin_s=starts.astype("<f8").tobytes(),
        duration_s=durations.astype("<f4").tobytes(),
        phases={phase.value: (durations * share).astype("<f4").tobytes() for phase, share in SHARES.items()},
        kind=kind.tobytes(),
        epochs=epochs,
        evaluations=epochs[1::2],
        checkpoints=epochs[:1],
        spans=tuple(_spans(starts[-10:].tolist(), durations[-10:].tolist())),
    )


def _spans(starts: Sequence[float], durations: Sequence[float]) -> list[TimelineSpan]:
    found = []
    for begin, spent in zip(starts, durations, strict=True):
        at = begin
        for phase, share in SHARES.items():
            if phase is not Phase.OTHER:
                found.append(TimelineSpan(phase.value, at, at + share * spent, 0))
            at += share * spent
    return found


def observation(num_steps: int = 600, num_ranks: int = 1) -> Observation:
    """What was measured of the program as it was."""
    step = StepTime(
        num=num_steps - 8,
        median_s=STEP_S,
        low_s=0.131,
        high_s=0.1372,
        p50_s=STEP_S,
        p95_s=0.149,
        p99_s=0.31,
        samples_per_s=238.0,
        rhythm=("data", "forward", "backward", "optimizer"),
    )
    phases = {phase: PhaseTime(share * STEP_S, share) for phase, share in SHARES.items()}
    ranks = tuple(
        RankObservation(
            rank=number if num_ranks > 1 else None, pid=1000 + number, role="train", step=step, phases=phases
        )
        for number in range(num_ranks)
    )
    return Observation(
        command=WORDS,
        step=step,
        phases=phases,
        ranks=ranks,
        memory=Memory(
            peak_bytes=1300 << 20, device="cpu", method="largest resident set of a training process"
        ),
        run=RunAccount(
            wall_s=100.0,
            parts={
                "import_s": 2.4,
                "steps_s": 88.0,
                "evaluation_s": 6.0,
                "first_step_s": 0.6,
                "unaccounted_s": 3.0,
            },
            num_steps=num_steps,
            num_epochs=5,
        ),
        coverage=(Coverage("tokens_per_s", "no integer token batch was seen"),),
        program=ProgramFacts(
            torch_version="2.13.0",
            python_version="3.11.7",
            script="train.py",
            environment={"OMP_NUM_THREADS": "8"},
        ),
        anchor=Anchor("optimizer", 0),
        machine=MACHINE,
        exit_code=None,
        epoch_steps=num_steps // 5,
        foreign_share=0.013,
        ceilings=Ceilings(
            compute_samples_per_s=431.0,
            compute_low=418.0,
            compute_high=445.0,
            perfect_input=Ratio(1.81, 1.76, 1.87),
            perfect_input_step_s=0.074,
            loader_samples_per_s={0: 520.0, 1: 505.0, 2: 980.0, 4: 1850.0},
            num_workers=0,
        ),
        deep=_deep(),
        efficiency=Efficiency(
            flop=31e9, flop_per_s=231e9, precision="fp32", peak_flop_per_s=1.1e12, mfu=0.21, why_no_peak=None
        ),
        monitors=_monitors(),
        series=tuple(
            series(num_steps, number if num_ranks > 1 else None, number) for number in range(num_ranks)
        ),
    )


def _deep() -> Deep:
    frames = (
        Frame("/home/ada/project/train.py", 41, "main"),
        Frame("/home/ada/project/train.py", 30, "train_epoch"),
        Frame("/home/ada/project/data.py", 18, "__getitem__"),
        Frame("/usr/lib/python3/site-packages/PIL/Image.py", 900, "convert", "library"),
        Frame("/home/ada/project/data.py", 25, "augment"),
        Frame("/usr/lib/python3/site-packages/torch/nn/modules/conv.py", 548, "forward", "torch"),
        Frame("/home/ada/project/model.py", 33, "forward"),
    )
    samples = (
        Sample((0, 1, 2, 3), "train", "data", 1.9, 190),
        Sample((0, 1, 2, 4), "train", "data", 1.1, 110),
        Sample((0, 1, 6, 5), "train", "forward", 1.4, 140),
        Sample((0, 1), "train", "backward", 1.8, 180),
        Sample((0, 1), "train", "optimizer", 0.3, 30),
    )
    lines = tuple(
        HostLine(
            path=frames[at].path,
            line=frames[at].line,
            function=frames[at].function,
            process="train",
            phase="data",
            share=share,
            spent_s=share * 6.5,
            num=int(share * 650),
        )
        for at, share in ((2, 0.29), (4, 0.17))
    )
    operators = tuple(
        Operator(
            name=name,
            shapes=((32, 64, 56, 56), (64, 64, 3, 3)),
            count=12.0,
            self_s=0.02 / (at + 1),
            device_s=None,
            share=0.4 / (at + 1),
            allocated_bytes=float(25 << 20),
            flop=flop,
        )
        for at, (name, flop) in enumerate(
            (
                ("aten::mkldnn_convolution", 9e9),
                ("aten::convolution_backward", 1.8e10),
                ("aten::addmm", 1e8),
                ("aten::relu_", None),
            )
        )
    )
    return Deep(
        host=HostSamples(
            num_steps=48, window_s=6.5, interval_s=0.01, lines=lines, frames=frames, samples=samples
        ),
        operators=Operators(
            num_steps=3,
            window_s=0.5,
            num=310.0,
            self_s=0.07,
            device_s=None,
            operators=operators,
            timeline=timeline(),
        ),
        memory=memory(),
        call_sites=CallSites(
            num_steps=40,
            window_s=5.0,
            sites=(
                CallSite(
                    path="train.py",
                    line=36,
                    function="train_epoch",
                    call=".item()",
                    kind="sync",
                    device="cpu",
                    count_per_step=1.0,
                    time_per_step_s=2e-5,
                    low_s=1.5e-5,
                    high_s=2.6e-5,
                ),
            ),
        ),
    )


def timeline() -> DetailedTimeline:
    """Two steps: phases, operators inside one another, a device stream and two workers."""
    phases, operators, stream = [], [], []
    for begin in (0.0, STEP_S):
        at = begin
        for phase, share in SHARES.items():
            phases.append(TimelineSpan(phase.value, at, at + share * STEP_S, 0))
            at += share * STEP_S
        for number in range(12):
            start = begin + 0.062 + number * 0.005
            operators.append(TimelineSpan("aten::conv2d", start, start + 0.004, 0))
            operators.append(TimelineSpan("aten::mkldnn_convolution", start + 0.0002, start + 0.0038, 1))
            stream.append(TimelineSpan("implicit_convolve_sgemm", start + 0.001, start + 0.0045, 0))
    workers = [[TimelineSpan("batch", begin, begin + 0.11, 0) for begin in (0.0, 0.13)] for _ in range(2)]
    lanes = [("phases", 0, phases), ("operators", 1, operators), ("device", 7, stream)]
    lanes += [("worker", number, spans) for number, spans in enumerate(workers)]
    return DetailedTimeline(
        window_s=2 * STEP_S,
        num_spans=60,
        lanes=tuple(
            TimelineLane(
                kind=kind,
                number=number,
                spans=tuple(spans),
                busy_s=sum(one.end_s - one.begin_s for one in spans),
            )
            for kind, number, spans in lanes
        ),
    )


def memory(scale: float = 1.0) -> StepMemory:
    """Two steps that take memory in the forward and give it back in the backward."""
    times = [STEP_S * at / 20 for at in range(41)]
    held = [int(scale * (300 << 20) * (1 - abs(2 * (at % 20) / 20 - 1))) for at in range(41)]
    modules = [
        ModuleMemory(
            path=f"layer{number}.{block}.conv",
            cls="Conv2d",
            parameter_bytes=number << 20,
            gradient_bytes=number << 20,
            buffer_bytes=0,
            optimizer_bytes=2 * number << 20,
            activation_bytes=int(scale * (40 << 20) / number),
        )
        for number in (1, 2, 3, 4)
        for block in (0, 1)
    ]
    return StepMemory(
        device="cpu",
        num_steps=2,
        window_s=2 * STEP_S,
        absolute=False,
        peak_bytes=max(held),
        times_s=tuple(times),
        bytes=tuple(held),
        steps_s=(STEP_S, 2 * STEP_S),
        phases={
            "forward": PhaseMemory(peak_bytes=max(held), change_bytes=scale * (290 << 20)),
            "backward": PhaseMemory(peak_bytes=max(held), change_bytes=-scale * (290 << 20)),
        },
        modules=tuple(modules),
    )


def _monitors() -> Monitors:
    times = tuple(0.5 * at for at in range(120))
    rising = tuple(min(1250.0, 300.0 + 80 * at) * (1 << 20) for at in range(120))
    busy = tuple(0.8 + 0.05 * math.sin(at) for at in range(120))
    return Monitors(
        interval_s=0.5,
        begin_s=6.0,
        end_s=59.0,
        times_s=times,
        metrics={
            "program_memory_bytes": Monitor(
                mean=1.2 * (1 << 30), p95=1.25 * (1 << 30), max=1.3 * (1 << 30), samples=rising
            ),
            "cpu_busy_ratio": Monitor(mean=0.8, p95=0.85, max=0.86, samples=busy),
        },
    )


def tuning(num_trials: int = 8, factors: Sequence[tuple[str, float]] = FACTORS) -> TuneResult:
    """A plan of some steps, and as many trials as wanted."""
    steps = tuple(
        PlanStep(
            name=name,
            params={"num_workers": 4} if name == "loader_workers" else {},
            ratio=factor,
            low=factor * 0.965,
            high=factor * 1.035,
            numerics=Numerics.TOLERANCE if name == "autocast_bf16" else Numerics.EXACT,
            break_even_steps=60 if name == "loader_workers" else None,
        )
        for name, factor in factors
    )
    total = math.prod(factor for _, factor in factors)
    return TuneResult(
        command=WORDS,
        baseline=Baseline(
            step_s=STEP_S,
            low_s=0.131,
            high_s=0.1372,
            samples_per_s=238.0,
            peak_bytes=1300 << 20,
            anchor=Anchor("optimizer", 0),
        ),
        floor=0.0117,
        plan=Plan(
            steps=steps,
            speedup=Ratio(total, total * 0.96, total * 1.05) if steps else None,
            parity=ParityEvidence(
                passed=True,
                statistic=0.00081,
                limit=0.023,
                num_steps=160,
                method="worst window",
                evidence="mean deviation 0.00024 (limit 0.0078); worst window 0.00081 (limit 0.023); "
                "floor from 2 runs of the original",
            ),
            fit=FIT,
        ),
        refused=(
            Refusal("pinned_memory", "does not apply: the model is on the CPU"),
            Refusal("compile(mode=default)", "no difference: 1.004 [0.962, 1.047]"),
            Refusal("thread_count(num_threads=1)", "slower: 0.62x in 4 blocks"),
        ),
        trials=tuple(_trial(number) for number in range(num_trials)),
        peak_bytes=(1300 << 20, 1040 << 20),
        contention=Contention(num_blocks=212, num_void=9, num_noisy=2, max_foreign_share=0.18),
        confirmation="3 sets of fresh processes, 6 blocks of each copy of your program in turns (ABBA), as you run it; "
        "95% interval over sets and blocks, valid at every look",
        wall_s=552.0,
        coverage=("isolation: user namespaces are not permitted here",),
    )


def held() -> dict[str, tuple[HeldSteps, ...]]:
    """The steps of a process in which the number of threads was switched."""
    return {
        "switch": tuple(
            HeldSteps(("thread_count",) if at % 2 else (), (STEP_S / (0.62 if at % 2 else 1),) * 3)
            for at in range(NUM_HOLDS)
        )
    }


def _trial(number: int) -> Trial:
    draw = np.random.default_rng(number)
    true = [1.44, 1.36, 1.21, 1.19, 1.0, 0.62, 1.02, 1.1][number % 8]
    name = [
        "loader_workers",
        "debug_apis_off",
        "autocast_bf16",
        "channels_last",
        "compile",
        "thread_count",
        "fused_optimizer",
        "cpu_allocator",
    ][number % 8]
    candidate = Candidate(name=name, params={"variant": number // 8} if number >= 8 else {})
    predicted = Ratio(true * 1.04, true * 0.94, true * 1.15)
    if number % 8 == 6:
        failed = Failure(
            kind=FailureKind.CRASH, message="the program failed with exit code 1", log_end="RuntimeError: no"
        )
        return Trial(
            key=f"trial|{number}",
            candidate=candidate,
            incumbent=(),
            outcome=failed,
            decision="failed (crash)",
        )
    if number % 8 == 5:
        return Trial(
            key=f"switch|{candidate.label}",
            candidate=candidate,
            incumbent=(),
            outcome=Switched(num_holds=NUM_HOLDS, settle_steps=2, evidence="the count was seen to change"),
            decision="slower: 0.62 [0.60, 0.64]",
            ratio=Ratio(true, true * 0.97, true * 1.03),
            seconds=31.0,
            predicted=predicted,
        )
    pairs = tuple(tuple(float(math.log(true) + draw.normal(0, 0.03)) for _ in range(8)) for _ in range(2))
    return Trial(
        key=f"trial|{number}",
        candidate=candidate,
        incumbent=(),
        outcome=Measured(
            pairs=pairs, step_s=(STEP_S, STEP_S / true), contention=Contention(num_blocks=32, num_void=1)
        ),
        decision="accepted" if true > 1.05 else "no difference: 1.004 [0.962, 1.047]",
        ratio=Ratio(true, true * 0.97, true * 1.03),
        seconds=31.0,
        predicted=predicted,
    )


def sets(factors: Sequence[tuple[str, float]] = FACTORS, num: int = 3) -> tuple[SetSamples, ...]:
    """The confirmation's raw samples."""
    draw = np.random.default_rng(5)
    totals = np.cumprod([1.0, *(factor for _, factor in factors)]).tolist()
    found = []
    for _ in range(num):
        rounds = tuple(
            tuple(float(STEP_S / total * math.exp(draw.normal(0, 0.02))) for total in totals)
            for _ in range(6)
        )
        found.append(
            SetSamples(
                rounds=rounds,
                phases=tuple(_parts(at, total) for at, total in enumerate(totals)),
                peak_bytes=(),
            )
        )
    return tuple(found)


def _parts(at: int, total: float) -> dict[str, float]:
    whole = STEP_S / total
    data = 0.46 * STEP_S if at == 0 else 0.04 * whole
    rest = {phase: share for phase, share in SHARES.items() if phase is not Phase.DATA}
    scale = (whole - data) / sum(rest.values())
    return {Phase.DATA.value: data, **{phase.value: share * scale for phase, share in rest.items()}}


def losses(num: int = 160) -> LossCurves:
    """Curves that agree but for rounding."""
    draw = np.random.default_rng(9)
    base = 2.3 * np.exp(-np.arange(num) / 70) + 0.4 + draw.normal(0, 0.06, num)

    def again(scale: float) -> tuple[float, ...]:
        return tuple(float(one) for one in base * (1 + np.linspace(0, scale, num) * draw.normal(0, 1, num)))

    return LossCurves(original=again(0), repeats=(again(0.004),), perturbed=again(0.02), plan=(again(0.012),))


FINDINGS = (
    Finding(
        code="anomaly-mode-on",
        title="Autograd's anomaly mode is on",
        severity=Severity.WARNING,
        path="train.py",
        line=32,
        cost_s=0.031,
        cost_low_s=0.027,
        cost_high_s=0.036,
        gain=Ratio(1.32, 1.24, 1.41),
        evidence="every backward ran under detect_anomaly",
        advice="Take detect_anomaly() out once the NaN is found.",
        optimization="debug_apis_off",
    ),
    Finding(
        code="loader-in-training-process",
        title="Batches are made in the training process",
        severity=Severity.WARNING,
        metric="phases.data.share",
        cost_s=0.0616,
        evidence="the loader has num_workers=0, and the step waits 46% of its time for data",
        advice="Let workers load beside training.",
        optimization="loader_workers",
    ),
)
MANUAL = {
    "anomaly-mode-on": "# anomaly-mode-on\n\n## Why\n\n`detect_anomaly` keeps tracebacks of operators.\n",
    "loader_workers": "# loader_workers\n\nLoads beside training.\n",
}
PATCH = """--- a/train.py
+++ b/train.py
@@ -30,3 +30,3 @@
-    loader = DataLoader(data, batch_size=32, shuffle=True)
+    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=4, persistent_workers=True)
     for images, labels in loader:
"""
CHECKS = (
    EnvironmentCheck(
        name="background-load",
        status=CheckStatus.WARNING,
        seen="18% of the usable cores: python (pid 4711) 18%",
        why="a busy neighbour does not cost its share",
        fix="end what you can",
    ),
    EnvironmentCheck(name="swap", status=CheckStatus.OK, seen="none in use", why="pages come back slowly"),
)
RATE = Rate(median=1.1e12, low=1e12, high=1.2e12, num=5, method="matmul")


def card() -> MachineCard:
    """What the machine can do."""
    return MachineCard(
        measured_at="2026-11-22T03:00:00Z",
        identity=MachineIdentity(
            cpu_model="AMD EPYC 9R45", num_cores=8, memory_bytes=64 << 30, os="Linux", python_version="3.11"
        ),
        cores=MachineCores(num_logical=8, num_usable=8),
        wall_s=12.0,
        memory_bytes_per_s=msgspec.structs.replace(RATE, median=9e10),
        devices=(DeviceRates(device="cpu", name="EPYC", matmul_flop_per_s={"fp32": RATE}),),
    )


def content(
    num_steps: int = 600, num_ranks: int = 1, num_trials: int = 8, *, tuned: bool = True
) -> ReportContent:
    """Everything that a report shows."""
    seen = observation(num_steps, num_ranks)
    result = tuning(num_trials) if tuned else None
    bottleneck = Bottleneck("input", 0.46, "input-bound: 46% of the step waits for data")
    return ReportContent(
        session="20261122-033204",
        headline=headline(seen, result, bottleneck),
        savings=savings(seen, result, price_per_hour=4.1, power_price=None),
        origin=Origin(
            kind="tune" if tuned else "observe",
            words=WORDS,
            folder="/home/ada/project",
            began="2026-11-22T03:32:04+00:00",
            hotloop_version="0.1.0",
            code=CodeState(commit="c0ffee" * 6 + "abcd", branch="main", changed=("train.py",)),
            packages={"torch": "2.13.0", "numpy": "2.3.0"},
            checks=CHECKS,
        ),
        observation=seen,
        tuning=result,
        bottleneck=bottleneck,
        findings=FINDINGS,
        excerpts=(Excerpt("train.py", 32, 30, SOURCE),),
        manual=MANUAL,
        sets=sets() if tuned else (),
        held=held() if tuned else {},
        losses=losses() if tuned else None,
        after=Deep(memory=memory(0.6)) if tuned else None,
        card=card(),
        patch=PATCH if tuned else None,
        missing=(*seen.coverage, Coverage("power", "no sensor of this machine tells it")),
    )


def attached() -> ReportContent:
    """A process that was looked at from outside: no step, nothing but host samples."""
    said = content(tuned=False)
    assert said.observation is not None
    assert said.observation.deep is not None
    seen = msgspec.structs.replace(
        said.observation,
        step=None,
        phases={},
        ranks=(),
        series=(),
        ceilings=None,
        efficiency=None,
        monitors=None,
        deep=Deep(host=said.observation.deep.host),
    )
    return msgspec.structs.replace(
        said,
        headline=headline(seen, None, None),
        observation=seen,
        bottleneck=None,
        findings=(),
        excerpts=(),
        manual={},
        missing=(Coverage("steps, memory, operators, call sites", "it was looked at from outside"),),
    )


def comparison() -> Comparison:
    """Two tuned sessions beside one another, with everything that can be told of them."""
    draw = np.random.default_rng(3)
    sides = [
        Side(
            name=name,
            command=WORDS,
            step_s=step_s,
            phases={phase.value: share * step_s for phase, share in SHARES.items()},
            peak_bytes=1 << 30,
        )
        for name, step_s in (("20261121-120000", 0.134), ("20261122-033204", 0.061))
    ]
    pairs = tuple(tuple((0.134, float(0.061 + draw.normal(0, 0.002))) for _ in range(8)) for _ in range(3))
    return Comparison(
        before=sides[0],
        after=sides[1],
        ratio=Ratio(2.2, 2.05, 2.31),
        verdict="faster",
        reason="2.20 [2.05, 2.31]",
        phases={
            phase.value: PhaseChange(
                before_s=share * 0.134, after_s=share * 0.061, ratio=Ratio(2.2, 2.0, 2.4)
            )
            for phase, share in SHARES.items()
        },
        changes=(Change("torch", "2.9.0", "2.13.0"),),
        tuned=(
            TunedSide(
                steps={"compile": Ratio(1.2, 1.1, 1.3)}, speedup=Ratio(1.2, 1.1, 1.3), learns_the_same=True
            ),
            None,
        ),
        code=("c0ffee1 load in the background",),
        rounds=pairs,
        method="3 fresh pairs of processes",
    )
