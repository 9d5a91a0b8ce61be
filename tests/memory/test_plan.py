"""From peaks on a virtual GPU to what fits where."""

from hotloop.memory.devices import device_named
from hotloop.memory.plan import look_on, plan_for
from hotloop.memory.virtual_report import FoundBatch, Look, VirtualPeak, VirtualReport, Wanted
from hotloop.model.memory_plan import MemoryPlan, PlannedDevice
from hotloop.report.content.later_peak import said_later

GIB = 1 << 30


def planned(
    *names: str,
    one_gib: float = 10,
    look: Look | None = None,
    assumptions: tuple[str, ...] = (),
) -> tuple[MemoryPlan, list[str]]:
    asked: list[str] = []

    def run(device: PlannedDevice, wanted: Wanted) -> VirtualReport:
        asked.append(device.name)
        size = int(one_gib * GIB)
        peaks = [
            VirtualPeak(name=name, missing="the model has no repeated blocks")
            if "checkpointing" in name
            else VirtualPeak(name=name, peak_allocated_bytes=size, peak_reserved_bytes=size)
            for name in wanted.names
        ]
        return VirtualReport(
            configurations=tuple(peaks),
            assumptions=assumptions,
            batch_size=8,
            largest=tuple(
                FoundBatch(room=room, fits=int(room // GIB), too_large=99) for room in wanted.rooms
            ),
            look=look if wanted.look_s is not None else None,
        )

    return plan_for(["python", "train.py"], [device_named(name) for name in names], run), asked


def test_what_fits_is_told_with_the_intervals_in_mind() -> None:
    plan, _ = planned("T4", one_gib=14.3)
    fits = {peak.configuration: peak.fits for peak in plan.peaks}
    assert fits["as it is"] == "unsure"
    assert planned("T4", one_gib=16)[0].peaks[0].fits == "no"
    assert planned("A100 40GB")[0].peaks[0].fits == "yes"


def test_a_configuration_that_cannot_be_had_says_why_and_has_no_number() -> None:
    plan, _ = planned("T4")
    missing = next(peak for peak in plan.peaks if peak.configuration == "checkpointing")
    assert (missing.allocated, missing.fits) == (None, None)
    assert missing.missing == "the model has no repeated blocks"


def test_devices_with_the_same_kernels_share_a_run() -> None:
    plan, asked = planned("A100 40GB", "RTX 4090", "V100 16GB", "T4")
    assert asked == ["A100 40GB", "V100 16GB"]
    assert {peak.device for peak in plan.peaks} == {"A100 40GB", "RTX 4090", "V100 16GB", "T4"}


def test_half_precision_is_fp16_where_the_device_has_no_bf16() -> None:
    plan, _ = planned("V100 16GB", "A100 40GB")
    names = {(peak.device, peak.configuration) for peak in plan.peaks}
    assert ("V100 16GB", "fp16 autocast") in names
    assert ("A100 40GB", "bf16 autocast") in names


def test_each_device_has_the_largest_batch_of_its_own_room() -> None:
    plan, asked = planned("A100 40GB", "RTX 4090")
    assert asked == ["A100 40GB"]
    found = {each.device: each.batch_size for each in plan.largest_batches}
    assert found == {"A100 40GB": 38, "RTX 4090": 23}


def test_a_peak_that_comes_later_is_the_peak_of_the_program() -> None:
    look = Look(
        num_steps=90, peak_allocated_bytes=12 * GIB, peak_reserved_bytes=13 * GIB, step=88, phase="between"
    )
    plan, _ = planned("T4", look=look)
    base = plan.peaks[0]
    assert base.allocated is not None
    assert base.allocated.num_bytes == 12 * GIB
    assert plan.later is not None
    assert (plan.later.step, plan.later.phase) == (88, "between")


def test_a_program_that_grows_is_not_said_to_fit() -> None:
    look = Look(
        num_steps=90,
        peak_allocated_bytes=GIB,
        peak_reserved_bytes=GIB,
        step=90,
        phase="forward",
        grows_bytes=float(GIB >> 10),
        growing_line="/home/me/train.py:7",
    )
    plan, _ = planned("T4", one_gib=1, look=look)
    assert {peak.fits for peak in plan.peaks if peak.missing is None} == {"unsure"}
    said = dict(said_later(plan))
    assert said["grows"].startswith(
        "by 1.00 MiB a step, most of it made in train.py:7; full after steps: T4 about 13,"
    )


def test_what_is_computed_says_by_which_formula() -> None:
    plan, _ = planned("T4")
    formulas = {peak.configuration: peak.formula for peak in plan.peaks}
    assert formulas["as it is"] is None
    assert "1910.02054" in (formulas["FSDP2 (ZeRO-3) over 8"] or "")
    assert all(peak.time_ratio is None for peak in plan.peaks)


def test_assumed_values_widen_the_interval() -> None:
    exact = planned("T4")[0].peaks[0].reserved
    assumed = planned("T4", assumptions=("nonzero is taken to select everything",))[0].peaks[0].reserved
    assert exact is not None
    assert assumed is not None
    assert assumed.high - assumed.low > exact.high - exact.low


def test_an_evaluation_that_does_not_fit_is_one_of_every_configuration() -> None:
    look = Look(
        num_steps=9, peak_allocated_bytes=20 * GIB, peak_reserved_bytes=20 * GIB, step=9, phase="between"
    )
    plan, _ = planned("T4", one_gib=1, look=look)
    fits = {peak.configuration: peak.fits for peak in plan.peaks if peak.missing is None}
    assert fits.pop("as it is") == "no"
    assert set(fits.values()) == {"unsure"}
    assert {peak.fits for peak in planned("A100 40GB", look=look)[0].peaks[1:] if not peak.missing} == {"yes"}


def test_a_later_peak_is_scaled_to_devices_with_other_kernels() -> None:
    look = Look(num_steps=9, peak_allocated_bytes=GIB, peak_reserved_bytes=GIB, step=9, phase="between")
    first, other = (
        VirtualReport(configurations=(VirtualPeak(name="as it is", peak_allocated_bytes=size),), look=seen)
        for size, seen in ((GIB // 2, look), (GIB // 4, None))
    )
    there = look_on(first, other)
    assert there is not None
    assert there.peak_reserved_bytes == GIB // 2
    assert look_on(first, first) == look


def test_a_step_that_needs_more_than_the_first_ones_leaves_other_configurations_unsure() -> None:
    look = Look(
        num_steps=9, peak_allocated_bytes=3 * GIB, peak_reserved_bytes=3 * GIB, step=9, phase="backward"
    )
    plan, _ = planned("T4", one_gib=1, look=look)
    fits = {peak.configuration: peak.fits for peak in plan.peaks if peak.missing is None}
    assert fits.pop("as it is") == "yes"
    assert set(fits.values()) == {"unsure"}
