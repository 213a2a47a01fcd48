"""Whether a request fits the model that is open."""

from __future__ import annotations

from gpu_backend.errors import RequestError
from gpu_backend.model import Model
from gpu_backend.plan.noise_inputs import check_noise
from gpu_backend.recipe import Noise
from gpu_backend.request import RenderRequest


class RequestCheck:
    """Checks all of a request but its blend, which is checked where it is computed.

    Noise that was fine the last time is not looked at again: during a drag it is the same for every frame.
    """

    def __init__(self, model: Model, noise_layer_count: int) -> None:
        self._facts = model.facts
        self._full = model.spec.resolution
        self._resolutions = (*model.spec.draft_resolutions, self._full)
        self._noise_layer_count = noise_layer_count
        self._good_noise = Noise()

    def check(self, request: RenderRequest) -> int:
        """Return the resolution of the request's picture.

        Raises
        ------
        RequestError
            If the request is for another model or asks for what this one does not have.
        """
        if request.model_id != self._facts.model_id:
            raise RequestError(
                f"The request is for the model {request.model_id[:12]!r}, but {self._facts.model_id[:12]!r} is open."
            )
        if request.transform is not None:
            self.refuse_transform()
        if request.noise is not self._good_noise and request.noise != self._good_noise:
            self.check_noise(request.noise)
            self._good_noise = request.noise
        return self.resolution(request.resolution)

    def check_noise(self, noise: Noise) -> None:
        """Raise RequestError if the network cannot have such noise."""
        check_noise(noise, self._noise_layer_count)

    def resolution(self, resolution: int | None) -> int:
        """Return the side of a picture, None standing for full; raise RequestError if the network has none of it."""
        if resolution is None:
            return self._full
        if resolution not in self._resolutions:
            names = ", ".join(str(side) for side in self._resolutions)
            raise RequestError(f"The resolution must be one of {names} for this network, but {resolution} came.")
        return resolution

    def refuse_transform(self) -> None:
        """Raise RequestError: there is no input for one."""
        raise RequestError(f"A {self._facts.family} network takes no transform, but one came; leave it out.")
