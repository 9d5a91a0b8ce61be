"""Devices by name, and by their memory."""

import pytest

from hotloop.memory.devices import DEVICES, device_named
from hotloop.model.errors import HotloopError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A100 40GB", "A100 40GB"),
        ("a100-40gb", "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("rtx4090", "RTX 4090"),
        ("GeForce RTX 3090", "RTX 3090"),
        ("H100", "H100 80GB"),
        ("Tesla T4", "T4"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_a_device_is_found_however_it_is_written(text: str, name: str) -> None:
    assert device_named(text).name == name


def test_a_size_is_a_device_too() -> None:
    assert device_named("24GB").total_bytes == 24 * 10**9
    assert device_named("24 GiB").total_bytes == 24 << 30


@pytest.mark.parametrize("text", ["A100", "V100"])
def test_of_several_devices_the_error_lists_those_that_are_meant(text: str) -> None:
    with pytest.raises(HotloopError) as error:
        device_named(text)
    assert "several" in error.value.message
    assert error.value.hint.count(text) == 2


@pytest.mark.parametrize("text", ["", "GTX", "quantum"])
def test_an_unknown_device_is_an_error_with_the_list(text: str) -> None:
    with pytest.raises(HotloopError) as error:
        device_named(text)
    assert DEVICES[0].name in error.value.hint


def test_the_driver_reports_less_than_the_box() -> None:
    for device in DEVICES:
        assert 0 < device.outside_bytes < device.total_bytes
