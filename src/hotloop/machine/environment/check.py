"""What would spoil a measurement on this machine now, and how to fix it.

Each check is a function of what was seen; a check whose value the system does not tell is UNKNOWN, never OK.
"""

from collections.abc import Callable, Sequence

from hotloop.machine.environment.snapshot import MachineSnapshot
from hotloop.model.machine import CheckStatus, EnvironmentCheck
from hotloop.model.quantities import byte_size
from hotloop.stats.quietness import is_busy

_MAX_STEAL_RATIO = 0.035
"""Identical processes were seen to differ by 3.5%: more steal than that is visible beside it."""
_MAX_DRIFT_RATIO = 500e-6
"""The fastest that NTP slews a clock (RFC 5905): beyond it the clock was stepped, or is broken."""
_SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})
"""Linux clock sources that are read through a device: a microsecond a call instead of 20 ns."""
_MIN_FREE_BYTES = 2 << 30
_MIN_FREE_RATIO = 0.05
"""ext4 keeps 5% for root; file systems fuller than that fragment. A trial needs room for its checkpoints."""

Check = Callable[[MachineSnapshot], EnvironmentCheck]


def check_environment(seen: MachineSnapshot) -> tuple[EnvironmentCheck, ...]:
    """Return every check, in the order in which to read them."""
    return tuple(check(seen) for check in CHECKS)


