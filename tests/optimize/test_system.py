"""thread_count, openmp_wait_policy, cpu_allocator: settings of the process, seen to act in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation, Phase
from hotloop.model.sites import Sites
from hotloop.optimize import registry
from hotloop.optimize.catalogue.input.loader_workers.row import LoaderWorkers
from hotloop.optimize.catalogue.system.cpu_allocator import library as allocator_library
from hotloop.optimize.catalogue.system.cpu_allocator import row as cpu_allocator
from hotloop.optimize.catalogue.system.cpu_allocator.row import CpuAllocator
from hotloop.optimize.catalogue.system.huge_pages import row as huge_pages
from hotloop.optimize.catalogue.system.huge_pages.row import HugePages
from hotloop.optimize.catalogue.system.openmp_wait_policy.row import PASSIVE, OpenmpWaitPolicy
from hotloop.optimize.catalogue.system.thread_count import ThreadCount
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.source.draft import Editor
from hotloop.source.outcome import Edited, Refused

from .harness import loader, observation

PROGRAM = """
import json, sys
{before}
from hotloop.optimize import registry
activation = registry.get({name!r}).activation({params!r})
activation.on_torch()
{after}
print(json.dumps(activation.effect()))
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="seen through /proc and glibc")


def in_a_process(
    name: str,
    params: dict[str, Any],
    environment: dict[str, str] | None = None,
    before: str = "",
    after: str = "",
) -> tuple[bool, str]:
    """Run a program with one optimization on; return the effect that it saw."""
    if environment is None:
        environment = dict(registry.get(name).environment(params))
    script = PROGRAM.format(name=name, params=params, before=before, after=after)
    inherited = {
        key: value for key, value in os.environ.items() if key not in {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    on, evidence = json.loads(done.stdout.splitlines()[-1])
    return on, evidence


def test_the_thread_count_wins_against_the_program() -> None:
    on, evidence = in_a_process(
        "thread_count",
        {"num_threads": 3},
        before="import os; os.environ['OMP_NUM_THREADS'] = '1'",
        after="import torch; from torch import set_num_threads; set_num_threads(1); torch.set_num_threads(2)",
    )
    assert on
    assert evidence == "torch.get_num_threads() is 3; kept against 2 calls of the program"


def test_the_thread_count_is_in_the_environment_where_torchrun_looks() -> None:
    assert ThreadCount().environment({"num_threads": 2}) == {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    "line",
    [
        "torch.set_num_threads(1)",
        "set_num_threads(int(num))",
        "os.environ['OMP_NUM_THREADS'] = '1'",
        "os.environ.update(MKL_NUM_THREADS='1')",
        "os.putenv('OMP_NUM_THREADS', '1')",
    ],
)
@pytest.mark.parametrize("row", [ThreadCount(), LoaderWorkers()])
def test_a_program_that_sets_its_threads_is_not_patched_from_its_command(
    row: Optimization, line: str
) -> None:
    outcome = row.rewrite(
        Editor({"train.py": f"import os\n{line}\n".encode()}, []),
        Sites(),
        {"num_threads": 2, "num_workers": 1},
    )
    assert isinstance(outcome, Refused)
    assert outcome.reason.startswith("train.py:2 sets the number of threads")
    assert outcome.code == "torch.set_num_threads(2)"


@pytest.mark.parametrize(
    "line",
    [
        "torch.set_num_threads(2)",
        "torch.set_num_interop_threads(1)",
        "os.environ.setdefault('OMP_NUM_THREADS', '1')",
        "threads = os.environ.get('OMP_NUM_THREADS')",
    ],
)
def test_what_does_not_change_the_number_of_threads_is_no_hindrance(line: str) -> None:
    outcome = ThreadCount().rewrite(Editor({"train.py": line.encode()}, []), Sites(), {"num_threads": 2})
    assert isinstance(outcome, Edited)
    assert outcome.environment == {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}


def test_loader_workers_keep_their_single_thread() -> None:
    class Threads(Dataset[int]):  # type: ignore[misc]
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            num: int = torch.get_num_threads()
            return num

    activation = ThreadCount().activation({"num_threads": 2})
    activation.on_torch()
    assert [int(batch) for batch in DataLoader(Threads(), num_workers=1)] == [1, 1]
    assert activation.effect() == (True, "torch.get_num_threads() is 2")


def test_a_count_that_was_changed_behind_our_back_is_no_effect() -> None:
    original = torch.set_num_threads
    activation = ThreadCount().activation({"num_threads": 2})
    activation.on_torch()
    assert activation.effect() == (True, "torch.get_num_threads() is 2")
    original(1)
    assert activation.effect() == (False, "torch.get_num_threads() is 1")


def test_the_candidates_divide_the_cores() -> None:
    def counts(**facts: Any) -> list[int]:
        return [
            candidate.params["num_threads"] for candidate in ThreadCount().candidates(observation(**facts))
        ]

    assert counts(machine={"num_cores": 8}, num_threads=8) == [4, 1]
    assert counts(machine={"num_cores": 8}, num_threads=1, ranks=2) == [4, 2]
    assert counts(machine={"num_cores": 8}, num_threads=8, loaders=(loader(num_workers=2),)) == [6, 4, 1]
    assert counts(machine={"num_cores": 2}, num_threads=2, world_size=2) == [1]


def test_oversubscription_is_tried_first() -> None:
    (candidate,) = ThreadCount().candidates(observation(machine={"num_cores": 2}, num_threads=2, ranks=2))
    assert candidate.prior == 4.0
    assert candidate.max_gain is None


def test_there_may_be_no_other_count() -> None:
    with pytest.raises(DoesNotApply, match="2 processes on 2 cores"):
        ThreadCount().candidates(observation(machine={"num_cores": 2}, num_threads=1, ranks=2))


def test_threads_of_the_host_do_nothing_for_a_device_that_does_it_all() -> None:
    busy = {Phase.DATA: 0.01, Phase.FORWARD: 0.35, Phase.BACKWARD: 0.64}
    with pytest.raises(DoesNotApply, match="99% of the step is work of cuda"):
        ThreadCount().candidates(observation(busy, device="cuda"))
    assert ThreadCount().candidates(observation(device="cuda"))
    assert ThreadCount().candidates(observation(busy))


@pytest.mark.parametrize("value", [0, -2, 1.5, "2", True])
def test_thread_counts_out_of_range_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="num_threads is"):
        ThreadCount().validate({"num_threads": value})


@LINUX
@pytest.mark.slow
def test_threads_sleep_at_barriers_and_without_it_they_do_not() -> None:
    two = {"OMP_NUM_THREADS": "2"}
    passive = dict(OpenmpWaitPolicy().environment({}))
    # Beside others a thread may come to a barrier so late that nobody has to sleep there.
    tries = (in_a_process("openmp_wait_policy", {}, {**passive, **two}) for _ in range(4))
    said = next((evidence for on, evidence in tries if on), "")
    assert "times a parallel region" in said
    # The variables arrive, but after the runtime has read them: the threads spin on.
    late = f"import torch, os; torch.ones(10**6).mul(2); os.environ.update({passive!r})"
    on, evidence = in_a_process("openmp_wait_policy", {}, two, before=late)
    assert not on, evidence
    assert "times a parallel region" in evidence


def test_variables_that_did_not_arrive_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PASSIVE:
        monkeypatch.delenv(name, raising=False)
    on, evidence = OpenmpWaitPolicy().activation({}).effect()
    assert not on
    assert evidence == "OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME did not arrive in the environment"


def test_one_thread_has_no_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PASSIVE.items():
        monkeypatch.setenv(name, value)
    torch.set_num_threads(1)
    assert not OpenmpWaitPolicy().activation({}).effect()[0]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"num_threads": 1}, "one thread"),
        ({"environment": {"OMP_WAIT_POLICY": "passive"}}, "set already"),
    ],
)
def test_the_wait_policy_does_not_apply(facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        OpenmpWaitPolicy().candidates(observation(**facts))


def test_the_wait_policy_is_tried_early_on_crowded_cores() -> None:
    (quiet,) = OpenmpWaitPolicy().candidates(observation())
    (crowded,) = OpenmpWaitPolicy().candidates(observation(loaders=(loader(num_workers=2),)))
    assert quiet.prior < crowded.prior


@LINUX
def test_glibc_keeps_large_buffers_only_with_its_switches() -> None:
    params = {"allocator": "glibc"}
    assert in_a_process("cpu_allocator", params) == (True, "a buffer of 64 MiB came from the heap")
    without = in_a_process("cpu_allocator", params, environment={})
    assert without == (False, "a buffer of 64 MiB was mapped from the system")


@LINUX
def test_a_library_that_is_not_loaded_is_no_effect() -> None:
    assert CpuAllocator().activation({"allocator": "jemalloc"}).effect() == (
        False,
        "libjemalloc is not loaded",
    )


@LINUX
@pytest.mark.parametrize("allocator", ["jemalloc", "tcmalloc", "mimalloc"])
def test_an_installed_library_serves_malloc(allocator: str) -> None:
    if allocator_library.find_library(allocator) is None:
        pytest.skip(f"lib{allocator} is not installed here")
    on, evidence = in_a_process("cpu_allocator", {"allocator": allocator})
    assert on
    assert f"lib{allocator}" in evidence


@LINUX
def test_a_preloaded_library_is_proven_by_its_malloc(tmp_path: Path) -> None:
    """A stand-in that passes on to the C library: that it is mapped is no proof."""
    source = tmp_path / "jemalloc.c"
    source.write_text(
        "extern void *__libc_malloc(unsigned long); void *malloc(unsigned long n) {return __libc_malloc(n);}"
    )
    empty = tmp_path / "empty.c"
    empty.write_text("int nothing;")
    for code, on in ((source, True), (empty, False)):
        library = tmp_path / "libjemalloc.so.2"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(code)], check=True)
        seen, evidence = in_a_process(
            "cpu_allocator", {"allocator": "jemalloc"}, {"LD_PRELOAD": str(library)}
        )
        assert seen is on, evidence


