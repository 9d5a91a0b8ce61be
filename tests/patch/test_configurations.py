"""Options in configuration files and in other modules: their default changes, not the code that reads them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hotloop.model.safety import Safety
from hotloop.model.tuning import PlanStep
from hotloop.patch.program_files import editable
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.source.outcome import AlreadySo

from .test_properties import sites_of

STEP = PlanStep(name="loader_workers", params={"num_workers": 2}, ratio=1, low=1, high=1)
YAML = """\
# of the experiment
name: first
data:
  root: "./data"   # here
  num_workers: 0   # in this process
  shuffle: true
evaluation: {num_workers: 3}
notes: |
  num_workers: 7
"""
LOADER = "from torch.utils.data import DataLoader\nimport yaml\n"
CASES = {
    "yaml": (
        {"conf.yaml": YAML},
        LOADER
        + "cfg = yaml.safe_load(open('conf.yaml'))\nloader = DataLoader([1], num_workers=cfg['data']['num_workers'])\n",
        (),
        ("conf.yaml", "  num_workers: 0   #", "  num_workers: 2   #"),
    ),
    "a yaml file that the command line names": (
        {"conf/small.yml": YAML.replace("\n", "\r\n")},
        LOADER + "cfg = load(sys.argv[1])\nloader = DataLoader([1], num_workers=cfg.data.num_workers)\n",
        ("train.py", "--config=conf/small.yml"),
        ("conf/small.yml", "  num_workers: 0   #", "  num_workers: 2   #"),
    ),
    "a section given as keywords": (
        {"conf.yaml": YAML.replace("root", "batch_size")},
        LOADER + "cfg = yaml.safe_load(open('conf.yaml'))\nloader = DataLoader([1], **cfg['data'])\n",
        (),
        ("conf.yaml", "  num_workers: 0   #", "  num_workers: 2   #"),
    ),
    "json": (
        {"conf.json": '{\n  "data": {\n    "num_workers": 0,\n    "pin": false\n  }\n}\n'},
        LOADER
        + "cfg = json.load(open('conf.json'))\nloader = DataLoader([1], num_workers=cfg['data']['num_workers'])\n",
        (),
        ("conf.json", '"num_workers": 0,', '"num_workers": 2,'),
    ),
    "hydra with groups": (
        {
            "conf/config.yaml": "defaults:\n  - data: small\n  - _self_\nseed: 1\n",
            "conf/data/small.yaml": "num_workers: 0\n",
            "conf/data/large.yaml": "num_workers: 8\n",
        },
        LOADER + "import hydra\n@hydra.main(version_base=None, config_path='conf', config_name='config')\n"
        "def main(cfg):\n    return DataLoader([1], num_workers=cfg.data.num_workers)\n",
        (),
        ("conf/data/small.yaml", "num_workers: 0", "num_workers: 2"),
    ),
    "a dataclass in a module of the program": (
        {"settings/__init__.py": "", "settings/loading.py": "class Loading:\n    num_workers: int = 0\n"},
        LOADER + "from settings.loading import Loading\ncfg = Loading()\n"
        "loader = DataLoader([1], num_workers=cfg.num_workers)\n",
        (),
        ("settings/loading.py", "num_workers: int = 0", "num_workers: int = 2"),
    ),
}


def patched(folder: Path, files: dict[str, str], text: str, command: tuple[str, ...]) -> Patch:
    for path, content in {**files, "train.py": text}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode())
    return rewrite_plan([STEP], sites_of(text), editable(sites_of(text), folder, command))


@pytest.mark.parametrize("name", CASES)
def test_the_one_setting_changes_and_nothing_else(name: str, tmp_path: Path) -> None:
    files, text, command, (path, before, after) = CASES[name]
    patch = patched(tmp_path, files, text, command)
    assert patch.changed == (path,), patch.outcomes
    assert patch.after[path].decode() == files[path].replace(before, after, 1)
    twice = rewrite_plan([STEP], patch.sites, patch.after)
    assert isinstance(twice.outcomes[0].outcome, AlreadySo)
    assert twice.changed == ()


def test_hydra_s_override_of_the_setting_changes_with_it(tmp_path: Path) -> None:
    files, text, _, _ = CASES["hydra with groups"]
    patch = patched(tmp_path, files, text, ("train.py", "data.num_workers=0"))
    assert patch.started_as(("train.py", "data.num_workers=0")) == ("train.py", "data.num_workers=2")
    patch = patched(tmp_path, files, text, ("train.py", "data=large"))
    assert patch.changed == ("conf/data/large.yaml",)


@pytest.mark.parametrize(
    ("yaml", "why"),
    [
        (YAML + "other:\n  data:\n    num_workers: 0\n", "two settings may be meant"),
        ("data: {num_workers: 0}\n", "it is not on a line of its own"),
        ("data:\n  num_workers: &same 0\n", "others refer to it"),
    ],
)
def test_where_no_one_setting_can_be_told_the_code_is_changed_when_asked_for(
    yaml: str, why: str, tmp_path: Path
) -> None:
    _, text, command, _ = CASES["yaml"]
    patch = patched(tmp_path, {"conf.yaml": yaml}, text, command)
    assert patch.changed == (), why
    assert patch.outcomes[0].is_held_back
    unsafe = rewrite_plan([STEP], patch.sites, patch.before, Safety.UNSAFE)
    assert unsafe.changed == ("train.py",)


def test_files_outside_of_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "conf.yaml").write_text(YAML)
    text = LOADER + "cfg = open('../conf.yaml')\nloader = DataLoader([1], num_workers=cfg['num_workers'])\n"
    assert set(patched(tmp_path / "in", {}, text, ("--config", str(tmp_path / "conf.yaml"))).before) == {
        "train.py"
    }


def test_sources_are_those_that_a_program_was_seen_to_run(tmp_path: Path) -> None:
    sites = msgspec.structs.replace(sites_of("import os\n"), sources={})
    assert editable(sites, tmp_path) == {}
