"""Real pictures for training: endless, in an order that a seed fixes, resumable at any position."""

from gpu_backend.training.data.opening import open_source as open_source
from gpu_backend.training.data.source import PictureSource as PictureSource
