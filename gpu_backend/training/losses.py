"""The non-saturating loss (Goodfellow et al. 2014), on logits that are positive for real, in float32."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def generator_loss(fake_logits: Tensor) -> Tensor:
    """Return mean -log sigmoid(D(G(z)))."""
    return functional.softplus(-fake_logits.float()).mean()


def fake_loss(fake_logits: Tensor) -> Tensor:
    """Return mean -log(1 - sigmoid(D(G(z)))): the discriminator's half on generated pictures."""
    return functional.softplus(fake_logits.float()).mean()


def real_loss(real_logits: Tensor) -> Tensor:
    """Return mean -log sigmoid(D(x)): the discriminator's half on real pictures."""
    return functional.softplus(-real_logits.float()).mean()
