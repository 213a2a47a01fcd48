"""Training pictures as an endless stream in an order that a seed determines, resumable at any position."""

from gpu_backend.training.data.opening import open_source as open_source
from gpu_backend.training.data.source import PictureSource as PictureSource
