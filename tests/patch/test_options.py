"""The default that an expression takes its value from: what only has its name is left alone."""

from __future__ import annotations

import pytest

from hotloop.model.safety import Safety
from hotloop.model.tuning import PlanStep
from hotloop.patch.rewrite_plan import rewrite_plan

from .test_properties import sites_of

STEP = PlanStep(name="loader_workers", params={"num_workers": 2}, ratio=1, low=1, high=1)
HEAD = (
    "import argparse\nfrom dataclasses import dataclass, replace\nfrom torch.utils.data import DataLoader\n"
)
PARSER = "parser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=0)\n"
CLASS = "@dataclass\nclass Config:\n    seed: int = 1\n    workers: int = 0\n"
LOADER = "loader = DataLoader([1], num_workers=cfg.workers)\n"
IN_FUNCTION = "def main(cfg):\n    return DataLoader([1], num_workers=cfg.workers)\n"

REACHES = {
    "parsed": PARSER + "cfg = parser.parse_args()\n" + LOADER,
    "parsed in part": PARSER + "cfg, rest = parser.parse_known_args()\n" + LOADER,
    "handed on": PARSER + IN_FUNCTION + "main(parser.parse_args())\n",
    "made by a function": PARSER + "def read():\n    return parser.parse_args()\ncfg = read()\n" + LOADER,
    "of an object": PARSER + "self.cfg = cfg = parser.parse_args()\n" + LOADER.replace("cfg", "self.cfg"),
    "through a name": PARSER
    + "cfg = parser.parse_args()\nnum = cfg.workers\n"
    + LOADER.replace("cfg.workers", "num"),
    "a dataclass": CLASS + "cfg = Config(seed=2)\n" + LOADER,
    "a dataclass by a library": CLASS + "cfg = tyro.cli(Config)\n" + LOADER,
    "a class that inherits it": CLASS + "class Own(Config):\n    pass\ncfg = Own()\n" + LOADER,
    "the class itself": "class cfg:\n    workers = 0\n" + LOADER,
    "its own attribute": "class Run:\n    workers = 0\n    def make(self):\n"
    "        return DataLoader([1], num_workers=self.workers)\nRun().make()\n",
    "a dictionary": "cfg = {'workers': 0}\n" + LOADER.replace("cfg.workers", "cfg['workers']"),
    "a wrapped dictionary": "DEFAULTS = {'workers': 0}\ncfg = EasyDict(DEFAULTS)\n" + LOADER,
    "through a function": PARSER + "def make(size, workers=1):\n"
    "    return DataLoader([1], num_workers=workers)\ncfg = parser.parse_args()\nmake(4, cfg.workers)\n",
    "through an object": PARSER + "class Run:\n    def __init__(self, num):\n        self.num = num\n"
    "    def make(self):\n        return DataLoader([1], num_workers=self.num)\n"
    "cfg = parser.parse_args()\nRun(num=cfg.workers).make()\n",
    "the default of a parameter": "def make(size, *, workers: int = 0):\n"
    "    return DataLoader([1], num_workers=workers)\nmake(4)\n",
    "a constant": "WORKERS = 0\n" + LOADER.replace("cfg.workers", "WORKERS"),
    "a constant with its type": "WORKERS: int = 0\n" + LOADER.replace("cfg.workers", "WORKERS"),
}
DOES_NOT = {
    "a parameter that two calls give": PARSER
    + "def make(num):\n    return DataLoader([1], num_workers=num)\n"
    "cfg = parser.parse_args()\nmake(cfg.workers)\nmake(0)\n",
    "a parameter that a loop changes": PARSER + "def make(num):\n    for num in (1, 2):\n"
    "        return DataLoader([1], num_workers=num)\ncfg = parser.parse_args()\nmake(cfg.workers)\n",
    "a parameter that a decorator may give": "@click.command()\ndef main(num=0):\n"
    "    return DataLoader([1], num_workers=num)\nmain()\n",
    "a parameter that is handed on": PARSER
    + "def make(num=0):\n    return DataLoader([1], num_workers=num)\n"
    "start(make)\n",
    "a parameter that is changed": PARSER + "def make(num):\n    num = num + 1\n"
    "    return DataLoader([1], num_workers=num)\ncfg = parser.parse_args()\nmake(cfg.workers)\n",
    "a parameter of a function that calls itself": "def make(num):\n    make(num)\n"
    "    return DataLoader([1], num_workers=num)\n",
    "an attribute that is set twice": PARSER
    + "class Run:\n    def __init__(self, num):\n        self.num = num\n"
    "        self.num = num + 1\n    def make(self):\n        return DataLoader([1], num_workers=self.num)\n"
    "cfg = parser.parse_args()\nRun(num=cfg.workers).make()\n",
    "a parameter of the same name": "workers = 0\ndef make(workers):\n"
    "    return DataLoader([1], num_workers=workers)\nmake(0)\nmake(1)\n",
    "a variable of the same name": "workers = 0\ndef make():\n    workers = 1\n"
    "    return DataLoader([1], num_workers=workers)\n",
    "a constant that is set in two cases": "WORKERS = 0\nif fast:\n    WORKERS = 4\n"
    + LOADER.replace("cfg.workers", "WORKERS"),
    "a constant that a function sets": "WORKERS = 0\ndef setup():\n    global WORKERS\n    WORKERS = 4\n"
    + LOADER.replace("cfg.workers", "WORKERS"),
    "an unrelated class": "class Encoder:\n    workers = 0\nEncoder()\ncfg = SimpleNamespace(workers=0)\n"
    + LOADER,
    "a class that nobody makes": "class Encoder:\n    workers = 0\n" + IN_FUNCTION,
    "a default that is not taken": CLASS + "cfg = Config(workers=4)\n" + LOADER,
    "a default that is not taken by position": CLASS + "cfg = Config(1, 4)\n" + LOADER,
    "a default that may not be taken": CLASS + "cfg = Config(**given)\n" + LOADER,
    "a default that is replaced": CLASS + "cfg = replace(Config(), workers=4)\n" + LOADER,
    "an option that is set again": PARSER + "cfg = parser.parse_args()\ncfg.workers = 4\n" + LOADER,
    "an option beside something else": PARSER + "cfg = docopt(__doc__)\n" + LOADER,
    "another dictionary": "other = {'workers': 0}\ncfg = {**read()}\n"
    + LOADER.replace("cfg.workers", "cfg['workers']"),
    "an attribute of an object": PARSER + "class Run:\n    def make(self):\n"
    "        return DataLoader([1], num_workers=self.workers)\n",
}


@pytest.mark.parametrize("name", REACHES)
def test_a_default_that_reaches_the_call_changes(name: str) -> None:
    text = HEAD + REACHES[name]
    patch = rewrite_plan([STEP], sites_of(text), {"train.py": text.encode()})
    after = text.replace("default=0", "default=2").replace("int = 0", "int = 2")
    for form in ("workers = {}\n", "'workers': {}", "WORKERS = {}\n"):
        after = after.replace(form.format(0), form.format(2))
    assert patch.after["train.py"].decode() == after, patch.outcomes


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_only_has_its_name_is_left_and_the_call_is_changed_when_asked_for(name: str) -> None:
    text = HEAD + DOES_NOT[name]
    patch = rewrite_plan([STEP], sites_of(text), {"train.py": text.encode()})
    assert patch.changed == ()
    assert patch.outcomes[0].is_held_back, patch.outcomes
    unsafe = rewrite_plan([STEP], sites_of(text), {"train.py": text.encode()}, Safety.UNSAFE)
    call = next(line for line in text.splitlines() if "DataLoader(" in line)
    value = call.partition("num_workers=")[2].rstrip(")")
    assert unsafe.after["train.py"].decode() == text.replace(call, call.replace(f"={value})", "=2)"))
