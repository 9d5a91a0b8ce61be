"""Process groups on the virtual GPU: their collectives give tensors of the right shape, and nobody is asked."""

from __future__ import annotations

import functools
import os
from typing import Any

import torch


def stand_in_for_others() -> None:
    """Give programs torch's own process group for tests, in which this rank is alone, whatever backend they ask for."""
    distributed: Any = torch.distributed
    if not distributed.is_available():
        return
    original = distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(*_: Any, **kwargs: Any) -> Any:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        kept = {name: kwargs[name] for name in ("rank", "world_size") if kwargs.get(name, -1) >= 0}
        world = {**_launched(), **kept}
        return original("fake", store=FakeStore(), **world)

    distributed.init_process_group = init_process_group
    distributed.distributed_c10d.init_process_group = init_process_group
    _take_ranks_for_alike()
    distributed.is_nccl_available = distributed.distributed_c10d.is_nccl_available = lambda: True


def _take_ranks_for_alike() -> None:
    """Nobody answers for other ranks: their models are taken to have the parameters of this one."""
    from torch.distributed import utils
    from torch.nn.parallel import distributed

    for module in (utils, distributed):
        for name in ("_verify_param_shape_across_processes", "_sync_module_states"):
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: None)
    parallel: Any = distributed.DistributedDataParallel
    make, register = parallel.__init__, parallel.register_comm_hook

    @functools.wraps(make)
    def init(model: Any, *args: Any, **kwargs: Any) -> None:
        make(model, *args, **kwargs)
        if torch.distributed.get_backend(model.process_group) == "fake":
            register(model, None, _same)
            model.register_comm_hook = lambda *_, **__: None
            model.logger = _SilentLogger()  # torch's asks for the times of a device

    parallel.__init__ = init
    _same.__annotations__.clear()  # torch compares them with classes, and here they are strings


class _SilentLogger:
    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None


def _same(_: object, bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Return a bucket as the mean over ranks that are alike."""
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def _launched() -> dict[str, int]:
    """Return what a launcher has told this process."""
    return {"rank": int(os.environ.get("RANK", "0")), "world_size": int(os.environ.get("WORLD_SIZE", "1"))}
