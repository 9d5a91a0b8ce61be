"""float8_training: the products of linear layers in 8-bit floating point, by torchao."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.program import ProgramFacts
from hotloop.model.sites import Sites
from hotloop.optimize.catalogue.precision.float8_training.activation import Float8Layers
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import choice, only, required
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.reduced_precision.eight_bit_layers import FITS
from hotloop.optimize.reduced_precision.eight_bit_need import require_layers
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

RECIPES = ("tensorwise", "rowwise")
NVIDIA = (8, 9)
"""Compute capability of Ada, the first with float8 units; Hopper's is 9.0."""
AMD = (9, 4)
"""gfx942, the MI300."""
USUAL = {"tensorwise": 1.2, "rowwise": 1.1}
"""Of forward and backward beside bfloat16, for large products, compiled; small ones become slower."""


EAGER = 0.8
"""So much of that without torch.compile, which fuses the casts."""


class Float8Training(Optimization):
    """Compute the products of linear layers in 8-bit floating point.

    What it does: before the first training forward, `torchao.float8.convert_to_float8_training` puts its layer in the
    place of each `torch.nn.Linear` whose sizes are multiples of 16. Weights stay what they are, for the optimizer and
    for `state_dict`; inputs, weights and gradients are scaled and cast to float8 for each product. `recipe`:
    `tensorwise` (one scale for a tensor, the fastest) or `rowwise` (a scale for each row, closer to bfloat16).

    Why it is faster: the matrix units of Ada, Hopper, Blackwell and MI300 do twice as many float8 products as bfloat16
    ones.

    When it does not help: small products, where scaling and casting cost more than the product saves; without
    torch.compile, which fuses those casts; devices without the units. torchao has to be installed beside the program.
    Layers with hooks, and a model that is one layer, are left alone. Models sharded by FSDP need torchao's own setting.
    A model that is pickled whole, not as a `state_dict`, needs torchao where it is loaded.

    Effect on numerics: three or two bits of mantissa in each product. On only where the parity check passes.

    Example: `torchao.float8.convert_to_float8_training(model)`

    References: Micikevicius et al. 2022, FP8 formats for deep learning; torchao documentation, float8 training.
    """

    name: ClassVar[str] = "float8_training"
    family: ClassVar[str] = "precision"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "compile"})
    conflicts: ClassVar[frozenset[str]] = frozenset({"int8_training"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return both recipes, where device, library and layers allow them."""
        program = observation.program
        _require_units(program)
        require_layers(program, "Float8Linear")
        compiled = any(root.compiled for root in program.roots)
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        return [
            self.candidate(
                params={"recipe": recipe}, prior=expected(part, USUAL[recipe] * (1.0 if compiled else EAGER))
            )
            for recipe in RECIPES
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the recipe."""
        only(params, "recipe")
        required(params, "recipe")
        choice(params, "recipe", RECIPES)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what exchanges the layers."""
        return Float8Layers(params["recipe"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Exchange the layers behind the statement that names the model."""
        from hotloop.optimize.rewriting.model import behind_the_models

        return behind_the_models(
            source,
            sites,
            ("torchao.float8",),
            lambda model, float8: _line(model, params["recipe"], float8),
            "the model computes in float8 already",
        )


def _line(model: str, recipe: str, float8: str) -> str:
    lines = [
        f"{float8}.convert_to_float8_training(",
        f"    {model},",
        f'    config={float8}.Float8LinearConfig.from_recipe_name("{recipe}"),',
        f"    module_filter_fn=lambda layer, _: {FITS},",
        ")",
    ]
    return "\n".join(lines)


def _require_units(program: ProgramFacts) -> None:
    """Demand matrix units for float8.

    Raises:
        DoesNotApply: with what the device is.
    """
    if program.device != "cuda":
        raise DoesNotApply("the model is on the CPU, which has no float8 units")
    least = AMD if program.hip_version else NVIDIA
    if program.capability is None or program.capability < least:
        seen = "unknown" if program.capability is None else ".".join(map(str, program.capability))
        raise DoesNotApply(f"this GPU has no float8 units (compute capability {seen})")
