"""Run many small programs under the real probe, each in a fork of one process that has imported torch."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hotloop.model.sites import SiteKind, Sites
from hotloop.observe.decode.processes import program_sites, read_processes

STEPS = "steps.json"


def observe_all(programs: Mapping[str, str | bytes], folder: Path) -> dict[str, Sites]:
    """Return the sites of each program, by its name; each is written to `<folder>/<name>/train.py`.

    Raises:
        AssertionError: a program failed; the message holds its output.
    """
    for name, text in programs.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        raw = text if isinstance(text, bytes) else text.encode()
        (folder / name / "train.py").write_bytes(raw)
    _run_all(folder, list(programs), watched=True)
    return {name: _sites(folder / name) for name in programs}


def run_all(programs: Mapping[str, bytes], folder: Path) -> dict[str, list[float]]:
    """Run each program as it is, without the probe; return the sizes of its parameters after each step, and of answers.

    All begin with the same random numbers, so two programs that learn the same give the same sizes.

    Raises:
        AssertionError: a program failed; the message holds its output.
    """
    for name, text in programs.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "train.py").write_bytes(text)
    _run_all(folder, list(programs), watched=False)
    return {name: json.loads((folder / name / STEPS).read_text()) for name in programs}


def _sites(folder: Path) -> Sites:
    facts = next(iter(read_processes(folder / "probe").values()))
    assert not facts["notes"], facts["notes"]
    sites = program_sites(facts, folder)
    idle = {slot for slot, loader in enumerate(facts["loaders"]) if not loader["num_iterators"]}
    marked = (
        msgspec.structs.replace(site, in_step=not (site.kind is SiteKind.LOADER and site.slot in idle))
        for site in sites.sites
    )
    return msgspec.structs.replace(sites, sites=tuple(marked))


def _run_all(folder: Path, names: list[str], *, watched: bool) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as orders:
        json.dump({"folder": str(folder), "names": names, "watched": watched}, orders)
        orders.flush()
        command = [sys.executable, "-m", "tests.patch.observing", orders.name]
        # What is compiled is torch's business; that the line is right Python is ours.
        environment = {**os.environ, "TORCHDYNAMO_DISABLE": "1", "OMP_NUM_THREADS": "1"}
        root = Path(__file__).parents[2]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def _main(orders: str) -> int:
    """Fork once for each program; torch has been imported, no thread was started."""
    import torch
    import torchao.float8
    import torchao.prototype.quantized_training  # noqa: F401

    torch.set_num_threads(1)
    torch.manual_seed(0)
    # What torch imports at the first step would be imported again in each fork.
    weight = torch.zeros(1, requires_grad=True)
    torch.optim.SGD([weight]).step()
    told = json.loads(Path(orders).read_text())
    failed = 0
    for name in told["names"]:
        child = os.fork()
        if not child:
            _child(Path(told["folder"]) / name, watched=told["watched"])
        _, status = os.waitpid(child, 0)
        if status:
            print(f"{name}: exit {os.waitstatus_to_exitcode(status)}", flush=True)
            failed += 1
    return failed


def _child(folder: Path, *, watched: bool) -> None:
    import traceback

    os.chdir(folder)
    sys.argv, sys.path[0] = ["train.py"], str(folder)
    code = 0
    probe = _probe(folder) if watched else None
    sizes = _sizes_of_parameters()
    try:
        runpy.run_path(str(folder / "train.py"), run_name="__main__")
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    if probe is not None:
        probe.write_facts()  # type: ignore[attr-defined]
    (folder / STEPS).write_text(json.dumps(sizes))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _sizes_of_parameters() -> list[float]:
    """Return a list that the norm of all parameters is added to at each step of an optimizer, and that of answers."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    sizes: list[float] = []

    def stepped(optimizer: torch.optim.Optimizer, *_: object) -> None:
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        sizes.append(torch.nn.utils.get_total_norm(parameters).item())

    register_optimizer_step_post_hook(stepped)
    _and_of_answers(sizes)
    return sizes


def _and_of_answers(sizes: list[float]) -> None:
    """Keep the size of what a whole model gives in evaluation, too: some programs do nothing else."""
    import torch
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

    called: list[object] = []

    def begins(module: object, args: object) -> None:
        called.append(module)

    def ends(module: object, args: object, output: object) -> None:
        called.pop()
        evaluates = not torch.is_grad_enabled() or not getattr(module, "training", True)
        if not called and evaluates and isinstance(output, torch.Tensor):
            sizes.append(output.double().norm().item())

    register_module_forward_pre_hook(begins)
    register_module_forward_hook(ends)


def _probe(folder: Path) -> object:
    from hotloop.probe.probe import Probe
    from hotloop.probe.process.config import ProbeConfig
    from hotloop.probe.setup.install import _install_points

    (folder / "probe").mkdir(exist_ok=True)
    probe = Probe(ProbeConfig(folder=str(folder / "probe"), sites=True))
    _install_points(probe)
    return probe


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
