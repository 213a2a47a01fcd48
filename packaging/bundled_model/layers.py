"""Turns sums of named fields into the weights of modulated convolutions.

A StyleGAN2 layer computes, for each output channel o and with style s,

    y_o = clamp(sqrt(2) * lrelu(sum_i W_oi * (s_i x_i) / |W_o s| + b_o))

(Karras et al. 2020, section 2.2). The division by |W_o s| means that an output cannot be louder than its inputs allow,
but it can always be quieter: weight on a channel that is zero everywhere (`NULL`) adds to the norm and nothing else.
So any sum whose coefficients have norm 1 or less can be written down exactly.

A field that changes its sign does not survive lrelu in one channel, so it travels as two, ``name+`` = lrelu(f) and
``name-`` = lrelu(-f); f is their difference divided by 1.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NULL = "null"
GAIN = math.sqrt(2.0)

POINT: Array = np.pad(np.ones((1, 1)), 1)
BOX: Array = np.ones((3, 3))
SOFT: Array = np.outer([1.0, 2.0, 1.0], [1.0, 2.0, 1.0]) / 4.0


@dataclass(frozen=True)
class Term:
    """`amount` times a field of the layer before, seen through a kernel."""

    source: str
    amount: float
    kernel: Array = field(default_factory=lambda: POINT)


@dataclass(frozen=True)
class Style:
    """What multiplies a field on its way in: `mean` plus slopes times the person's standard-normal controls."""

    mean: float = 1.0
    slopes: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Layer:
    """One convolution: names of what comes in, sums that go out."""

    sources: Sequence[str]
    styles: Mapping[str, Style]
    outputs: dict[str, list[Term]] = field(default_factory=dict)
    biases: dict[str, float] = field(default_factory=dict)
    loud: set[str] = field(default_factory=set)

    def keep(self, *names: str) -> None:
        """Pass positive fields on unchanged."""
        for name in names:
            self.outputs[name] = [Term(name, 1.0 / GAIN)]

    def keep_signed(self, *names: str) -> None:
        """Pass signed fields on unchanged."""
        for name in names:
            self.signed(name, through(name, 1.0 / GAIN))

    def signed(self, name: str, terms: Sequence[Term], *, loud: bool = False) -> None:
        """Write a sum that changes its sign as a pair. `loud` takes all the gain there is."""
        self.outputs[f"{name}+"] = list(terms)
        self.outputs[f"{name}-"] = [Term(term.source, -term.amount, term.kernel) for term in terms]
        if loud:
            self.loud |= {f"{name}+", f"{name}-"}

    def flat(self, name: str, value: float) -> None:
        """Write a constant, the same up to the border."""
        self.outputs[name] = []
        self.biases[name] = value / GAIN

    def weights(self, width: int) -> tuple[Array, Array]:
        """Return the weight (width, len(sources), 3, 3) and the bias (width,)."""
        if len(self.outputs) + 1 > width:
            raise ValueError(f"{len(self.outputs) + 1} channels do not fit into {width}")
        weight = np.zeros((width, len(self.sources), 3, 3))
        bias = np.zeros(width)
        null = self.sources.index(NULL)
        for row, (name, terms) in enumerate(self.outputs.items()):
            for term in terms:
                weight[row, self.sources.index(term.source)] += term.amount * term.kernel
            means = np.array([self.styles.get(source, Style()).mean for source in self.sources])
            spread = np.array([sum(v * v for v in self.styles.get(s, Style()).slopes.values()) for s in self.sources])
            power = float((np.square(weight[row]).sum(axis=(1, 2)) * (means**2 + spread)).sum())
            if name in self.loud:
                weight[row] /= math.sqrt(power)
            elif power > 1.0 + 1e-9:
                raise ValueError(f"{name}: coefficients of norm {math.sqrt(power):.3f} are louder than a layer can be")
            else:
                weight[row, null, 1, 1] = math.sqrt(max(0.0, 1.0 - power))
            bias[row] = self.biases.get(name, 0.0)
        return weight, bias

    def names(self, width: int) -> list[str]:
        """Return the names of the outputs in channel order; what is left over is zero and called `NULL`."""
        return [*self.outputs, *[NULL] * (width - len(self.outputs))]


def through(name: str, amount: float, kernel: Array = POINT) -> list[Term]:
    """Return the terms of a signed field."""
    return [Term(f"{name}+", amount / 1.2, kernel), Term(f"{name}-", -amount / 1.2, kernel)]
