"""Why one way to compute something must not take the place of another."""


class NotThis(Exception):  # noqa: N818 - an answer, not an error
    """Raised with the reason, as a clause: "its weights are used elsewhere"."""


class NotFusable(NotThis):
    """Something of what goes is needed, or it computes something else: no way of writing it would change that."""


class NotReached(NotThis):
    """The module that ran does not come by it: it says nothing about the other ways."""
