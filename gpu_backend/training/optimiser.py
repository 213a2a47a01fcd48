"""Adam for one network, with a loss scale for float16."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

from gpu_backend.training.methods import StepMethods
from gpu_backend.training.regularisers import lazy_correction
from gpu_backend.training.replay import Noted

_BETAS = (0.0, 0.99)


class Optimiser:
    """The parameters of a network with their optimiser.

    Parameters
    ----------
    every
        Interval in steps of the lazy penalty of this optimiser; 0 for none.
    norm
        Name of the metric for the norm of the gradient.
    """

    def __init__(
        self,
        network: nn.Module,
        learning_rate: float,
        every: int,
        methods: StepMethods,
        device: torch.device,
        norm: str,
    ) -> None:
        self.parameters = list(network.parameters())
        self._norm, self._set_to_none = norm, methods.set_to_none
        rate, betas = lazy_correction(learning_rate, _BETAS, every)
        self._adam = torch.optim.Adam(
            self.parameters, rate, betas, eps=1e-8, fused=methods.fused, capturable=methods.graphs
        )
        self._scaler = GradScaler(device.type, enabled=methods.low == torch.float16)

    @property
    def loss_scale(self) -> float:
        """Loss scale; with float16, reading it synchronises with the device."""
        return self._scaler.get_scale() if self._scaler.is_enabled() else 1.0

    def add_gradients(self, loss: Tensor) -> None:
        """Add the gradients of a loss."""
        torch.autograd.backward(self._scaler.scale(loss))

    def step(self) -> Noted:
        """Update the parameters and free the gradients; return the gradient norm."""
        self._scaler.unscale_(self._adam)
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        self._scaler.step(self._adam)
        self._scaler.update()
        self._adam.zero_grad(set_to_none=self._set_to_none)
        return {self._norm: norm}

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the states of Adam and of the loss scale."""
        return self._adam.state_dict(), self._scaler.state_dict()

    def load_state(self, adam: dict[str, Any], scaler: dict[str, Any]) -> None:
        """Restore states; learning rate and methods are the current ones, not the saved ones."""
        self._adam.load_state_dict({**adam, "param_groups": self._adam.state_dict()["param_groups"]})
        if scaler and self._scaler.is_enabled():
            self._scaler.load_state_dict(scaler)
