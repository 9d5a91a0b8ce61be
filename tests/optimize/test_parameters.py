"""Parameters of a plan that somebody else wrote: every optimization refuses nonsense by a ValueError."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import pytest

from hotloop.optimize.optimization import Optimization
from hotloop.optimize.parameters import data_folder
from hotloop.optimize.registry import all_optimizations

NONSENSE: tuple[Any, ...] = (None, -1, 10**30, math.nan, math.inf, "", "../../x", "/", "\0", [], {}, 1.5)


@pytest.mark.parametrize("one", all_optimizations(), ids=lambda one: one.name)
def test_nonsense_is_refused(one: Optimization) -> None:
    names = set(re.findall(r'"(\w+)"', inspect.getsource(one.validate)))
    for name in (*names, "no_such_parameter"):
        for value in NONSENSE:
            with pytest.raises(ValueError):  # noqa: PT011 - each has words of its own
                one.validate({name: value})


@pytest.mark.parametrize(
    "folder", ["/", "//", "/data/..", "/proc", "/proc/1/root", "/sys/kernel", "/etc", "/dev/fd"]
)
def test_a_folder_of_the_system_holds_no_data_set(folder: str) -> None:
    with pytest.raises(ValueError, match=r"not one of the system|from the root on"):
        data_folder({"folder": folder}, "folder")


@pytest.mark.parametrize("folder", ["/data", "/mnt/disk/set", "/home/me/data"])
def test_folders_of_data_sets_are_taken_and_paths_within_other_folders_are_not(folder: str) -> None:
    data_folder({"folder": folder}, "folder")
    with pytest.raises(ValueError, match="from the root on"):
        data_folder({"folder": folder.lstrip("/")}, "folder")
    with pytest.raises(ValueError, match="folder is missing"):
        data_folder({}, "folder")
