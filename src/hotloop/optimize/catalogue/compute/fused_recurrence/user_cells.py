"""Which of torch's cells a program's own one is, told by what it gives for inputs that are made up.

Its layers are cut into gates, and each order of the gates is tried until one gives what the cell gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations
from typing import Any

from hotloop.optimize.catalogue.compute.fused_recurrence.one_call import Fused, Weights
from hotloop.patterns.refusal import NotThis

ROWS = 3
TOLERANCE = 1e-5
"""In float64: another order of the gates differs by a tenth and more."""
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
MOST = 5_000
"""Orders that are tried: a tenth of a millisecond each."""
FORGET = 1
"""The gate of an LSTM that programs add a constant to."""
UPDATE = 1
"""The gate of a GRU that is written the other way round as often."""


@dataclass(frozen=True)
class _Gate:
    """A part of a linear layer: `num` rows from `row` on, of the inputs from `column` on; its bias with it."""

    layer: str
    row: int
    column: int
    num_columns: int
    biased: bool


@dataclass(frozen=True)
class _Meaning:
    """An order of gates, and what is done to one of them."""

    kind: str
    inputs: tuple[_Gate, ...]
    states: tuple[_Gate, ...]
    forget: float = 0.0
    turned: bool = False
    """The update gate is one minus torch's."""


def told_by_values(cell: Any) -> Fused:
    """Return what takes the place of a cell of the program's own.

    Raises:
        NotThis: it computes something else, or not the same each time.
    """
    import copy

    import torch

    layers = _layers(cell)
    twin = copy.deepcopy(cell).double()
    before = _plain(twin)
    with torch.no_grad():
        for width, inputs in _widths(layers):
            for num_states, kinds in ((2, ("lstm",)), (1, ("gru", "rnn_tanh", "rnn_relu"))):
                x, states = _made_up(inputs, width, num_states, next(twin.parameters()).device)
                given = _called(twin, x, states)
                if given is None:
                    continue
                again = _called(twin, x, states)
                if again is None or not _same(given, again) or _plain(twin) != before:
                    raise NotThis(f"{type(cell).__name__} does more than compute, or draws random numbers")
                sums = _Sums(twin, x, states[0], width)
                for meaning in islice(_meanings(layers, kinds, inputs, width), MOST):
                    if _same(given, sums.step(meaning, states)):
                        return Fused(meaning.kind, _weights_of(list(layers), meaning, width))
    raise NotThis(f"{type(cell).__name__} computes something else than torch's LSTM, GRU or RNN")


def _layers(cell: Any) -> dict[str, Any]:
    """Return the linear layers of a cell.

    Raises:
        NotThis: it has others, or parameters of its own.
    """
    from torch import nn

    plain = (nn.Linear, nn.Sigmoid, nn.Tanh, nn.ReLU, nn.Identity)
    found = {}
    for name, each in cell.named_modules():
        if each is cell:
            continue
        if type(each) not in plain:
            raise NotThis(f"{type(cell).__name__} has a {type(each).__name__} in it")
        if isinstance(each, nn.Linear):
            found[name] = each
    if not found or any(True for _ in cell.parameters(recurse=False)) or any(True for _ in cell.buffers()):
        raise NotThis(f"{type(cell).__name__} does not keep its weights in linear layers alone")
    return found


