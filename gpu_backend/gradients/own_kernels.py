"""Own kernels for a network's drags and searches on a GPU; where they fail, torch takes their place."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.errors import DeviceError, DeviceMemoryError
from gpu_backend.gradients.discriminator_layers import DiscriminatorLayers
from gpu_backend.gradients.network import DifferentiableNetwork
from gpu_backend.gradients.objective import DragTerms
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.model.spec import NetworkSpec, StyleGAN2Spec

if TYPE_CHECKING:
    from gpu_backend.gradients.gpu.drag import GpuDrag
    from gpu_backend.gradients.gpu.open_network import GpuGradients
    from gpu_backend.gradients.gpu.packed_discriminator import PackedDiscriminator
    from gpu_backend.gradients.gpu.packed_network import PackedNetwork
    from gpu_backend.gradients.gpu.passes import GpuPasses
    from gpu_backend.model.discriminator_file import DiscriminatorWeights

_MOST_TAPS = 8

_logger = logging.getLogger(__name__)


class OwnKernels:
    """The kernels of a GPU for one network; may be called from every thread."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._lock = threading.Lock()
        self._opened: GpuGradients | None = None
        self._side = 0
        self._problem = ""
        self._searches = ""
        """Why searches use torch."""
        self._searches_are_checked = False
        self._features = ""
        """Why features of a discriminator use torch."""
        self._features_are_checked = False
        self._packed: PackedNetwork | None = None
        """The network for searches; kept because packing takes as long as many steps."""
        self._packed_features: tuple[DiscriminatorWeights, PackedDiscriminator] | None = None
        """The discriminator of the newest search, likewise."""

    @property
    def problem(self) -> str:
        """One sentence: why torch computes the drags after all; empty as long as that is not so."""
        return self._problem

    def prepare(self, network: DifferentiableNetwork) -> None:
        """Open the kernels, so that the first drag begins at once. Takes seconds; a failure is in `problem`."""
        with self._lock:
            try:
                self._open(network, 0)
            except DeviceError as error:
                self._give_up(error)

    def drag(self, network: DifferentiableNetwork, terms: DragTerms, *, radius: int, rate: float) -> GpuDrag | None:
        """Begin a drag, which ends the one before; None if the GPU cannot do it, for the reason in `problem`."""
        # Imported here: only a GPU's drag needs the driver.
        from gpu_backend.gradients.gpu.drag import GpuDrag

        with self._lock:
            try:
                opened = self._open(network, terms.block)
                return None if opened is None else GpuDrag(opened, terms, radius=radius, rate=rate)
            except DeviceError as error:
                self._give_up(error)
                return None

    def passes(
        self, network: DifferentiableNetwork, samples: int, *, draft_side: int, draft_samples: int
    ) -> GpuPasses | None:
        """Open the network for a search; None if torch is not on the GPU, or the GPU fails, which the log says."""
        if network.device.type != "cuda":
            return None
        from gpu_backend.gradients.gpu.open_network import open_gpu_gradients
        from gpu_backend.gradients.gpu.passes import GpuPasses

        with self._lock:
            if self._problem or self._searches:
                return None
            try:
                opened = open_gpu_gradients(
                    network,
                    self._gpu,
                    self._packed_pictures(network),
                    samples=samples,
                    few_side=draft_side,
                    more_samples=draft_samples,
                    of_picture=True,
                    is_checked=self._searches_are_checked,
                )
                self._searches_are_checked = True
                return GpuPasses(opened, network.device)
            except DeviceMemoryError as error:
                _logger.info("This search uses torch: %s", error.sentence)  # the next one may need less
            except DeviceError as error:
                self._searches = error.sentence
                _logger.info("Searches use torch: %s", error.sentence)
            return None

    def features(self, network: DifferentiableNetwork, features: PictureFeatures, samples: int) -> PictureFeatures:
        """Return features by own kernels for so many pictures at once; the same if torch has to do it (logged)."""
        stored = features.discriminator
        if stored is None or network.device.type != "cuda":
            return features
        from gpu_backend.gradients.gpu.features import open_gpu_features

        with self._lock:
            if self._features:
                return features
            exact = None
            if not self._features_are_checked:
                exact = PictureFeatures(DiscriminatorLayers(stored, network.mean_w, in_half=False, folded=False))
            try:
                packed = self._packed_discriminator(stored)
                opened = open_gpu_features(packed, self._gpu, samples, network.device, features, exact)
            except DeviceMemoryError as error:
                _logger.info("Features of this search use torch: %s", error.sentence)
                return features
            except DeviceError as error:
                self._features = error.sentence
                _logger.info("Features of searches use torch: %s", error.sentence)
                return features
            self._features_are_checked = True
            return opened

    def _packed_discriminator(self, stored: DiscriminatorWeights) -> PackedDiscriminator:
        from gpu_backend.gradients.gpu.packed_discriminator import pack_discriminator

        if self._packed_features is None or self._packed_features[0] is not stored:
            self._packed_features = stored, pack_discriminator(stored)
        return self._packed_features[1]

    def _packed_pictures(self, network: DifferentiableNetwork) -> PackedNetwork:
        """Return the network's weights up to its pictures, which all searches place."""
        from gpu_backend.gradients.gpu.open_network import packed_network

        if self._packed is None:
            self._packed = packed_network(network, network.spec.resolution)
        return self._packed

    def _open(self, network: DifferentiableNetwork, block: int) -> GpuGradients | None:
        """Return the network on the GPU up to a block, and as far as handles are tracked; None after a failure."""
        from gpu_backend.gradients.gpu.open_network import open_gpu_gradients, packed_network

        side = max(block, network.tracked_resolution)
        if not self._problem and side > self._side:
            self._opened, self._side = None, 0
            self._opened = open_gpu_gradients(network, self._gpu, packed_network(network, side))
            self._side = side
        return self._opened

    def _give_up(self, error: DeviceError) -> None:
        self._problem = error.sentence
        self._opened = None
        _logger.info("Dragging uses torch: %s", error.sentence)


def why_no_kernels(spec: NetworkSpec) -> str:
    """Return in a phrase why own kernels cannot compute gradients of a network; empty if they can."""
    if not isinstance(spec, StyleGAN2Spec):
        return "the network is no StyleGAN2"
    if spec.img_channels != 3:
        return f"the network's pictures have {spec.img_channels} channels"
    if len(spec.resample_filter) > _MOST_TAPS:
        return f"the network's resampling filter has {len(spec.resample_filter)} taps"
    for layer in spec.layers:
        if layer.kind in ("conv", "up_conv") and (layer.activation != "lrelu" or layer.kernel != 3):
            return f"{layer.name} is a {layer.activation} after {layer.kernel} x {layer.kernel} weights"
    return ""
