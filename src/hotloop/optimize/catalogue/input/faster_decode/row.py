"""faster_decode: the same JPEG bytes through a faster decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.input.faster_decode.activation import FastJpegs
from hotloop.optimize.catalogue.input.faster_decode.decoders import DECODERS, installed
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import choice, only, required
from hotloop.optimize.program.bounds import bound, expected, require_share, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

LEAST = 0.05
"""Of a sample's time: less decoding cannot give a gain that is told from chance."""
FASTER = 2.0
"""simplejpeg 1.9 against PIL 13, both with libjpeg-turbo 3: 0.64 and 1.25 ms for 500 x 375 pixels (AMD EPYC)."""


class FasterDecode(Optimization):
    """Decode JPEG images with a faster library than PIL.

    What it does: where PIL decodes a whole JPEG image in color or gray, the bytes go to simplejpeg, PyTurboJPEG or
    torchvision.io, whichever is installed, and the pixels come back into PIL's image: sizes, transforms and
    everything behind it stay as they are. hotloop installs none of them: `pip install simplejpeg`.

    Why it is faster: PIL feeds its decoder in blocks of 64 KiB and repacks what comes out; these call
    libjpeg-turbo once, on the whole file.

    When it does not help: small images, other formats, `Image.draft`; a step that does not wait for data. In every
    process the first sixteen images, and one in two hundred after that, are decoded both ways: where a pixel
    differs by more than 2 of 255, PIL goes on alone. Files that the other library refuses (truncated, CMYK) are
    PIL's, too.

    Effect on numerics: none where both use the same libjpeg-turbo; else rounding of a pixel's last bits.

    Example: `Image.fromarray(simplejpeg.decode_jpeg(path.read_bytes()))`

    References: libjpeg-turbo; simplejpeg documentation; torchvision.io.decode_jpeg.
    """

    name: ClassVar[str] = "faster_decode"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"dataset_in_memory", "cached_preprocessing"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the installed decoder, where PIL's decoding takes some of the wait."""
        loaders = training_loaders(observation)
        require_share(observation, Phase.DATA, "waiting for data")
        part = _decoding(observation)
        whole = share(observation, Phase.DATA)
        limit = None if any(loader.num_workers for loader in loaders) else bound(observation, Phase.DATA)
        names = installed()
        if not names:
            raise DoesNotApply(
                f"PIL's decoding takes {part:.0%} of a sample's time, and no faster decoder is installed "
                "(pip install simplejpeg)"
            )
        prior = expected(whole * part if whole is not None else None, FASTER)
        return [self.candidate(params={"decoder": names[0]}, max_gain=limit, prior=prior)]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the decoder's name."""
        only(params, "decoder")
        required(params, "decoder")
        choice(params, "decoder", tuple(DECODERS))

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what decodes."""
        return FastJpegs(params["decoder"])

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, to be switched where batches are made in the training process."""
        return FastJpegs(params["decoder"], on=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Let the program's own calls of `Image.open` decode with the library."""
        from hotloop.optimize.catalogue.input.faster_decode.rewrite import rewrite_decode

        return rewrite_decode(source, params["decoder"])


def _decoding(observation: Observation) -> float:
    """Return PIL's share of a sample's time.

    Raises:
        DoesNotApply: it was not seen, or is too little.
    """
    seen = observation.deep.loading if observation.deep else None
    if seen is None:
        raise DoesNotApply("what a sample's time goes to was not looked at")
    part = sum(each.share for each in seen.parts if each.kind == "decode" and each.name.startswith("PIL."))
    if part < LEAST:
        raise DoesNotApply(f"PIL's decoding takes {part:.1%} of a sample's time: there is nothing to gain")
    return part
