"""Local edits of a differentiable network: bends, offsets of styles, and blends with second latents under masks.

The numbers are those of the plan's steps (`gpu_backend.plan.builder`), in the same order: a layer's output is bent,
then blended. Moves, turns, scales and gains are linear; a threshold passes the gradient of what it keeps; a blend
passes that of the picture's own share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.model.spec import FilteredLayerSpec, NetworkSpec, StyleGAN2Spec, StyleGAN3Spec
from gpu_backend.picture_mask import MASK_SIDE, layer_mask
from gpu_backend.plan.edit_inputs import bend_table, bendable_layers, check_edits, style_lengths
from gpu_backend.plan.stylegan3 import INPUT
from gpu_backend.recipe import Bend, LocalEdits
from gpu_backend.reference.bend_channels import bend_channels
from gpu_backend.reference.blend_samples import enlarged

LayerEdit = Callable[[str, Tensor], Tensor]
"""Called with a layer's name and its output, or the picture after a toRGB; returns what later layers read."""

_MOVING = ("move", "turn", "scale")


class NetworkEdits:
    """The edits of one network, on its device.

    Parameters
    ----------
    second_rows
        Rows of w of the second latents of blends, (blends, num_ws, w_dim); None without blends.
    like
        Of the network's precision and on its device.

    Attributes
    ----------
    style_offsets
        Layer name -> (style length,).
    second_rows
        As given.
    moved_side
        Side of the last layer most of whose channels are moved, turned or scaled; 0 for none. In smaller pictures and
        features, what the picture shows is elsewhere. The full side of the skip architecture does not count: the
        pictures of smaller sides, which are most of the picture, stay there.

    Raises
    ------
    RequestError
        If the edits do not fit the model.
    """

    def __init__(self, spec: NetworkSpec, edits: LocalEdits, second_rows: Tensor | None, like: Tensor) -> None:
        channels, lengths = bendable_layers(spec), style_lengths(spec)
        check_edits(edits, channels, lengths, spec.num_ws)
        self._blends, self.second_rows = edits.blends, second_rows
        self._like = like
        self._tables = {
            layer: self._tensor(bend_table((bend for bend in edits.bends if bend.layer == layer), channels[layer]))
            for layer in dict.fromkeys(bend.layer for bend in edits.bends)
        }
        self.style_offsets = {
            layer: like.new_zeros(lengths[layer])
            for layer in dict.fromkeys(offset.layer for offset in edits.style_offsets)
        }
        for offset in edits.style_offsets:
            self.style_offsets[offset.layer][offset.channel] += offset.amount
        self._blended = {
            layer: tuple(place for place, blend in enumerate(edits.blends) if blend.rows.holds(row))
            for layer, row in _rows_of_layers(spec).items()
        }
        self._masks: dict[tuple[int, str], Tensor] = {}
        self._extents = {
            layer.name: layer.out_size / layer.out_rate for layer in spec.layers if isinstance(layer, FilteredLayerSpec)
        }
        """Widths of the picture that a layer covers, where it has a margin."""
        if isinstance(spec, StyleGAN3Spec):
            self._extents[INPUT] = spec.input.size / spec.input.sampling_rate
        sides = (_side(spec, bend.layer) for bend in edits.bends if _moves(bend, channels))
        is_skip = isinstance(spec, StyleGAN2Spec) and spec.architecture == "skip"
        self.moved_side = max((side for side in sides if not is_skip or side < spec.resolution), default=0)

    def recording(self, kept: dict[str, Tensor]) -> LayerEdit:
        """Return the edit of a run of second latents: it fills `kept` with the layers that are blended."""

        def edit(layer: str, x: Tensor) -> Tensor:
            x = self._bent(layer, x)
            if self._blended.get(layer):
                kept[layer] = x
            return x

        return edit

    def applying(
        self, activations: Mapping[str, Tensor], free: tuple[int, Mapping[str, Tensor]] | None = None
    ) -> LayerEdit:
        """Return the edit of a run of pictures.

        Parameters
        ----------
        activations
            What `recording` kept of `second_rows`, layer name -> (blends, channels, ...).
        free
            A blend whose second latent is not that of `second_rows`, and what `recording` kept of it, (batch, ...).
        """

        def edit(layer: str, x: Tensor) -> Tensor:
            x = self._bent(layer, x)
            for place in self._blended.get(layer, ()):
                second = free[1][layer] if free is not None and place == free[0] else activations[layer][place]
                x = torch.lerp(x, second, self._mask(place, layer, x.shape[-1]))
            return x

        return edit

    def covered(self, layer: str, side: int, free: int | None = None) -> Tensor | None:
        """Return the share of a layer's output that other latents have, (side, side), 0..1; None for nothing.

        Others than the picture's own, or than the second one of the blend `free`.
        """
        places = self._blended.get(layer, ())
        if not places or (free is not None and free not in places):
            return None
        own = self._like.new_ones(side, side)
        for place in places:
            mask = self._mask(place, layer, side)
            if place == free:
                own = mask
            elif free is None or place > free:
                own = own * (1.0 - mask)
        return 1.0 - own

    def _bent(self, layer: str, x: Tensor) -> Tensor:
        table = self._tables.get(layer)
        return x if table is None else bend_channels(x, table)

    def _mask(self, place: int, layer: str, side: int) -> Tensor:
        """Return the share of a second latent at the positions of a layer, (side, side)."""
        key = place, layer
        if key not in self._masks:
            blend = self._blends[place]
            small = layer_mask(blend.mask, min(side, MASK_SIDE), self._extents.get(layer, 1.0), blend.softness)
            self._masks[key] = enlarged(self._tensor(small * np.float32(blend.strength)), side)
        return self._masks[key]

    def _tensor(self, array: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self._like)


def _rows_of_layers(spec: NetworkSpec) -> dict[str, int]:
    """Return the row of w of each layer that can be blended."""
    rows = {layer.name: layer.w_index for layer in spec.layers if layer.w_index >= 0}
    return {INPUT: 0, **rows} if isinstance(spec, StyleGAN3Spec) else rows


def _moves(bend: Bend, channels: Mapping[str, int]) -> bool:
    """Return whether a bend moves what the picture shows: most of a layer's channels."""
    return bend.kind in _MOVING and (not bend.channels or 2 * len(bend.channels) > channels[bend.layer])


def _side(spec: NetworkSpec, name: str) -> int:
    """Return the samples of a layer across the picture; 0 for the input of a StyleGAN3, which all blocks contain."""
    for layer in spec.layers:
        if layer.name == name:
            return layer.out_rate if isinstance(layer, FilteredLayerSpec) else layer.resolution
    return 0
