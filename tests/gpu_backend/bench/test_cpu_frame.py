"""The benchmark runs, compares like with like, and prints its verdict."""

import numpy as np
import pytest
import torch

from gpu_backend.bench.cpu_frame import main
from gpu_backend.bench.plain_stylegan2 import PlainSynthesis, StyledConv
from gpu_backend.bench.random_model import random_network
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.stylegan2 import build_synthesis_plan


def test_the_peer_computes_the_same_network() -> None:
    spec, weights = random_network(32, 256, 16, w_dim=12)
    peer = PlainSynthesis(32, 256, 16, 12)
    peer.const.copy_(torch.from_numpy(weights["synthesis.b4.const"]))
    convs, rgbs = iter(peer.convs), iter(peer.rgbs)
    for layer in spec.layers:
        module = next(rgbs if layer.kind == "to_rgb" else convs)
        assert isinstance(module, StyledConv)
        name = f"synthesis.{layer.name}"
        weight = torch.from_numpy(weights[f"{name}.weight"])
        module.weight.copy_(weight)
        module.squares.copy_(weight.square().sum((2, 3)))
        module.affine_weight.copy_(torch.from_numpy(weights[f"{name}.affine.weight"]) / 12**0.5)
        module.affine_bias.copy_(torch.from_numpy(weights[f"{name}.affine.bias"]))
        module.bias.copy_(torch.from_numpy(weights[f"{name}.bias"]))
        if layer.has_noise:
            module.noise.copy_(torch.from_numpy(weights[f"{name}.noise_const"]))
    ws = np.random.default_rng(0).standard_normal((1, spec.num_ws, 12), dtype=np.float32)
    bound = CpuExecutor(weights, threads=1).bind(build_synthesis_plan(spec, "random"))
    ours = bound.run({"ws": ws}, outputs=("image",))["image"].transpose(0, 3, 1, 2)
    theirs = peer(torch.from_numpy(ws)).numpy()
    assert np.abs(ours - theirs).max() < 1e-4 * max(1.0, np.abs(theirs).max())


def test_it_prints_steps_both_contenders_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    threads = str(torch.get_num_threads())
    assert main(["--resolution", "16", "--base", "128", "--max", "8", "--threads", threads, "--runs", "3"]) == 0
    printed = capsys.readouterr().out
    assert "synthesis.b16.conv0" in printed
    assert "plain PyTorch, eager" in printed
    assert "times as fast" in printed.splitlines()[-1]
