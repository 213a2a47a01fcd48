"""A report goes into JSON and comes back whole."""

import json
from dataclasses import replace

import pytest

from gpu_backend.bench.report import FORMAT, from_json, to_json
from gpu_backend.errors import RequestError
from tests.gpu_backend.bench.made_up import made_up_report


def test_json_brings_the_report_back() -> None:
    report = made_up_report()
    assert from_json(json.loads(json.dumps(to_json(report)))) == report


def test_a_file_from_before_compiling_was_measured_is_read() -> None:
    report = made_up_report()
    fields = to_json(report)
    del fields["compiling"]
    assert from_json(fields) == replace(report, compiling=None)


def test_json_names_what_a_reader_looks_for() -> None:
    fields = to_json(made_up_report())
    assert fields["format"] == FORMAT
    assert {"date", "command", "commit", "device", "driver", "versions"} <= set(fields["run"])
    first = fields["measurements"][0]
    assert first["images_per_s"] == pytest.approx(first["batch"] / first["latency_ms"] * 1e3)
    assert {"who", "precision", "batch", "latency_ms", "nbytes", "runs"} <= set(first)
    assert {"layer", "kernel", "time_us", "registers", "roofline_share"} <= set(fields["kernels"][0])
    assert {"copy_bytes_per_s", "flop_per_s", "is_measured"} == set(fields["ceiling"])
    assert {"p50_ms", "p99_ms", "host_ms", "cpu_ms", "nbytes"} <= set(fields["gestures"][0])


@pytest.mark.parametrize("fields", [{}, {"format": 99}, {"format": FORMAT}, {"format": FORMAT, "run": 3}])
def test_other_json_is_refused_in_a_sentence(fields: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        from_json(fields)
