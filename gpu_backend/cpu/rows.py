"""Kernels of the mapping network, which operate on rows of features."""

from __future__ import annotations

import math

import torch

from gpu_backend.cpu.activation import finish_in_place, split_gain
from gpu_backend.cpu.kernel import Kernel, Site
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.plan.plan import Step


class Normalize(Kernel):
    """x * rsqrt(mean(x^2) + 1e-8)."""

    def __init__(self, step: Step, site: Site) -> None:
        self._x, self._out = site.buffers[step.inputs[0]], site.buffers[step.outputs[0]]

    def run(self) -> None:
        scale = self._x.square().mean(dim=1, keepdim=True).add_(EPSILON).rsqrt_()
        torch.mul(self._x, scale, out=self._out)


class ConcatKernel(Kernel):
    """Concatenates the features of its inputs."""

    def __init__(self, step: Step, site: Site) -> None:
        self._parts = [site.buffers[name] for name in step.inputs]
        self._out = site.buffers[step.outputs[0]]

    def run(self) -> None:
        torch.cat(self._parts, dim=1, out=self._out)


class EmbeddingKernel(Kernel):
    """The sum of table rows, weighted by the label."""

    def __init__(self, step: Step, site: Site) -> None:
        self._label, self._out = site.buffers[step.inputs[0]], site.buffers[step.outputs[0]]
        self._table = site.weight(step, "table")[: self._label.shape[1]]

    def run(self) -> None:
        torch.mm(self._label, self._table, out=self._out)


class FullyConnectedKernel(Kernel):
    """A matrix product. Learning-rate factors, and if possible the activation's gain, are folded into the weights."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: FullyConnected = step.attributes
        self._act = attributes.act
        gain, _ = split_gain(attributes.act)
        scale = gain * attributes.lr_multiplier
        self._x, self._out = site.buffers[step.inputs[0]], site.buffers[step.outputs[0]]
        self._weight, self._bias = site.packed.get(
            (step.weights["weight"], "scaled"),
            lambda: (
                (site.weight(step, "weight") * (scale / math.sqrt(attributes.in_features))).t(),
                site.weight(step, "bias") * scale,
            ),
        )

    def run(self) -> None:
        torch.addmm(self._bias, self._x, self._weight, out=self._out)
        finish_in_place(self._out, self._act)
