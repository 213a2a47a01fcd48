"""The command line's words become options."""

import argparse
import shlex

import pytest

from gpu_backend.bench.options import BenchOptions, add_bench_options, bench_options_of
from gpu_backend.bench.shapes import SHAPES, shape_of
from gpu_backend.errors import RequestError


def options(*words: str) -> BenchOptions:
    parser = argparse.ArgumentParser()
    add_bench_options(parser)
    return bench_options_of(parser.parse_args(words), "bench")


def test_nothing_said_leaves_the_choice_open() -> None:
    assert options() == BenchOptions(command="bench")


def test_the_record_names_no_folders_of_the_person() -> None:
    parser = argparse.ArgumentParser()
    add_bench_options(parser)
    words = ["/home/somebody/a.pkl", "--quick", "--out", "/home/somebody/my results", "--commit=/home/somebody/x"]
    command = shlex.join(["bench", *words])
    record = bench_options_of(parser.parse_args(words), command).command
    assert record == "bench a.pkl --quick --out 'my results' --commit=x"


def test_everything_gets_time_unless_told_otherwise() -> None:
    assert options("--all").budget_s > options().budget_s
    assert options("--all", "--budget-s", "60").budget_s == 60.0


def test_lists_name_each_thing_once() -> None:
    assert options("--batch", "8,1,8").batches == (8, 1)
    assert options("--peers", "eager, eager").peers == ("eager",)
    assert options("--peers", "none").peers == ()


def test_a_shape_is_a_name_or_three_numbers() -> None:
    assert shape_of("ffhq1024") is SHAPES["ffhq1024"]
    own = shape_of("64:2048:128")
    assert (own.resolution, own.base, own.maximum) == (64, 2048, 128)


@pytest.mark.parametrize("text", ["", "ffhq", "64:2048", "48:2048:128", "4:64:8", "64:32:8", "64:2048:0", "8192:1:1"])
def test_other_shapes_are_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(RequestError, match="shape"):
        shape_of(text)