def _widths(layers: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Return what the widths of state and input can be."""
    outs = {each.out_features // gates for each in layers.values() for gates in (1, 3, 4)}
    ins = {each.in_features for each in layers.values()}
    for width in sorted(outs - {0}):
        for inputs in sorted({*ins, *(each - width for each in ins)}):
            sizes = {inputs, width, inputs + width}
            if (
                inputs > 0
                and ins <= sizes
                and all(each.out_features % width == 0 for each in layers.values())
            ):
                yield width, inputs


def _called(cell: Any, x: Any, states: Sequence[Any]) -> list[Any] | None:
    """Return the states that a cell gives; None: it takes or gives something else."""
    import torch

    for given in ((x, tuple(states)), (x, *states)):
        if len(states) == 1 and given[1:] == (tuple(states),):
            continue
        try:
            made = cell(*given)
        except Exception:  # whatever the program's cell raises for what it is not made for
            continue
        made = list(made) if isinstance(made, tuple) else [made]
        if len(made) == len(states) and all(
            isinstance(one, torch.Tensor) and one.shape == other.shape
            for one, other in zip(made, states, strict=True)
        ):
            return made
    return None


def _made_up(inputs: int, width: int, num_states: int, device: Any) -> tuple[Any, list[Any]]:
    """Return an input and states, none of whose values are alike; no random number is used up."""
    import torch

    def line(size: int, pace: float) -> Any:
        points = torch.arange(ROWS * size, device=device, dtype=torch.float64)
        return torch.cos(points * pace + pace).view(ROWS, size)

    return line(inputs, 1.7), [line(width, 0.9 + 0.8 * at) for at in range(num_states)]


def _meanings(layers: dict[str, Any], kinds: Sequence[str], inputs: int, width: int) -> Iterator[_Meaning]:
    for kind in kinds:
        gates = GATES[kind]
        for of_input, of_state in _gates(layers, gates, inputs, width):
            if kind == "lstm":
                yield from (_Meaning(kind, of_input, of_state, forget) for forget in (0.0, 1.0))
            elif kind == "gru":
                yield from (_Meaning(kind, of_input, of_state, turned=turned) for turned in (False, True))
            else:
                yield _Meaning(kind, of_input, of_state)


def _gates(
    layers: dict[str, Any], gates: int, inputs: int, width: int
) -> Iterator[tuple[tuple[_Gate, ...], tuple[_Gate, ...]]]:
    """Return each order of the gates, of the input and of the state."""
    joint = [name for name, each in layers.items() if each.in_features == inputs + width]
    if len(joint) == len(layers):
        for first in ((0, inputs), (width, 0)):  # cat([x, h]) or cat([h, x])
            pairs = [
                (_Gate(name, row, first[0], inputs, True), _Gate(name, row, first[1], width, False))
                for name in joint
                for row in range(0, layers[name].out_features, width)
            ]
            yield from _orders(pairs, gates)
        return
    names = list(layers)
    for chosen in _halves(names, layers, inputs, width):
        of_input = [
            _Gate(name, row, 0, inputs, True)
            for name in chosen
            for row in range(0, layers[name].out_features, width)
        ]
        of_state = [
            _Gate(name, row, 0, width, True)
            for name in names
            if name not in chosen
            for row in range(0, layers[name].out_features, width)
        ]
        if len(of_input) != gates or len(of_state) != gates:
            continue
        for paired in permutations(of_state) if len(names) > 2 else [tuple(of_state)]:
            yield from _orders(list(zip(of_input, paired, strict=True)), gates)


def _halves(
    names: Sequence[str], layers: dict[str, Any], inputs: int, width: int
) -> Iterator[tuple[str, ...]]:
    """Return the layers that may be the input's: half of them, as they stand or in turns first."""
    num = len(names) // 2
    likely = [tuple(names[:num]), tuple(names[::2]), tuple(names[num:]), tuple(names[1::2])]
    for chosen in dict.fromkeys([*likely, *combinations(names, num)]):
        rest = [name for name in names if name not in chosen]
        if all(layers[name].in_features == inputs for name in chosen) and all(
            layers[name].in_features == width for name in rest
        ):
            yield chosen


def _orders(
    pairs: Sequence[tuple[_Gate, _Gate]], gates: int
) -> Iterator[tuple[tuple[_Gate, ...], tuple[_Gate, ...]]]:
    if len(pairs) == gates:
        for order in permutations(pairs):
            yield tuple(one for one, _ in order), tuple(other for _, other in order)


def _weights_of(layers: Sequence[str], meaning: _Meaning, width: int) -> Callable[[Any], Weights]:
    return lambda cell: _weights(cell, layers, meaning, width)


def _weights(cell: Any, layers: Sequence[str], meaning: _Meaning, width: int) -> Weights:
    """Return a cell's weights in torch's order of gates."""
    import torch

    own = {name: cell.get_submodule(name) for name in layers}
    matrices, biases = [], []
    for gates in (meaning.inputs, meaning.states):
        rows, ends = [], []
        for at, gate in enumerate(gates):
            layer = own[gate.layer]
            sign = -1.0 if meaning.turned and at == UPDATE else 1.0
            part = slice(gate.row, gate.row + width)
            rows.append(sign * layer.weight[part, gate.column : gate.column + gate.num_columns])
            has = gate.biased and layer.bias is not None
            bias = layer.bias[part] if has else torch.zeros_like(layer.weight[part, 0])
            more = meaning.forget if at == FORGET and gates is meaning.inputs else 0.0
            ends.append(sign * bias + more)
        matrices.append(torch.cat(rows))
        biases.append(torch.cat(ends))
    return [*matrices, *biases]


class _Sums:
    """What the gates of a cell are computed from, each product made once: orders of gates are many."""

    def __init__(self, cell: Any, x: Any, h: Any, width: int) -> None:
        self._cell = cell
        self._x = x
        self._h = h
        self._width = width
        self._known: dict[tuple[_Gate, bool], Any] = {}

    def step(self, meaning: _Meaning, states: Sequence[Any]) -> list[Any]:
        """Return the states that torch's own cell gives, were its gates these."""
        import torch

        of_input = [self._sum(gate, of_state=False) for gate in meaning.inputs]
        of_state = [self._sum(gate, of_state=True) for gate in meaning.states]
        both = [one + other for one, other in zip(of_input, of_state, strict=True)]
        if meaning.kind == "lstm":
            c = (both[FORGET] + meaning.forget).sigmoid() * states[1] + both[0].sigmoid() * both[2].tanh()
            return [both[3].sigmoid() * c.tanh(), c]
        if meaning.kind == "gru":
            update = (-both[UPDATE] if meaning.turned else both[UPDATE]).sigmoid()
            new = (of_input[2] + both[0].sigmoid() * of_state[2]).tanh()
            return [(1.0 - update) * new + update * states[0]]
        return [torch.tanh(both[0]) if meaning.kind == "rnn_tanh" else torch.relu(both[0])]

    def _sum(self, gate: _Gate, *, of_state: bool) -> Any:
        if (gate, of_state) not in self._known:
            layer = self._cell.get_submodule(gate.layer)
            rows = slice(gate.row, gate.row + self._width)
            weight = layer.weight[rows, gate.column : gate.column + gate.num_columns]
            product = (self._h if of_state else self._x) @ weight.t()
            has = gate.biased and layer.bias is not None
            self._known[gate, of_state] = product + layer.bias[rows] if has else product
        return self._known[gate, of_state]


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    import torch

    return all(torch.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE) for a, b in zip(one, other, strict=True))


def _plain(cell: Any) -> list[str]:
    """Return what of a cell is no part of torch's, as text: a cell that counts changes it."""
    return [
        f"{name}.{key}={value!r}"
        for name, each in cell.named_modules()
        for key, value in vars(each).items()
        if not key.startswith("_")
    ]
