"""activation_offloading: the same gradients with less kept, and no time where the link carries what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.memory.activation_offloading import row
from hotloop.optimize.catalogue.memory.activation_offloading.activation import MIB, OffloadedActivations
from hotloop.optimize.catalogue.memory.activation_offloading.link import Link
from hotloop.optimize.catalogue.memory.activation_offloading.offloaded import Offloaded
from hotloop.optimize.optimization import DoesNotApply
from tests.simulated_device import SimulatedCuda
from tests.simulated_device.device import MS

from .harness import activate, observation

# Values: on the CPU, with copies that are made at once ------------------------------------------------------


class HostLink:
    """Copies within the host."""

    num_out = num_back = 0

    def out(self, flat: Any) -> Any:
        self.num_out += 1
        return flat.clone(), None

    def back(self, host: Any, gone: Any) -> Any:
        self.num_back += 1
        return host.clone(), None

    def arrive(self, flat: Any, come: Any) -> None:
        pass


class OnHost(OffloadedActivations):
    """Takes the CPU for a device."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self.host_link = HostLink()

    def is_on_device(self, tensor: Any) -> bool:
        return True

    def link(self, device: Any) -> Any:
        return self.host_link


class Net(nn.Module):  # type: ignore[misc]
    """Saves one tensor twice (in the product and in the layer), views, results of in-place operations, and a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(512, 512) for _ in range(4)])
        self.drop = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            y = layer(x.view(32, 32, 512)).relu_()
            x = self.drop(y.view(1024, 512)) * x
        return x.transpose(0, 1).square()


def gradients(activation: OffloadedActivations | None) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    model, x = Net(), torch.randn(1024, 512)
    if activation is not None:
        activate(activation, model)
    for _ in range(2):
        model.zero_grad()
        model(x).mean().backward()
    return tuple(each.grad for each in model.parameters())


@pytest.mark.parametrize("mib", [1, 7, 1000])
def test_gradients_are_the_same_to_the_last_bit(mib: int) -> None:
    activation = OnHost(mib * MIB)
    for one, other in zip(gradients(activation), gradients(None), strict=True):
        assert torch.equal(one, other)
    is_on, said = activation.effect()
    assert is_on == (mib > 1), said


class Complex(nn.Module):  # type: ignore[misc]
    """One storage is saved as complex numbers, as pairs of real ones, and through lazy conjugates and negatives."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.weight
        product = y * y.conj() * y
        pairs = torch.view_as_real(y)
        mirrored = y.conj().imag
        return (product.abs() + (pairs * pairs).sum(-1) + mirrored * mirrored * y.real).square()


def test_conjugates_and_other_types_of_one_storage_come_back_as_they_were() -> None:
    grads = []
    for activation in (OnHost(1000 * MIB), None):
        torch.manual_seed(0)
        model, x = Complex(), torch.randn(512, 512, dtype=torch.complex64)
        if activation is not None:
            activate(activation, model)
        model(x).mean().backward()
        grads.append(model.weight.grad)
        assert activation is None or activation.effect()[0]
    assert torch.equal(*grads)


def test_a_storage_goes_out_once_and_no_more_than_the_link_carries() -> None:
    """Each layer's input is saved by the layer and by the product, through a view and as it is."""
    activation = OnHost(1000 * MIB)
    gradients(activation)
    link = activation.host_link
    assert link.num_out == link.num_back
    few = OnHost(5 * MIB)
    gradients(few)
    assert few._moved_bytes <= 2 * 5 * MIB


def test_parameters_and_inputs_stay() -> None:
    activation, layer, x = OnHost(1000 * MIB), nn.Linear(1024, 1024), torch.randn(1024, 1024)
    activate(activation, layer)
    layer(x).sum().backward()
    assert not activation.host_link.num_out
    assert activation.effect()[0] is False


# Time: on a simulated device --------------------------------------------------------------------------------


@dataclass
class Flat:
    """A storage of so many milliseconds of copying."""

    copy_ms: float

    def record_stream(self, stream: Any) -> None:
        pass


@dataclass
class SimulatedCopies:
    cuda: SimulatedCuda

    def to_host(self, flat: Flat) -> Flat:
        self.cuda.current_stream().launch(flat.copy_ms)
        return flat

    def to_device(self, host: Flat, device: int) -> Flat:
        self.cuda.current_stream().launch(host.copy_ms)
        return Flat(host.copy_ms)


def step_ms(
    copy_ms: float, *, num_layers: int = 20, forward_ms: float = 1.0, backward_ms: float = 2.0
) -> float:
    """A forward that saves a storage in each layer, and its backward."""
    cuda = SimulatedCuda()
    link = Link(cuda, 0, SimulatedCopies(cuda))
    saved: list[Offloaded] = []
    for _ in range(num_layers):
        cuda.current_stream().launch(forward_ms)
        if copy_ms:
            saved.append(Offloaded(link, Flat(copy_ms), saved[-1] if saved else None))
    for at in reversed(range(num_layers)):
        if copy_ms:
            saved[at].get()
        cuda.current_stream().launch(backward_ms)
    cuda.synchronize()
    return cuda.host.ns / MS


def test_within_what_the_link_carries_it_costs_little_more_than_the_turn() -> None:
    """The last storage goes out and comes back while nothing else can be computed."""
    plain = step_ms(0.0)
    assert step_ms(0.9) < plain + 3 * 0.9
    assert step_ms(3.0) > plain + 20  # three times what it carries


def test_copies_back_do_not_wait_for_copies_out_of_others() -> None:
    cuda = SimulatedCuda()
    link = Link(cuda, 0, SimulatedCopies(cuda))
    first = Offloaded(link, Flat(1.0), None)
    late = Offloaded(link, Flat(50.0), first)
    first.get()
    cuda.current_stream().synchronize()
    assert cuda.host.ns / MS < 10
    late.get()
    cuda.current_stream().synchronize()
    assert cuda.host.ns / MS > 100


# What is offered --------------------------------------------------------------------------------------------

PHASES = {Phase.FORWARD: 0.4, Phase.BACKWARD: 0.6}


def test_it_is_offered_within_what_the_link_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row, "card_of", lambda _: card(out=100 * MIB, back=50 * MIB))
    found = row.ActivationOffloading().candidates(observation(PHASES, device="cuda"))
    # 40 MiB leave in a forward of 0.4 s, 30 MiB come back in a backward of 0.6 s.
    assert [one.params["mib"] for one in found] == [pytest.approx(30, abs=1), pytest.approx(15, abs=1)]


def test_nothing_is_offered_where_the_rate_is_not_known_and_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row, "card_of", lambda _: None)
    with pytest.raises(DoesNotApply, match="hotloop machine measures it"):
        row.ActivationOffloading().candidates(observation(PHASES, device="cuda"))
    with pytest.raises(DoesNotApply, match="on no device"):
        row.ActivationOffloading().candidates(observation(PHASES))


def card(out: float, back: float) -> Any:
    """A machine card that knows the link alone."""
    from types import SimpleNamespace

    rates = SimpleNamespace(
        device_to_pinned_bytes_per_s=SimpleNamespace(median=out),
        pinned_to_device_bytes_per_s=SimpleNamespace(median=back),
    )
    return SimpleNamespace(copies=(rates,))
