"""What a static rule is: a manual page, the node types it wants to see, and a check."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety

Node = TypeVar("Node", bound=cst.CSTNode)


@dataclass(frozen=True)
class Edit:
    """A node of the file and what takes its place; None removes it."""

    old: cst.CSTNode
    new: cst.CSTNode | None


@dataclass(frozen=True)
class Hit:
    """One place where a rule's pattern stands."""

    node: cst.CSTNode
    evidence: str
    """What was seen there, in one sentence."""
    severity: Severity | None = None
    """Where it differs from the rule's."""
    edits: tuple[Edit, ...] = ()
    safety: Safety | None = None
    """Where it differs from the rule's."""
    advice: str | None = None
    """Where it differs from the rule's."""


@dataclass(frozen=True)
class Visit(Generic[Node]):
    """A node type and what to do with each node of it."""

    node_type: type[Node]
    check: Callable[[Program, Node], Iterator[Hit]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One static rule; its file's docstring is its manual page."""

    code: str
    title: str
    severity: Severity
    advice: str
    page: str
    words: tuple[str, ...]
    """At least one of these stands in any source the rule can speak about: others are never parsed for it."""
    visits: tuple[Visit[Any], ...]
    optimization: str | None = None
    fix: Safety | None = None
    """None: the rule offers no edit."""
    holds_its_cost: bool = False
    """The time under its lines is what it costs: `hotloop diagnose` prices it by the samples of the host's stacks."""
    family: str = field(default="")
