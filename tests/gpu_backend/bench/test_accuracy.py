"""How far pictures in a precision are from fp32, as the bench reports it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import Renderer
from gpu_backend.bench import accuracy
from gpu_backend.bench.accuracy import PICTURES, decibels, measure_accuracy, psnr_db
from gpu_backend.bench.report import Accuracy, from_json, to_json
from gpu_backend.bench.table import table
from gpu_backend.plan.plan import Precision
from tests.gpu_backend.bench.made_up import made_up_report
from tests.helpers.networks import make_stylegan2

MODEL = make_stylegan2(resolution=16)


def test_the_ratio_is_that_of_the_mean_square_and_empty_for_equal_pictures() -> None:
    black = np.zeros((4, 4, 3), np.uint8)
    other = black.copy()
    other[0, 0, 0] = 255
    assert psnr_db(other, black) == pytest.approx(10 * math.log10(48))
    assert (decibels(psnr_db(other, black)), decibels(psnr_db(black, black))) == ("16.8", "")


def test_pictures_in_a_precision_are_compared_with_those_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "PICTURES", 2)
    opened: list[Precision] = []
    name = "synthesis.b16.torgb.bias"
    brighter = replace(MODEL, weights={**MODEL.weights, name: MODEL.weights[name] + np.float32(0.25)})

    def open_renderer(precision: Precision) -> Renderer:
        opened.append(precision)
        return Renderer(MODEL if precision == "fp32" else brighter, "cpu")

    found = measure_accuracy(open_renderer, "fp8")
    assert opened == ["fp8", "fp32"]
    assert (found.precision, found.pictures) == ("fp8", 2)
    assert 25 <= found.largest_difference <= 64
    assert found.psnr_db is not None
    assert found.least_psnr_db is not None
    assert 10 < found.least_psnr_db <= found.psnr_db < 40
    same = measure_accuracy(lambda precision: Renderer(MODEL, "cpu"), "fp16")
    assert (same.psnr_db, same.least_psnr_db, same.largest_difference) == (None, None, 0)


def test_it_is_a_line_of_the_report_and_kept_in_its_file() -> None:
    found = Accuracy("fp8", PICTURES, 47.03, 43.91, 29), Accuracy("fp16", PICTURES, None, None, 0)
    report = replace(made_up_report(), accuracy=found)
    lines = table(report).splitlines()
    expected = "fp8 beside fp32, 16 pictures: PSNR 47.0 dB, the worst 43.9 dB, largest difference 29 of 255"
    assert expected in lines
    assert "fp16 beside fp32, 16 pictures: the same bytes" in lines
    assert from_json(to_json(report)).accuracy == found
