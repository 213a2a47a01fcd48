"""Labelled pictures: a folder with a subfolder for each label, or a CSV of files and labels."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from gpu_backend.errors import LoomError
from gpu_backend.picture_file import PictureFileError, opened_picture, upright_in_eight_bits

_KINDS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"})
_LEAST = 20
_MOST_LABELS = 32


class LabelsError(LoomError):
    """The labelled pictures are missing or invalid."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPictures:
    """Pictures and their factors.

    Attributes
    ----------
    names
        Of the factors: a column of numbers is one; each of three or more labels is one that is 0 or 1; of two labels
        the first alone is, since the other says nothing more. Subfolders are labels, also those called by numbers.
    values
        (n, factors) float64.
    pictures
        (n, 3, side, side) uint8.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    pictures: Tensor


def read_labelled(path: Path, side: int) -> LabelledPictures:
    """Read a folder of subfolders, a folder with a labels.csv, or a CSV file.

    A CSV has a head; its first column names files, beside the CSV or by a whole path, each further one is a factor.

    Raises
    ------
    LabelsError
        If there is no data to learn from.
    """
    table = path / "labels.csv" if path.is_dir() else path
    if path.is_dir() and not table.exists():
        files, labels = _subfolders(path)
        factors = _label_factors("", labels)
    elif table.is_file():
        files, columns = _table(table)
        factors = [factor for name, column in columns.items() for factor in _factors(name, column)]
    else:
        raise LabelsError(f"Labelled pictures are a folder or a .csv file, but {path} is neither.")
    if len(files) < _LEAST:
        raise LabelsError(f"At least {_LEAST} labelled pictures are needed, but {path} has {len(files)}.")
    if not factors:
        raise LabelsError(f"Labels should differ from picture to picture, but those of {path} do not.")
    return LabelledPictures(
        names=tuple(name for name, _ in factors),
        values=np.stack([values for _, values in factors], axis=1),
        pictures=torch.from_numpy(np.stack([_picture(file, side) for file in files])),
    )


def _subfolders(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the pictures and the label of each."""
    files, labels = [], []
    try:
        for inner in sorted(item for item in folder.iterdir() if item.is_dir()):
            found = sorted(item for item in inner.iterdir() if item.suffix.lower() in _KINDS)
            files += found
            labels += [inner.name] * len(found)
    except OSError as error:
        raise LabelsError(
            f"{folder} should be a folder that can be read, but the system says {error.strerror}."
        ) from error
    return files, labels


def _table(path: Path) -> tuple[list[Path], dict[str, list[str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LabelsError(f"{path.name} should be a table as CSV, but cannot be read as one.", str(error)) from error
    if not rows or len(rows[0]) < 2 or len(set(rows[0])) != len(rows[0]) or not all(rows[0][1:]):
        raise LabelsError(f"{path.name} should begin with the names of two columns or more, each another one.")
    if any(len(row) != len(rows[0]) for row in rows):
        raise LabelsError(f"Every line of {path.name} should have {len(rows[0])} fields, but one has not.")
    files = [path.parent / row[0] for row in rows[1:]]
    return files, {name: [row[place] for row in rows[1:]] for place, name in enumerate(rows[0]) if place > 0}


def _factors(name: str, column: Sequence[str]) -> list[tuple[str, NDArray[np.float64]]]:
    """Return the factors of a column, without constant ones."""
    try:
        numbers = np.array([float(text) for text in column])
    except ValueError:
        return _label_factors(f"{name} ", column)
    if not all(math.isfinite(number) for number in numbers):
        raise LabelsError(f"Numbers of {name} should be finite, but one is not.")
    return [(name, numbers)] if float(np.ptp(numbers)) > 0.0 else []


def _label_factors(prefix: str, column: Sequence[str]) -> list[tuple[str, NDArray[np.float64]]]:
    """Return the factors of labels, without constant ones; their names begin with the prefix."""
    labels = sorted(set(column))
    if len(labels) > _MOST_LABELS:
        raise LabelsError(
            f"A column of labels has at most {_MOST_LABELS} different ones, but {prefix.strip() or 'the folder'} has "
            f"{len(labels)}."
        )
    told = labels[:1] if len(labels) == 2 else labels if len(labels) > 2 else []
    return [(f"{prefix}{label}", np.array([float(text == label) for text in column])) for label in told]


def _picture(path: Path, side: int) -> NDArray[np.uint8]:
    """Return the centre crop of a picture, (3, side, side)."""
    try:
        with opened_picture(path, str(path)) as image:
            whole = upright_in_eight_bits(image).convert("RGB")
    except PictureFileError as error:
        raise LabelsError(error.sentence, error.details) from error
    short = min(whole.size)
    left, top = (whole.width - short) // 2, (whole.height - short) // 2
    box = (left, top, left + short, top + short)
    pixels = np.asarray(whole.resize((side, side), Image.Resampling.BOX, box))
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
