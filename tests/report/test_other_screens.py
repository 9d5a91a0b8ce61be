"""The screens of commands that show what is stored, compared, packed, linted or patched, letter by letter."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest
from rich.console import Group
from rich.text import Text

from hotloop.cli.app import run
from hotloop.cli.check import Gate, told
from hotloop.cli.check import _next as what_next
from hotloop.machine.report import byte_rates
from hotloop.model.comparison import Change, Comparison
from hotloop.model.data import BenchReport, CheckReport, PackPlan, PackReport, ReadRate
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.finding import Finding, Severity
from hotloop.model.gate import GateVerdict
from hotloop.model.machine import (
    CheckStatus,
    Cores,
    DeviceRates,
    DiskRates,
    EnvironmentCheck,
    MachineCard,
    MachineIdentity,
    MachineReport,
    NotMeasured,
    Rate,
)
from hotloop.model.observation import Observation, Phase, PhaseTime
from hotloop.model.outcome import Outcome
from hotloop.model.ratio import Ratio
from hotloop.model.safety import Safety
from hotloop.model.sites import Sites
from hotloop.patch.account import launch_line
from hotloop.patch.account import told as told_of_patch
from hotloop.patch.rewrite_plan import Patch, StepOutcome
from hotloop.report.document import Table
from hotloop.report.sections.all import document
from hotloop.report.sections.comparison import comparison_document
from hotloop.report.sections.data import checked, packed, storage
from hotloop.report.sections.lines import call_sites, host_lines
from hotloop.report.sections.observed import attached
from hotloop.report.sections.sessions import StoredSession, stored_sessions
from hotloop.report.sections.trace.diff import differences
from hotloop.report.terminal.compared import render_next as render_compared
from hotloop.report.terminal.lint import render_text
from hotloop.report.terminal.machine import render as render_machine
from hotloop.report.terminal.machine import render_next as machine_next
from hotloop.report.terminal.report import render as render_report
from hotloop.report.terminal.tuning import what_is_on
from hotloop.report.terminal.walk import render_blocks
from hotloop.source.outcome import AlreadySo, Edited, Refused
from hotloop.trace.compare.diff import Change as TraceChange
from hotloop.trace.compare.diff import TraceDiff
from hotloop.tune.compare.compare import compare_observations

from .results import full, shown
from .rich_session import content
from .snapshots import matches, reads
from .test_observation_screen import STEP, observation

COMMAND = ("python", "train.py", "--epochs", "3")
RATE = Rate(median=1.234e9, low=1.1e9, high=1.3e9, num=5, method="median of 5 repeats")


@pytest.mark.parametrize("tuned", [True, False])
def test_a_report(tuned: bool) -> None:
    name = "report_tuned" if tuned else "report_observed"
    assert matches(name, render_report(document(content(tuned=tuned))))


def test_sessions() -> None:
    found = [
        StoredSession(
            name="20261122-033204",
            when="2026-11-22 03:32",
            kind="tune",
            command="python train.py --epochs 3 --data /data/imagenet --batch-size 256 --output runs/first",
            verdict="2.82x as fast [2.71, 2.96]",
            size_bytes=3 << 20,
        ),
        StoredSession(
            name="20261121-120000",
            when="2026-11-21 12:00",
            kind="observe",
            command="python train.py",
            verdict="134 ms a step",
            size_bytes=200 << 10,
        ),
    ]
    assert matches("sessions", render_blocks(list(stored_sessions(found))))
    assert matches("sessions_none", render_blocks(list(stored_sessions([]))))


def test_a_session_with_a_long_name_leaves_the_columns_of_others_where_they_are() -> None:
    short = StoredSession(
        name="a", when="2026-11-22 03:32", kind="tune", command=None, verdict="1.2x as fast", size_bytes=1
    )
    long = msgspec.structs.replace(short, name="n" * 70, verdict="cannot be read: " + "no such table " * 9)
    lines = shown(render_blocks(list(stored_sessions([short, long])))).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].index("2026") == lines[1].index("2026")


def _of_step(step_s: float, data_s: float) -> Observation:
    """Two milliseconds of optimizer, the rest of the step in equal halves of forward and backward."""
    half_s = (step_s - data_s - 0.002) / 2
    spent = {
        Phase.DATA: data_s,
        Phase.FORWARD: half_s,
        Phase.BACKWARD: half_s,
        Phase.OPTIMIZER: 0.002,
    }
    step = msgspec.structs.replace(
        STEP,
        median_s=step_s,
        mean_s=step_s,
        p50_s=step_s,
        low_s=0.99 * step_s,
        high_s=1.01 * step_s,
        samples_per_s=32 / step_s,
    )
    phases = {
        phase: PhaseTime(each, each / step_s, 0.99 * each, 1.01 * each) for phase, each in spent.items()
    }
    return observation(command=COMMAND, step=step, phases=phases)


def _comparison(after: Observation) -> Comparison:
    found = compare_observations(_of_step(0.134, 0.08), after, ("20261121-120000", "20261122-033204"))
    return msgspec.structs.replace(
        found,
        changes=(Change("torch", "2.9.0", "2.13.0"), Change("OMP_NUM_THREADS", "not set", "8")),
        code=("c0ffee1 load in the background", "train.py: 3 lines changed, not committed"),
    )


def test_a_comparison() -> None:
    assert matches("compare", render_report(comparison_document(_comparison(_of_step(0.061, 0.007)))))
    unproven = _comparison(_of_step(0.129, 0.075))
    assert matches("compare_inconclusive", render_report(comparison_document(unproven)))
    other = msgspec.structs.replace(unproven.after, command=("python", "other.py"))
    assert matches("compare_next", render_compared(msgspec.structs.replace(unproven, after=other), 300.0))


def _verdict(
    ratio: Ratio, outcome: Outcome, *, proven: bool = True, foreign_share: float = 0.0
) -> GateVerdict:
    says = "slower" if ratio.low > 1 else "no difference is proven"
    return GateVerdict(
        outcome=outcome,
        baseline_commit="0f3c" * 10,
        passed=outcome is Outcome.PASSED,
        proven=proven,
        foreign_share=foreign_share,
        slowdown=ratio,
        margin=0.05,
        before_s=0.134,
        now_s=0.134 * ratio.ratio,
        num_runs=(3, 3),
        sentence=f"a step took 134 ms and takes {134 * ratio.ratio:.0f} ms: {ratio.ratio:.2f} times as long "
        f"[{ratio.low:.2f}, {ratio.high:.2f}] ({says}; margin 5.0%)",
        command=COMMAND,
    )


def test_a_gate() -> None:
    for name, verdict in (
        ("check", _verdict(Ratio(1.18, 1.12, 1.24), Outcome.FAILED)),
        ("check_passed", _verdict(Ratio(1.01, 0.98, 1.04), Outcome.PASSED)),
        ("check_open", _verdict(Ratio(1.03, 0.97, 1.09), Outcome.PASSED, proven=False)),
        (
            "check_busy",
            _verdict(Ratio(1.18, 1.12, 1.24), Outcome.NOT_JUDGED, proven=False, foreign_share=0.4),
        ),
    ):
        assert matches(name, Group(told(verdict), what_next(verdict, Gate(Path("base.json")), COMMAND)))


def test_lines_that_the_profilers_saw() -> None:
    deep = content().observation
    assert deep is not None
    assert deep.deep is not None
    assert deep.deep.call_sites is not None
    assert deep.deep.host is not None
    found = [call_sites(deep.deep.call_sites), host_lines(deep.deep.host)]
    assert matches("observe_lines", render_blocks([one for one in found if one is not None]))


def test_packed_data() -> None:
    plan = PackPlan(
        source="/data/imagenet/train",
        fingerprint="0" * 64,
        format="tar",
        num_samples=1_281_167,
        samples_per_shard=10_000,
        classes=tuple(map(str, range(1000))),
    )
    report = PackReport(
        plan=plan, folder="/data/packed", num_kept=1, num_written=128, total_bytes=138 << 30, wall_s=812.0
    )
    assert matches("data_pack", render_blocks(list(packed(report))))
    check = CheckReport(
        folder="/data/packed",
        format="tar",
        num_samples=1_281_167,
        num_shards=129,
        missing_shards=("shard-000007.tar",),
        damaged_shards=(),
        num_compared=1_281_000,
        different_keys=("n01440764/1.jpeg",),
        num_different=1,
        original=None,
        original_samples_per_s=Rate(median=410.0, low=400.0, high=420.0, num=6, method="in turns"),
        packed_samples_per_s=Rate(median=1640.0, low=1600.0, high=1700.0, num=6, method="in turns"),
        speedup=Rate(median=4.0, low=3.8, high=4.2, num=6, method="blocks of 2 s in turns, warm"),
    )
    assert matches("data_check", render_blocks(list(checked(check))))


def test_what_storage_gives() -> None:
    rates = tuple(
        ReadRate(
            order=order,
            cache=cache,
            num_workers=workers,
            bytes_per_s=Rate(median=speed, low=0.9 * speed, high=1.1 * speed, num=3, method="reads"),
            repeats_bytes_per_s=tuple(speed * scale for scale in (0.9, 1.0, 1.02, 1.1)),
            reads_per_s=speed / 1e5,
            terabyte_s=1e12 / speed,
            petabyte_s=1e15 / speed,
        )
        for cache, order, workers, speed in (
            ("cold", "sequential", 1, 5e8),
            ("cold", "random", 1, 8e7),
            ("cold", "sequential", 4, 4.6e8),
            ("cold", "random", 4, 9e7),
            ("warm", "random", 4, 4e9),
        )
    )
    report = BenchReport(
        folder="/data/imagenet",
        filesystem="nfs4",
        mount="/data",
        server="store:/export/data",
        in_memory=False,
        num_files=1_281_167,
        total_bytes=138 << 30,
        median_file_bytes=110 << 10,
        block_bytes=1 << 20,
        rates=rates,
    )
    assert matches("data_bench", render_blocks(list(storage(report))))


def test_the_machine() -> None:
    card = MachineCard(
        measured_at="2026-11-22T03:00:00Z",
        identity=MachineIdentity(
            cpu_model="AMD EPYC 9R45",
            num_cores=8,
            memory_bytes=64 << 30,
            os="Linux 6.8 x86_64",
            python_version="3.11.7",
        ),
        cores=Cores(num_logical=16, num_usable=8, numa_nodes=((0, 1, 2, 3), (4, 5, 6, 7)), hypervisor=True),
        torch_version="2.13.0",
        foreign_ratio=0.01,
        wall_s=14.2,
        memory_bytes_per_s=Rate(median=9.1e10, low=8.8e10, high=9.3e10, num=5, method="copies"),
        devices=(
            DeviceRates(
                device="cpu",
                name="EPYC",
                matmul_flop_per_s={"fp32": RATE, "bf16": RATE},
                memory_bytes_per_s=RATE,
            ),
        ),
        disk=DiskRates(
            folder="/data",
            mount="/",
            filesystem="ext4",
            cache_bypassed=True,
            sequential_read_bytes_per_s=RATE,
            random_4kib_reads_per_s=Rate(median=21_000, low=20_000, high=22_000, num=5, method="reads"),
        ),
        not_measured=(NotMeasured("network", "that takes a second machine"),),
    )
    checks = (
        EnvironmentCheck(
            name="other processes",
            status=CheckStatus.WARNING,
            seen="python (pid 4711) uses 80% of the CPU",
            why="Times will be too long.",
            fix="Stop it, or wait.",
        ),
        EnvironmentCheck(name="swap", status=CheckStatus.OK, seen="none in use", why=""),
        EnvironmentCheck(name="temperature", status=CheckStatus.UNKNOWN, seen="not told", why=""),
    )
    petabyte_s = {name: 1e15 / rate.median for name, rate in byte_rates(card)}
    report = MachineReport(card=card, cached=True, petabyte_s=petabyte_s, checks=checks)
    assert matches("machine", Group(render_machine(report), machine_next(report)))
    quiet = msgspec.structs.replace(report, checks=checks[1:])
    assert shown(render_machine(quiet)).startswith("Ready to measure: nothing")
    assert "look again" not in shown(machine_next(quiet))


def test_lint() -> None:
    found = [
        Finding(
            code="sync-in-step",
            title="The host waits for the device in every step",
            severity=Severity.WARNING,
            path="project/training/train.py",
            line=107,
            evidence=".item() on a tensor of the training loop; the next step is launched only after it",
            advice="Add the losses up on the device, and read them every hundred steps.",
            optimization="deferred_sync",
        ),
        Finding(
            code="full-precision-step",
            title="All arithmetic is in fp32",
            severity=Severity.INFO,
            path="train.py",
            line=7,
            evidence="no autocast around the forward",
            advice="Try torch.autocast with bfloat16.",
            optimization="autocast_bf16",
        ),
    ]
    assert reads("lint", render_text(found, 3))
    assert reads("lint_nothing", render_text([], 1))


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())
    assert run(["explain", "channels_last"]) == 0
    assert capsys.readouterr().out.startswith("# channels_last")


def test_a_patch() -> None:
    plan = full().plan
    outcomes = (
        StepOutcome(
            plan.steps[0], Edited(("train.py:30: num_workers=2, persistent_workers=True",), Safety.SAFE)
        ),
        StepOutcome(plan.steps[1], Refused("the forward is called from a library")),
    )
    patch = Patch(before={}, after={}, outcomes=outcomes, sites=Sites())
    assert reads("patch", "\n".join(told_of_patch(patch, plan, "hotloop.toml")) + "\n")
    already = (StepOutcome(plan.steps[0], AlreadySo("train.py:30")),)
    assert "in the source already" in "\n".join(
        told_of_patch(Patch(before={}, after={}, outcomes=already, sites=Sites()), plan, "hotloop.toml")
    )


def test_how_to_start_a_patched_program_can_be_pasted() -> None:
    environment = {f"MALLOC_VARIABLE_{at}": "a value" for at in range(6)}
    lines = list(launch_line(environment, full().plan, full().plan.fit.command))[2:]
    assert all(len(line) <= 80 for line in lines)
    assert all(line.endswith(" \\") for line in lines[:-1])
    words = shlex.split("\n".join(lines).replace("\\\n", ""))  # as a shell reads it
    assert words == [*(f"{name}={value}" for name, value in environment.items()), *full().plan.fit.command]


def test_a_run() -> None:
    assert matches("run", Text(f"hotloop: {what_is_on(full().plan)}"))


def test_a_trace_comparison() -> None:
    def change(name: str, before: float, after: float, **more: object) -> TraceChange:
        values: dict[str, object] = {
            "path": ("nn.Module: Net_0", f"nn.Module: Layer_{3}", name),
            "status": "changed",
            "num_before": 12.0,
            "num_after": 12.0,
            "device_before_us": before,
            "device_after_us": after,
            "host_before_us": before,
            "host_after_us": after,
            **more,
        }
        return TraceChange(**values)  # type: ignore[arg-type]

    diff = TraceDiff(
        before="/home/ada/project/traces/before.json.gz",
        after="/home/ada/project/traces/after.json.gz",
        per_step=True,
        num_steps_before=1,
        num_steps_after=1,
        device_before=None,
        device_after=None,
        step_before_us=13_400.0,
        step_after_us=9_100.0,
        idle_causes_before={"data": 2100.0},
        idle_causes_after={"data": 300.0},
        operators=(change("aten::convolution", 5000.0, 2500.0), change("aten::addmm", 900.0, 950.0)),
        modules=(change("aten::relu", 300.0, 100.0),),
        slower_in_half=(
            change("aten::sum", 100.0, 180.0, types_before="float", types_after="c10::BFloat16"),
        ),
    )
    assert matches("trace_diff", render_blocks(list(differences(diff, 10))))


def test_a_process_that_is_looked_at() -> None:
    samples = (
        Sample((), "train", "data", 4.6, 460),
        Sample((), "train", "forward", 2.0, 200),
        Sample((), "train", "backward", 3.4, 340),
    )
    host = HostSamples(num_steps=None, window_s=10.0, interval_s=0.01, lines=(), frames=(), samples=samples)
    assert matches("observe_pid", render_blocks(list(attached(host))))


def test_a_call_is_not_taken_for_a_change_with_parameters() -> None:
    rows = (("bool(tensor)", "1x"), ("loader_workers(num_workers=2)", "1x"))
    screen = shown(render_blocks([Table(("call", "a step"), rows)]))
    assert "bool(tensor)" in screen
    assert "\n  num_workers=2" in screen


def test_more_pairs_have_twice_the_time_there_was() -> None:
    unproven = _comparison(_of_step(0.129, 0.075))
    after = msgspec.structs.replace(unproven.after, command=("python", "other.py"))
    turns = msgspec.structs.replace(unproven, after=after, rounds=(((0.1, 0.1),),))
    assert "hotloop compare --budget 40m" in shown(render_compared(turns, 1200.0))
    assert "hotloop compare --budget 1.5m" in shown(render_compared(turns, 45.0))
