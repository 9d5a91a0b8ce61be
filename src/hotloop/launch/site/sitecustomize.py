"""Runs at the start of every Python process of the command: starts the probe, chains to the user's sitecustomize."""

import os
import sys

OLDEST = (3, 10)
"""Of Python: what the probe is written for."""


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


def _bring_hotloop() -> None:
    """Make the launcher's own hotloop importable, and nothing that is installed beside it.

    The program may run in another environment, with other versions of what hotloop needs, or with another hotloop.
    """
    from _frozen_importlib import ModuleSpec, module_from_spec
    from _frozen_importlib_external import SourceFileLoader

    home = os.environ["HOTLOOP_HOME"]
    file = os.path.join(home, "__init__.py")
    loader = SourceFileLoader("hotloop", file)
    spec = ModuleSpec("hotloop", loader, origin=file, is_package=True)
    spec.has_location = True
    spec.submodule_search_locations = [home]
    module = module_from_spec(spec)
    sys.modules["hotloop"] = module
    loader.exec_module(module)


def _start() -> None:
    if sys.version_info < OLDEST:
        found, needed = (".".join(map(str, version)) for version in (sys.version_info[:2], OLDEST))
        _say(f"this is Python {found}, the probe needs {needed} or newer")
        return
    try:
        _bring_hotloop()
        from hotloop.probe.setup.own_imports import folders_of_program, keep_apart, shadowed_names

        names = shadowed_names(folders_of_program())
        if names:
            keep_apart(names)
        from hotloop.probe.setup.install import start

        start()
    except Exception as error:  # the probe fails open: the program goes on without it
        _say(repr(error))


def _say(why: str) -> None:
    sys.stderr.write(f"hotloop: the probe could not be started, the program goes on without it: {why}\n")


_leave_the_path()
if "HOTLOOP_PROBE" in os.environ:
    _start()
_chain()
