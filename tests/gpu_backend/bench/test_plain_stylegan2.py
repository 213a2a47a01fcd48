"""The plain network is the network that ours is, so that comparing times means something."""

from dataclasses import replace

import numpy as np
import torch

from gpu_backend.bench.plain_stylegan2 import PlainPicture, PlainSynthesis, StyledConv, plain_problem
from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import Shape
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import as_stylegan2

MODEL = as_stylegan2(random_model(Shape("tiny", 32, 256, 16, w_dim=12)))


def peer_with_our_weights() -> PlainSynthesis:
    weights = MODEL.weights
    peer = PlainSynthesis(MODEL.spec)
    peer.const.copy_(torch.from_numpy(weights["synthesis.b4.const"]))
    convs, rgbs = iter(peer.convs), iter(peer.rgbs)
    for layer in MODEL.spec.layers:
        module = next(rgbs if layer.kind == "to_rgb" else convs)
        assert isinstance(module, StyledConv)
        name = f"synthesis.{layer.name}"
        weight = torch.from_numpy(weights[f"{name}.weight"])
        module.weight.copy_(weight.transpose(0, 1) if module.up else weight)
        module.squares.copy_(weight.square().sum((2, 3)))
        module.affine_weight.copy_(torch.from_numpy(weights[f"{name}.affine.weight"]) / 12**0.5)
        module.affine_bias.copy_(torch.from_numpy(weights[f"{name}.affine.bias"]))
        module.bias.copy_(torch.from_numpy(weights[f"{name}.bias"]))
        if layer.has_noise:
            module.noise.copy_(torch.from_numpy(weights[f"{name}.noise_const"]))
    return peer


def test_the_peer_computes_the_same_network_and_the_same_bytes() -> None:
    ws = np.random.default_rng(0).standard_normal((2, MODEL.spec.num_ws, 12), dtype=np.float32)
    bound = CpuExecutor(MODEL.weights, threads=1).bind(build_synthesis_plan(MODEL.spec, "random", batch=2))
    outputs = bound.run({"ws": ws}, outputs=("image", "pixels"))
    ours = outputs["image"].transpose(0, 3, 1, 2)
    picture = PlainPicture(MODEL.spec)
    picture.synthesis = peer_with_our_weights()
    theirs = picture.synthesis(torch.from_numpy(ws)).numpy()
    assert np.abs(ours - theirs).max() < 1e-4 * max(1.0, np.abs(theirs).max())
    pixels = picture(torch.from_numpy(ws)).numpy()
    assert pixels.shape == outputs["pixels"].shape
    assert np.abs(pixels.astype(int) - outputs["pixels"].astype(int)).max() <= 1


def test_half_precision_stays_finite_with_large_styles() -> None:
    conv = StyledConv(512, 8, 3, 4, 8, up=False, to_rgb=False).to(torch.bfloat16)
    conv.affine_bias.fill_(300.0)
    y = conv(torch.randn(1, 512, 4, 4).bfloat16(), torch.randn(1, 8).bfloat16())
    assert torch.isfinite(y).all()


def test_a_network_that_the_peer_is_not_is_named() -> None:
    assert plain_problem(MODEL.spec) == ""
    assert "resnet" in plain_problem(replace(MODEL.spec, architecture="resnet"))
    assert "filter" in plain_problem(replace(MODEL.spec, resample_filter=(0.25, 0.5, 0.25)))
    layers = tuple(replace(layer, activation="relu") for layer in MODEL.spec.layers)
    assert "leaky ReLU" in plain_problem(replace(MODEL.spec, layers=layers))
