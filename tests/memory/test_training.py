"""What the virtual GPU takes for a program's models, and for its batch."""

from __future__ import annotations

import weakref

import torch
from torch import nn

from hotloop.probe.virtual_gpu.training import Training


def step(training: Training, *calls: tuple[nn.Module, torch.Tensor]) -> None:
    """Call models as the hooks of torch tell it, and end the step."""
    for module, given in calls:
        training._enter(module, (given,))
        training._leave()
    training._step_is_over()


def test_a_backbone_and_its_head_are_both_models_and_a_part_that_is_called_alone_is_none() -> None:
    backbone, head = nn.Sequential(nn.Linear(8, 4), nn.ReLU()), nn.Linear(4, 2)
    training = Training()
    for _ in range(2):
        step(
            training,
            (backbone[0], torch.ones(16, 8)),
            (backbone, torch.ones(16, 8)),
            (head, torch.ones(64, 4)),
        )
    assert training.roots == [backbone, head]
    assert (training.batch_size, training.row_counts) == (16, {16, 64})
    assert training.input_sizes[0] == training.input_sizes[1]
    step(training, (backbone, torch.ones(24, 8)), (head, torch.ones(64, 4)))
    assert training.input_sizes == [128, 192]
    assert training.batch_size == 24


def test_a_model_that_the_program_has_let_go_is_none_of_its_models() -> None:
    training = Training()
    step(training, (nn.Linear(8, 4), torch.ones(16, 8)))
    assert training.roots == []


def test_an_optimizer_that_the_program_has_let_go_is_free_and_the_steps_of_the_next_one_count() -> None:
    training = Training()
    first, second = (torch.optim.SGD(nn.Linear(8, 4).parameters()) for _ in range(2))
    for each in (first, second, first):
        training._after_optimizer(each)
    assert training.num_steps == 2
    gone = weakref.ref(first)
    del first, each
    assert gone() is None
    training._after_optimizer(second)
    assert training.num_steps == 3
