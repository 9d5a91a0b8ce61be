"""Activations patch torch for the life of a process; here every test gets torch back as it was."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.autograd import profiler
from torch.nn import utils
from torch.nn.utils import clip_grad
from torch.optim import optimizer as optim
from torch.utils.data import dataloader

_PATCHED: tuple[tuple[Any, str], ...] = (
    (torch, "set_anomaly_enabled"),
    (torch, "set_num_threads"),
    (torch.Tensor, "to"),
    (torch.Tensor, "cuda"),
    (torch.nn.functional, "cross_entropy"),
    (torch.optim.Optimizer, "zero_grad"),
    (torch.nn.Module, "zero_grad"),
    (clip_grad, "_get_total_norm"),
    (clip_grad, "_clip_grads_with_norm_"),
    (clip_grad, "clip_grad_value_"),
    (utils, "clip_grad_value_"),
    (profiler.profile, "__enter__"),
    (profiler.profile, "__exit__"),
    (profiler.emit_nvtx, "__enter__"),
    (profiler.emit_nvtx, "__exit__"),
    (profiler.emit_itt, "__enter__"),
    (profiler.emit_itt, "__exit__"),
    (dataloader._SingleProcessDataLoaderIter, "__init__"),
    (dataloader._MultiProcessingDataLoaderIter, "__init__"),
    (dataloader._MultiProcessingDataLoaderIter, "_reset"),
    (dataloader._BaseDataLoaderIter, "__init__"),
    (dataloader._BaseDataLoaderIter, "__next__"),
    (dataloader._BaseDataLoaderIter, "_reset"),
    (dataloader._BaseDataLoaderIter, "_hotloop_fetches"),
)


@pytest.fixture(autouse=True)
def torch_as_it_was() -> Iterator[None]:
    checks = importlib.import_module("torch.autograd.gradcheck")
    functions = [checks.gradcheck, checks.gradgradcheck]
    before = [(owner, name, vars(owner).get(name)) for owner, name in _PATCHED]
    code = [(f.__code__, f.__defaults__, f.__kwdefaults__) for f in functions]
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    benchmark = torch.backends.cudnn.benchmark
    torch.manual_seed(0)
    yield
    for owner, name, value in before:
        if value is not None:
            setattr(owner, name, value)
        elif name in vars(owner):
            delattr(owner, name)
    for function, (body, defaults, kwdefaults) in zip(functions, code, strict=True):
        function.__code__, function.__defaults__, function.__kwdefaults__ = body, defaults, kwdefaults
    optim._global_optimizer_pre_hooks.clear()
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.benchmark = benchmark
    torch.set_anomaly_enabled(False)
