"""Runs at the start of every Python process of the command: starts the probe, chains to the user's sitecustomize."""

import os
import sys


def _leave_the_path() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def _chain() -> None:
    """Run the sitecustomize that would have run without us."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _find_hotloop() -> None:
    """Make the package importable where the program runs in another environment than hotloop."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    if find_spec("hotloop") is not None:
        return
    home = os.environ["HOTLOOP_HOME"]
    spec = spec_from_file_location(
        "hotloop", os.path.join(home, "__init__.py"), submodule_search_locations=[home]
    )
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["hotloop"] = module
        spec.loader.exec_module(module)


def _start() -> None:
    try:
        _find_hotloop()
        from hotloop.probe.setup.install import start

        start()
    except Exception as error:  # the probe fails open: the program goes on without it
        sys.stderr.write(
            f"hotloop: the probe could not be started, the program goes on without it: {error!r}\n"
        )


_leave_the_path()
if "HOTLOOP_PROBE" in os.environ:
    _start()
_chain()
