"""What is handed to a kernel has the number, kind and type of its parameters, and layouts are as it reads them."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.parameters import declared_parameters
from gpu_backend.training.kernels import act as kernels, filters, launcher
from gpu_backend.training.kernels.recipe import TYPES, TrainingKernel

ACT = BiasAct.of_layer("lrelu", 1.0, 181.02)


class Launches:
    """Takes the place of the GPU: checks arguments against parameters, and keeps them by the parameters' names."""

    def __init__(self) -> None:
        self.kernels: list[TrainingKernel] = []
        self.grids: list[tuple[int, int, int]] = []
        self.given: list[dict[str, Tensor | int | float | None]] = []

    def __call__(
        self, kernel: TrainingKernel, grid: tuple[int, int, int], arguments: Mapping[str, Tensor | int | float | None]
    ) -> None:
        PackedArguments(kernel.parameters, {name: launcher._value(one) for name, one in arguments.items()})
        defines = dict(kernel.defines)
        for type_, parameter in declared_parameters(kernel.stem, kernel.source, kernel.headers, defines):
            kind, argument = type_.replace("const ", "").split(" ")[0], arguments[parameter]
            if isinstance(argument, Tensor):
                number = 0 if kind == "float*" else int(defines["TYPE"])
                assert TYPES[argument.dtype] == number, parameter
                is_picture = argument.ndim == 4 and kind == "T*"
                assert argument.is_contiguous(memory_format=torch.channels_last) or not is_picture, parameter
                assert argument.is_contiguous() or is_picture, parameter
        self.kernels.append(kernel)
        self.grids.append(grid)
        self.given.append(dict(arguments))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    noted = Launches()
    monkeypatch.setattr(kernels, "launch", noted)
    monkeypatch.setattr(filters, "launch", noted)
    monkeypatch.setattr(kernels, "strips_of", lambda x, vector: (3, 32))
    return noted


def test_a_layer_and_its_gradients(launches: Launches) -> None:
    x = torch.randn(2, 16, 6, 6, dtype=torch.bfloat16)  # another layout than kernels read
    scale, noise, strength, bias = torch.randn(16, 2).t(), torch.randn(2, 1, 6, 6), torch.tensor(0.1), torch.randn(16)
    y = kernels.layer(x, scale, noise, strength, bias, ACT)
    assert y.is_contiguous(memory_format=torch.channels_last)
    dx, ds, dr, db = kernels.gradients(x, x, y, scale, noise, ACT, (True, True, True))
    assert dx.shape == x.shape
    assert [one.shape for one in (ds, dr, db) if one is not None] == [(2, 16), (), (16,)]
    assert kernels.gradients(x, None, y, None, None, ACT, (False, False, False))[1:] == (None, None, None)
    d_dy, d_x, d_s = kernels.second_gradients(x, x, y, scale, ACT, x, scale)
    assert [one.shape for one in (d_dy, d_x, d_s) if one is not None] == [x.shape, x.shape, (2, 16)]
    assert kernels.second_gradients(x, None, y, None, ACT, x, None)[1:] == (None, None)
    bounds = [given["bound"] for given in launches.given]
    assert bounds == [181.0] * 5, "what a result in bfloat16 is clamped to"
    assert launches.given[0]["noise_step"] == 36
    kernels.layer(x, None, noise[:1], strength, None, BiasAct())
    assert launches.given[-1]["noise_step"] == 0, "the same noise for all"
    assert launches.given[-1]["bound"] == float("inf")


def test_filters(launches: Launches) -> None:
    for kind, pad, sides in (("same", 1, (5, 7)), ("same", 2, (7, 9)), ("down", 1, (3, 4)), ("up", 1, (12, 16))):
        y = filters.run_filter(torch.randn(2, 3, 6, 8), kind, pad, 4.0)  # type: ignore[arg-type]
        assert tuple(y.shape) == (2, 3, *sides)
        given = launches.given[-1]
        assert (given["height"], given["width"], given["to_height"], given["to_width"]) == (6, 8, *sides)
    assert launches.grids[-1] == (1, 1, 2)


def test_strips_cover_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        multi_processor_count = 132

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    for shape in ((8, 64, 256, 256), (1, 512, 4, 4), (8, 512, 32, 32), (2, 3, 64, 64)):
        x = torch.empty(shape, device="meta", dtype=torch.bfloat16)
        vector = 8 if shape[1] % 8 == 0 else 1
        strips, strip = launcher.strips_of(x, vector)
        pixels = shape[2] * shape[3]
        assert (strips - 1) * strip < pixels <= strips * strip
        assert strip % launcher.lanes_of(shape[1], vector) == 0


def test_the_processor_has_no_use_for_kernels() -> None:
    assert not launcher.can_launch(torch.zeros(1, 8, 4, 4))
