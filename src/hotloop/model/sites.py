"""Where a running program called what matters to its speed: what a patch of its source goes by."""

from enum import Enum

import msgspec


class SiteKind(str, Enum):
    """What was called there."""

    LOADER = "loader"
    """A DataLoader was constructed."""
    MODEL = "model"
    """A root module was constructed."""
    OPTIMIZER = "optimizer"
    """An optimizer was constructed."""
    SCALER = "scaler"
    """A GradScaler was constructed."""
    TRAINER = "trainer"
    """A framework was set up: a Trainer, its TrainingArguments, a Fabric, an Accelerator."""
    TRANSFER = "transfer"
    """A tensor was copied from host to device."""
    FORWARD = "forward"
    """A root module was called with gradients."""
    EVALUATE = "evaluate"
    """A root module was called without gradients."""
    BACKWARD = "backward"
    CLIP = "clip"
    """Gradients were clipped by torch."""
    STEP = "step"
    """An optimizer stepped."""
    ZERO_GRAD = "zero_grad"
    DEBUG = "debug"
    """Anomaly detection was switched on."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """An expression of the user's source, as Python's own tracebacks name it."""

    path: str
    """Relative to the folder that the command ran in, where it is below it."""
    line: int
    """1-based, of the expression's first character."""
    column: int | None = None
    """0-based, in bytes of UTF-8; None: this Python (3.10) knows the line alone, and so for the next two."""
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""
    """Qualified name of the function it stands in; `<module>` at the top."""


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """A value that a forward was given, in order, or that it gave back."""

    name: str | None = None
    """None: by position."""
    rank: int | None = None
    """Dimensions of a tensor; None: something else."""
    floating: bool = False
    is_tuple: bool = False
    """A tuple of floating-point tensors."""
    ends_in_sigmoid: bool | None = False
    """What a forward gave back is made of a sigmoid; None: compiled code hides it."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One place from which something was called."""

    kind: SiteKind
    slot: int
    """Number of the loader, root or optimizer in the program's facts; 0 where it has none."""
    callee: str
    """Qualified name of what was called: `torch.utils.data.dataloader.DataLoader`."""
    places: tuple[Place, ...]
    """The user's frames, innermost first; never a library's."""
    num_own: int = 0
    """So many of them, from the front, are the constructed object's own `__init__` (a subclass of the user's)."""
    direct: bool = True
    """No library stands between the user's call and the constructor: what the call is given, the constructor gets."""
    arguments: tuple[Argument, ...] = ()
    returns: Argument | None = None
    """What a forward gave back; None: it was not looked at."""
    overrides: tuple[str, ...] = ()
    """Of a model: methods of torch.nn.Module that a rewrite may call, and that its class has its own of; `compile` also
    where the class of a module in it has."""
    in_step: bool = True
    """Of a loader: it was seen to feed training steps."""
    rows: bool = False
    """Of a loader: its samples are tuples of tensors, arrays and numbers that torch's own function collates."""

    @property
    def construction(self) -> Place | None:
        """Where the object was asked for: the innermost place outside of its own `__init__`."""
        return self.places[self.num_own] if self.num_own < len(self.places) else None


class Sites(msgspec.Struct, frozen=True, kw_only=True):
    """The sites of one observed run, with the sources they were seen in."""

    sites: tuple[Site, ...] = ()
    device: str = "cpu"
    """Device type of the model's parameters."""
    sources: dict[str, str] = {}
    """Path to SHA-256 of the file as it ran."""

    def of(self, *kinds: SiteKind) -> tuple[Site, ...]:
        """Return the sites of these kinds, in the order in which they were first reached."""
        return tuple(site for site in self.sites if site.kind in kinds)
