"""Inside the user's program nothing is imported but the standard library, torch and modules of hotloop of that kind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.registry import built_in
from hotloop.probe.activation.order import made_to_order

from ..optimize.test_catalogue import OBSERVATIONS
from .inside import SOURCES, imports, modules_inside

ROWS = [cls for family in built_in().values() for cls in family]
ASKED_FOR = {
    # What the user's program has to have for that very thing: the optimization, the decoder, the metrics.
    "hotloop.optimize.catalogue.compute.liger_kernels.activation": {"liger_kernel", "transformers"},
    "hotloop.optimize.catalogue.input.device_augmentation.activation": {"kornia"},
    "hotloop.optimize.catalogue.input.device_augmentation.batch_transforms": {"kornia"},
    "hotloop.optimize.catalogue.input.faster_decode.activation": {"PIL", "numpy"},
    "hotloop.optimize.catalogue.input.faster_decode.decoders": {"simplejpeg", "torchvision", "turbojpeg"},
    "hotloop.optimize.catalogue.memory.optimizer_memory.activation": {"torchao"},
    "hotloop.optimize.catalogue.precision.float8_training.activation": {"torchao"},
    "hotloop.optimize.catalogue.precision.int8_training.activation": {"torchao"},
    "hotloop.probe.live.otlp": {"opentelemetry"},
    "hotloop.probe.live.prometheus": {"prometheus_client"},
}


IMPORT_ALL = """
import importlib, json, sys, types

class Any(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Any(name, (), {})

class Torch(types.ModuleType):
    __path__ = []
    __file__ = "torch/__init__.py"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Any(name, (), {})

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Torch(spec.name)

    def exec_module(self, module):
        pass

sys.meta_path.append(Finder())
sys.path.append(sys.argv[1])
for name in json.load(sys.stdin):
    importlib.import_module(name)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"msgspec", "numpy", "psutil", "click", "libcst"}))
"""
"""Imports modules, with something in the place of torch that has every name."""


def _plans() -> list[tuple[type, dict[str, object]]]:
    """Every optimization with the parameters of its candidates, or with none where it has none here."""
    found = []
    for cls in ROWS:
        params: list[dict[str, object]] = []
        for seen in OBSERVATIONS:
            try:
                params += [candidate.params for candidate in cls().candidates(seen)]
            except DoesNotApply:
                continue
        found += [(cls, one) for one in params]
    return found


def test_modules_inside_the_program_import_the_standard_library_and_torch_alone() -> None:
    allowed = sys.stdlib_module_names | {"torch", "hotloop"}
    wrong = [
        f"{file.relative_to(SOURCES.parent)}:{each.line} imports {each.of}"
        for name, file in modules_inside().items()
        for each in imports(file)
        if (first := each.of.partition(".")[0]) not in allowed | ASKED_FOR.get(name, set())
        or (first == "torch" and each.at_once and name.startswith("hotloop.probe.setup"))
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_inside_the_program_asks_torch_for_numpy() -> None:
    """`tensor.numpy()` and `torch.from_numpy` raise where NumPy is not installed."""
    asks = re.compile(r"\.numpy\(\)|\bfrom_numpy\(")
    wrong = [
        f"{file.name}:{number}"
        for name, file in modules_inside().items()
        if name not in ASKED_FOR
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if asks.search(line) and '"' not in line
    ]
    assert not wrong, "\n".join(wrong)


def _pythons() -> list[str]:
    """Pythons of this machine that hotloop's probe is for, one of each version."""
    homes = [Path(sys.base_prefix).parent, Path("/usr/bin"), Path("/usr/local/bin")]
    found: dict[str, str] = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for minor in range(10, 15):
        name = f"python3.{minor}"
        places = [str(one) for home in homes for one in (home / name, *home.glob(f"*/bin/{name}"))]
        there = next((one for one in (*places, shutil.which(name)) if one and Path(one).is_file()), None)
        if there is not None:
            found.setdefault(f"3.{minor}", there)
    return list(found.values())


@pytest.mark.parametrize("python", _pythons(), ids=os.path.basename)
def test_they_are_imported_by_every_python_without_any_package(python: str) -> None:
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", IMPORT_ALL, str(SOURCES.parent)],
        # The virtual GPU is torch's own machinery: with a stand-in for torch there is none.
        input=json.dumps([name for name in modules_inside() if ".virtual_gpu" not in name]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr[-2000:]


def test_every_row_is_ordered_by_the_call_that_makes_what_acts() -> None:
    """Not by its own class, whose module imports what the program's environment does not have."""
    plans = _plans()
    assert {cls.name for cls, _ in plans} >= {"dataset_in_memory", "autocast_bf16", "thread_count"}
    for cls, params in plans:
        optimization = cls()
        for knob in (False, True):
            made = optimization.knob(params) if knob else optimization.activation(params)
            order = json.loads(json.dumps(optimization.order(params, knob=knob)))
            assert "make" in order, f"{cls.__name__}({params}) is made by its own class"
            again = made_to_order(order)
            assert type(again) is type(made)
            if made is not None and again is not None:
                assert again.name == cls.name
                assert vars(again).keys() >= vars(made).keys()


def test_what_acts_is_made_where_hotloop_has_nothing_but_itself() -> None:
    orders = [cls().order(params) for cls, params in _plans()]
    code = (
        "import json, sys; sys.path.append(sys.argv[1])\n"
        "from hotloop.probe.activation.order import made_to_order\n"
        "for order in json.load(sys.stdin): made_to_order(order)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code, str(SOURCES.parent)],
        input=json.dumps(orders),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


_WITHOUT_TORCH = """
import importlib, importlib.abc, pkgutil, sys
class NoTorch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)
sys.meta_path.insert(0, NoTorch())
import hotloop.cli
for module in pkgutil.iter_modules(hotloop.cli.__path__, "hotloop.cli."):
    importlib.import_module(module.name)
"""


def test_no_command_needs_torch_beside_hotloop() -> None:
    """It may be in an environment of its own, and the program's torch in the program's alone."""
    done = subprocess.run([sys.executable, "-c", _WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
