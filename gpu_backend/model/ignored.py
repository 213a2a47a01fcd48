"""Descriptions of the parts of a file that are ignored."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gpu_backend.model.records import Foreign
from gpu_backend.model.refusal import shown

_MOST = 40
_PURPOSES = {
    "G": "the generator as it was in training",
    "D": "the discriminator",
    "augment_pipe": "the augmentation used in training",
    "training_set_kwargs": "settings of the training set",
    "progress": "how far training was",
    "g": "the generator as it was in training",
    "d": "the discriminator",
    "g_optim": "the state of the generator's optimiser",
    "d_optim": "the state of the discriminator's optimiser",
    "ada_aug_p": "how strong augmentation was in training",
    "args": "settings of the training",
    "opts": "settings of the training",
    "generator": "the generator as it was in training",
    "discriminator": "the discriminator",
    "discriminator_smooth": "the discriminator",
}


def describe_ignored(table: Mapping[object, object], used: Collection[str]) -> tuple[str, ...]:
    """Describe the unused entries of a file's table, a phrase for each."""
    left = [key for key in table if key not in used]
    phrases = [_described(key, table[key]) for key in left[:_MOST]]
    return (*phrases, *((f"{len(left) - _MOST} more parts: not known here",) if len(left) > _MOST else ()))


def _described(key: object, part: object) -> str:
    name = key if isinstance(key, str) and key in _PURPOSES else shown(str(key)) if isinstance(key, str) else "a part"
    purpose = _PURPOSES.get(name, "not known here")
    if part is None:
        return f"{name}: empty"
    if isinstance(part, Foreign):
        return f"{name}: {purpose} (foreign class {part.name.module}.{part.name.name})"
    return f"{name}: {purpose}"