def test_the_library_is_found_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator_library, "FOLDERS", ())
    assert allocator_library.find_library("jemalloc") is None
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    (tmp_path / "libjemalloc.so.2").touch()
    assert CpuAllocator().environment({"allocator": "jemalloc"}) == {
        "LD_PRELOAD": str(tmp_path / "libjemalloc.so.2")
    }


def test_a_plan_from_another_machine_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_allocator, "find_library", lambda name: None)
    with pytest.raises(HotloopError, match="libtcmalloc was not found"):
        CpuAllocator().environment({"allocator": "tcmalloc"})


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"device": "cuda"}, "not malloc's"),
        ({"environment": {"MALLOC_MMAP_MAX_": "0"}}, "its own allocator"),
        ({"environment": {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}}, "its own allocator"),
    ],
)
def test_the_allocator_does_not_apply(facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        CpuAllocator().candidates(observation(**facts))


@LINUX
def test_what_malloc_s_switches_can_save_is_the_time_of_page_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small GPT faulted 10 pages a step of 41 ms in, and its sessions spent a third of their time on allocators."""
    monkeypatch.setattr(cpu_allocator, "find_library", lambda name: None)
    few, many = (faulting(num) for num in (1_000, 100_000))
    with pytest.raises(DoesNotApply, match="page faults take less than 1% of the step"):
        CpuAllocator().candidates(few)
    assert CpuAllocator().candidates(many)[0].prior == pytest.approx(1 / (1 - 0.2))
    monkeypatch.setattr(cpu_allocator, "find_library", lambda name: f"lib{name}.so")
    found = [one.params["allocator"] for one in CpuAllocator().candidates(few)]
    assert found == ["jemalloc", "tcmalloc", "mimalloc"], "they hand small buffers out faster"
    assert CpuAllocator().candidates(observation())[0].prior == 1.15  # they were not counted


def faulting(num: int) -> Observation:
    """A program whose step of 1 s faults so many pages in."""
    seen = observation()
    ranks = tuple(msgspec.structs.replace(rank, page_faults=num) for rank in seen.ranks)
    return msgspec.structs.replace(seen, ranks=ranks)


def test_unknown_allocators_are_refused() -> None:
    with pytest.raises(
        ValueError, match="allocator is 'hoard'; allowed: glibc, jemalloc, tcmalloc, mimalloc"
    ):
        CpuAllocator().validate({"allocator": "hoard"})


@LINUX
@pytest.mark.skipif(
    huge_pages._chosen() != "madvise", reason="this kernel does not wait to be asked for huge pages"
)
@pytest.mark.slow
def test_large_tensors_are_in_huge_pages() -> None:
    assert HugePages().candidates(observation())
    on, evidence = in_a_process("huge_pages", {})
    assert on
    assert "are in huge pages" in evidence
    assert in_a_process("huge_pages", {}, {})[0] is False


@pytest.mark.parametrize(
    ("setting", "facts", "reason"),
    [
        ("always madvise [never]", {}, "the kernel's setting is never"),
        ("[always] madvise never", {}, "the kernel's setting is always"),
        ("always [madvise] never", {"device": "cuda"}, "the model is on cuda"),
        (
            "always [madvise] never",
            {"environment": {"THP_MEM_ALLOC_ENABLE": "1"}},
            "sets THP_MEM_ALLOC_ENABLE itself",
        ),
    ],
)
def test_huge_pages_do_not_apply(
    setting: str, facts: dict[str, Any], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "enabled").write_text(setting)
    monkeypatch.setattr(huge_pages, "SETTING", tmp_path / "enabled")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(DoesNotApply, match=reason):
        HugePages().candidates(observation(**facts))
