"""hotloop makes PyTorch programs faster and proves it."""

import os

__version__ = "0.1.0"
__all__ = ["apply"]


def apply(plan: str | os.PathLike[str] = "hotloop.toml", *, force: bool = False) -> None:
    """Switch a plan on in the program that calls this, as `hotloop run --plan` does from outside.

    It belongs at the top of the program, before loaders, models and optimizers are made. A plan that was made on
    another machine or with another torch is left off, with a line on standard error, unless `force` says otherwise.

    Args:
        plan: the file that `hotloop tune` wrote.
        force: take a plan that was made elsewhere.

    Raises:
        hotloop.model.errors.HotloopError: the file is not there, or is not a plan.
    """
    from importlib import import_module
    from pathlib import Path

    # By name: every room imports this package, and none of them may import the upper rooms through it.
    import_module("hotloop.tune.in_process").switch_on(Path(plan), force=force)