def _governor(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "a governor that follows the load changes the clock in the middle of a measurement"
    governor = seen.cores.governor
    if governor is None:
        shown = "not shown" + (" (virtual machine: the host decides)" if seen.cores.hypervisor else "")
        return _check("frequency-governor", CheckStatus.UNKNOWN, shown, why)
    status = CheckStatus.OK if governor == "performance" else CheckStatus.WARNING
    return _check("frequency-governor", status, governor, why, "sudo cpupower frequency-set -g performance")


def _background_load(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "a busy neighbour does not cost its share: two-thread programs were seen 5 to 25 times slower"
    if seen.foreign_ratio is None:
        return _check("background-load", CheckStatus.UNKNOWN, "not told by this system", why)
    status = CheckStatus.WARNING if is_busy(seen.foreign_ratio) else CheckStatus.OK
    wait = "wait until it is over, or ask whose it is"
    if seen.busiest:
        pid = seen.busiest[0][1]
        wait += f"; if it is yours: renice -n 19 -p {pid}, or other cores for it: taskset -acp CORES {pid}"
    return _check("background-load", status, _loads(seen.foreign_ratio, seen.busiest), why, wait)


def _loads(total: float, busiest: Sequence[tuple[str, int, float]]) -> str:
    """The load and its parts, in whole percents that add up.

    The rest is of processes that are not named, or that ended within the look, and of interrupts.
    """
    left = round(100 * total)
    shown, parts = f"{left}% of the usable cores", []
    for name, pid, share in busiest:
        percents = min(left, round(100 * share))
        if percents:
            parts.append(f"{name} (pid {pid}) {percents}%")
            left -= percents
    rest = [f"others {left}%"] if parts and left else []
    return f"{shown}: {', '.join(parts + rest)}" if parts else shown


def _steal(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "the hypervisor gives this machine's cores to others, and no process here shows it"
    if seen.steal_ratio is None:
        return _check("steal", CheckStatus.UNKNOWN, "not told by this system", why)
    status = CheckStatus.WARNING if seen.steal_ratio > _MAX_STEAL_RATIO else CheckStatus.OK
    fix = "measure at another time, or on a machine with dedicated cores"
    return _check("steal", status, f"{seen.steal_ratio:.1%} of the usable cores", why, fix)


def _usable_cores(seen: MachineSnapshot) -> EnvironmentCheck:
    why = (
        "libraries start a thread for every core they see; where fewer may be used, the threads wait in turn"
    )
    cores, quota = seen.cores, seen.cores.quota_cores
    fix = f"export OMP_NUM_THREADS={cores.num_usable}, or raise the container's limit (docker run --cpus)"
    if quota is not None and quota < cores.num_logical:
        shown = f"{quota:g} of {cores.num_logical} cores by cgroup quota"
        if seen.throttled_s:
            shown += f", held back {seen.throttled_s:.2f} s within {seen.wall_s:.1f} s"
        return _check("usable-cores", CheckStatus.WARNING, shown, why, fix)
    if cores.num_usable < cores.num_logical:
        shown = f"{cores.num_usable} of {cores.num_logical} cores by affinity"
        return _check(
            "usable-cores", CheckStatus.INFO, shown, why, f"taskset -c 0-{cores.num_logical - 1} COMMAND"
        )
    return _check("usable-cores", CheckStatus.OK, f"all {cores.num_logical}", why)


def _smt(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "two threads on one core share its arithmetic units: threads beyond the cores slow each other down"
    cores = seen.cores
    if cores.num_physical is None or cores.num_physical == 0:
        return _check("hyper-threading", CheckStatus.UNKNOWN, "cores are not told", why)
    threads = cores.num_logical / cores.num_physical
    shown = f"{cores.num_logical} threads on {cores.num_physical} cores"
    if threads <= 1:
        return _check("hyper-threading", CheckStatus.OK, shown, why)
    fix = f"let hotloop tune try thread_count; OMP_NUM_THREADS={cores.num_physical} is one thread a core"
    return _check("hyper-threading", CheckStatus.INFO, shown, why, fix)


def _heat(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "a hot processor lowers its clock, and the second half of a comparison looks slower"
    if seen.thermal_events is None and seen.temperature_c is None:
        return _check("cpu-heat", CheckStatus.UNKNOWN, "no sensor is shown", why)
    shown = "" if seen.temperature_c is None else f"{seen.temperature_c:.0f} C"
    limit = seen.temperature_limit_c
    is_hot = limit is not None and seen.temperature_c is not None and seen.temperature_c >= limit
    if seen.thermal_events:
        shown = f"{shown} slowed down {seen.thermal_events} times within {seen.wall_s:.1f} s".strip()
    status = CheckStatus.WARNING if is_hot or seen.thermal_events else CheckStatus.OK
    fix = "let it cool down, clean the fans, or set a fixed lower clock: cpupower frequency-set -u 2GHz"
    return _check("cpu-heat", status, shown or "no slow-downs", why, fix)


def _swap(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "a page that has to come back from the disk costs about a thousand times what it costs in memory"
    shown = f"{byte_size(seen.swap_used_bytes)} in use"
    if seen.swap_bytes_per_s > 0:
        shown += f", {byte_size(seen.swap_bytes_per_s)}/s moving"
        fix = "end programs or lower the batch size until it fits; ps aux --sort=-rss shows the large ones"
        return _check("swap", CheckStatus.WARNING, shown, why, fix)
    if seen.swap_used_bytes > 0:
        return _check("swap", CheckStatus.INFO, shown, why, "sudo swapoff -a && sudo swapon -a")
    return _check("swap", CheckStatus.OK, "none in use", why)


def _disk_space(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "trials keep logs and the program's checkpoints in scratch; a full disk ends them"
    shown = f"{byte_size(seen.disk_free_bytes)} free of {byte_size(seen.disk_bytes)} at {seen.folder}"
    enough = max(_MIN_FREE_BYTES, _MIN_FREE_RATIO * seen.disk_bytes)
    status = CheckStatus.OK if seen.disk_free_bytes >= enough else CheckStatus.WARNING
    return _check(
        "disk-space", status, shown, why, "free some space: du -xh --max-depth=2 . | sort -h | tail"
    )


def _threads(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "these change how many threads a program runs and how they wait: a plan holds only with them"
    if not seen.variables:
        return _check("thread-variables", CheckStatus.OK, "none set", why)
    shown = " ".join(f"{name}={value}" for name, value in seen.variables.items())
    wanted = seen.variables.get("OMP_NUM_THREADS", "")
    too_many = wanted.isdigit() and int(wanted) > seen.cores.num_usable
    status = CheckStatus.WARNING if too_many else CheckStatus.INFO
    return _check("thread-variables", status, shown, why, f"unset {' '.join(seen.variables)}")


def _clock(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "times are differences of this clock"
    shown = seen.clock_source or "source not told"
    drift = seen.clock_drift_ratio
    if abs(drift) > _MAX_DRIFT_RATIO:
        shown += f", wall clock {drift * 1e6:+.0f} ppm against the monotonic one"
        return _check("clock", CheckStatus.WARNING, shown, why, "chronyc makestep, then measure again")
    if seen.clock_source in _SLOW_CLOCKS:
        fix = "boot with clocksource=tsc, if dmesg does not call the TSC unstable"
        return _check("clock", CheckStatus.WARNING, f"{shown} (slow to read)", why, fix)
    return _check("clock", CheckStatus.OK, shown, why)


def _gpu_processes(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "another process on the GPU takes turns with yours, and takes its memory"
    if not seen.gpus:
        return _no_gpu("gpu-processes", seen, why)
    foreign = [f"gpu {index}: {num}" for index, num in seen.foreign_gpu_processes.items() if num]
    if not seen.foreign_gpu_processes:
        return _check("gpu-processes", CheckStatus.UNKNOWN, "the driver does not tell", why)
    status = CheckStatus.WARNING if foreign else CheckStatus.OK
    return _check(
        "gpu-processes",
        status,
        ", ".join(foreign) or "none",
        why,
        "nvidia-smi (or amd-smi process) names them",
    )


def _gpu_throttling(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "a GPU that is hot or at its power limit runs below its clock, more so the longer it works"
    if not seen.gpus:
        return _no_gpu("gpu-throttling", seen, why)
    told = {index: sample.throttle_reasons for index, sample in seen.gpus.items()}
    if all(reasons is None for reasons in told.values()):
        return _check("gpu-throttling", CheckStatus.UNKNOWN, "the driver does not tell", why)
    held = [f"gpu {index}: {', '.join(reasons)}" for index, reasons in told.items() if reasons]
    fix = "let it cool down, or fix the clock: sudo nvidia-smi --lock-gpu-clocks=1200"
    status = CheckStatus.WARNING if held else CheckStatus.OK
    return _check("gpu-throttling", status, "; ".join(held) or "none", why, fix)


def _gpu_persistence(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "without it the driver is unloaded between programs: each start waits for it, at clocks that have to rise"
    if not seen.gpus:
        return _no_gpu("gpu-persistence", seen, why)
    told = {index: sample.persistent for index, sample in seen.gpus.items()}
    if all(mode is None for mode in told.values()):
        return _check("gpu-persistence", CheckStatus.UNKNOWN, "the driver does not tell", why)
    off = [f"gpu {index}" for index, mode in told.items() if mode is False]
    status = CheckStatus.INFO if off else CheckStatus.OK
    shown = f"off: {', '.join(off)}" if off else "on"
    return _check("gpu-persistence", status, shown, why, "sudo nvidia-smi -pm 1")


def _same_device(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "two runs are comparable on the same device only: even devices of one kind differ by percents"
    shown = " ".join(f"{name}={value}" for name, value in seen.device_variables.items())
    if seen.num_gpus <= 1 or seen.device_variables:
        return _check("same-device", CheckStatus.OK, shown or f"{seen.num_gpus} accelerators", why)
    fix = "name the device: export CUDA_VISIBLE_DEVICES=0 (ROCm: HIP_VISIBLE_DEVICES)"
    return _check("same-device", CheckStatus.INFO, f"{seen.num_gpus} accelerators, none chosen", why, fix)


def _seeds(seen: MachineSnapshot) -> EnvironmentCheck:
    why = "without fixed seeds two runs see other data and other weights, and their losses cannot be compared"
    if seen.hash_seed is not None and seen.hash_seed != "random":
        return _check("seeds", CheckStatus.OK, f"PYTHONHASHSEED={seen.hash_seed}", why)
    fix = "export PYTHONHASHSEED=0, and torch.manual_seed(0) in the program"
    return _check("seeds", CheckStatus.INFO, "PYTHONHASHSEED is not set: sets change their order", why, fix)


CHECKS: tuple[Check, ...] = (
    _background_load,
    _steal,
    _governor,
    _heat,
    _usable_cores,
    _smt,
    _threads,
    _swap,
    _disk_space,
    _clock,
    _gpu_processes,
    _gpu_throttling,
    _gpu_persistence,
    _same_device,
    _seeds,
)


def _no_gpu(name: str, seen: MachineSnapshot, why: str) -> EnvironmentCheck:
    if seen.num_gpus:
        fix = "pip install nvidia-ml-py (ROCm brings amdsmi along)"
        return EnvironmentCheck(
            name=name, status=CheckStatus.UNKNOWN, seen="no driver library is installed", why=why, fix=fix
        )
    return _check(name, CheckStatus.OK, "no accelerator", why)


def _check(name: str, status: CheckStatus, seen: str, why: str, fix: str = "") -> EnvironmentCheck:
    """A fix is kept only where there is something to fix."""
    needed = status in (CheckStatus.WARNING, CheckStatus.INFO)
    return EnvironmentCheck(name=name, status=status, seen=seen, why=why, fix=fix if needed else "")
