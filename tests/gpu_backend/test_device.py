"""Which device is taken, and the sentence that says why."""

from dataclasses import replace
from typing import Any

import pytest

import gpu_backend.device as device
from gpu_backend import DeviceError, DeviceMemoryError, Roofline, find_devices
from gpu_backend.cuda.driver.probe import Gpu, Probe
from tests.helpers.networks import make_stylegan2

MODEL = make_stylegan2()
PROBLEM = "No NVIDIA driver was found; install driver 580 or newer to use an NVIDIA GPU."


def gpu(index: int, name: str = "NVIDIA H200") -> Gpu:
    return Gpu(index, name, "sm_90", "sm_90a", 150 << 30, 132, 227 << 10, 50 << 20, f"GPU-{index}")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_probe", lambda: Probe((), PROBLEM, "", ""))


@pytest.fixture
def with_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_probe", lambda: Probe((gpu(0), gpu(2, "NVIDIA L4")), "", "580.95.05", "13.0"))


class Executors:
    """Stands for the GPU's executor and for the CPU's."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.failing: DeviceError | None = None

    def cuda(self, model: Any, index: int, precision: str) -> "Executors":
        if self.failing is not None:
            raise self.failing
        self.made.append((model, index, precision))
        return self

    def cpu(self, model: Any) -> "Executors":
        self.made.append((model, "cpu"))
        return self


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> Executors:
    fakes = Executors()
    monkeypatch.setattr(device, "_cuda_executor", fakes.cuda)
    monkeypatch.setattr(device, "_cpu_executor", fakes.cpu)
    return fakes


@pytest.mark.usefixtures("without")
def test_without_a_gpu_the_cpu_says_why_there_is_none(executors: Executors) -> None:
    (only,) = find_devices()
    assert (only.id, only.name, only.precision) == ("cpu", "CPU", "fp32")
    expected = "CPU: no NVIDIA driver was found; install driver 580 or newer to use an NVIDIA GPU."
    assert only.reason == expected
    _, facts = device.make_executor(MODEL)
    assert facts == only
    assert executors.made == [(MODEL, "cpu")]


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_an_unknown_precision_is_refused_on_every_device(name: str) -> None:
    with pytest.raises(DeviceError, match="The precision must be one of fp32, bf16x3, tf32, fp16, fp8, not 'fp4'"):
        device.make_executor(MODEL, name, "fp4")  # type: ignore[arg-type]


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:7"])
def test_a_gpu_that_is_requested_and_not_there_is_an_error_with_the_same_sentence(name: str) -> None:
    with pytest.raises(DeviceError, match="none can be used: no NVIDIA driver was found; install driver 580"):
        device.check_device(name)


@pytest.mark.usefixtures("with_two")
def test_gpus_stand_before_the_cpu_with_what_is_known_of_them() -> None:
    first, second, cpu = find_devices()
    assert (first.id, second.id, cpu.id) == ("cuda:0", "cuda:2", "cpu")
    assert (first.name, first.architecture, first.driver) == ("NVIDIA H200", "sm_90", "580.95.05")
    assert (first.memory_nbytes, first.multiprocessors, first.precision) == (150 << 30, 132, "fp16")
    assert cpu.reason == "CPU: it is always available."


@pytest.mark.usefixtures("own_folders")
def test_the_roofline_is_the_measured_one_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks: dict[str, Any] = {"clock_khz": 1_000_000, "memory_clock_khz": 1_000_000, "memory_bus_bits": 4096}
    known = replace(gpu(0), uuid="GPU-measured", **clocks)
    monkeypatch.setattr(device, "_probe", lambda: Probe((known, gpu(1)), "", "580", "13.0"))
    before, unknown, cpu = (found.roofline for found in find_devices())
    assert before == Roofline(1.024e12, 132 * 4096e9, is_measured=False)
    assert unknown is cpu is None
    device.keep_roofline("cpu", 1.0, {"fp16": 1.0})
    device.keep_roofline("cuda:0", 9e11, {"fp16": 4e14})
    assert find_devices()[0].roofline == Roofline(9e11, 4e14, is_measured=True)


@pytest.mark.usefixtures("with_two")
@pytest.mark.parametrize(
    ("name", "index", "reason"),
    [
        ("auto", 0, "NVIDIA H200: it is the first GPU that can run the kernels."),
        ("cuda", 0, "NVIDIA H200: it is the first GPU that can run the kernels."),
        ("cuda:0", 0, "NVIDIA H200: it was chosen."),
        ("cuda:2", 2, "NVIDIA L4: it was chosen."),
    ],
)
def test_a_name_chooses_a_gpu(name: str, index: int, reason: str, executors: Executors) -> None:
    _, facts = device.make_executor(MODEL, name, "fp32")
    assert executors.made == [(MODEL, index, "fp32")]
    assert (facts.id, facts.precision, facts.reason) == (f"cuda:{index}", "fp32", reason)


@pytest.mark.parametrize(
    ("name", "resolution", "precision", "end"),
    [
        ("cuda:0", 64, "fp8", "it was chosen."),
        ("cuda:0", 32, "fp16", "it was chosen, in fp16: this network has no layers for fp8."),
        ("cuda:2", 64, "fp8", "it was chosen."),
        (
            "cuda:3",
            64,
            "fp16",
            "it was chosen, in fp16: fp8 needs a GPU of compute capability 8.9, 9.0 or 12 "
            "(Ada, Hopper, RTX Blackwell).",
        ),
        ("auto", 32, "fp16", "can run the kernels, in fp16: this network has no layers for fp8."),
    ],
)
def test_fp16_takes_the_place_of_fp8_where_there_is_none(
    name: str, resolution: int, precision: str, end: str, executors: Executors, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = replace(gpu(2, "NVIDIA L4"), architecture="sm_89", compile_architecture="sm_89")
    ampere = replace(gpu(3, "NVIDIA A10"), architecture="sm_86", compile_architecture="sm_86")
    monkeypatch.setattr(device, "_probe", lambda: Probe((gpu(0), ada, ampere), "", "580.95.05", "13.0"))
    model = make_stylegan2(resolution=resolution, channel_base=2048, channel_max=32)
    _, facts = device.make_executor(model, name, "fp8")
    assert executors.made[0][2] == facts.precision == precision
    assert facts.reason.endswith(end)


@pytest.mark.usefixtures("with_two")
def test_the_cpu_can_be_requested_beside_gpus(executors: Executors) -> None:
    _, facts = device.make_executor(MODEL, "cpu", "fp16")
    assert executors.made == [(MODEL, "cpu")]
    assert (facts.precision, facts.reason) == ("fp32", "CPU: it was chosen.")


@pytest.mark.usefixtures("with_two")
def test_a_gpu_of_another_number_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(
        DeviceError, match=r"one of cuda:0 \(NVIDIA H200\), cuda:2 \(NVIDIA L4\), but cuda:1 was requested"
    ):
        device.check_device("cuda:1")


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:-1", "cuda:0 ", "CPU", "cuda:9999"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(DeviceError, match="must be one of auto, cpu, cuda, cuda:0"):
        device.check_device(name)


@pytest.mark.parametrize("name", [0, None])
def test_a_device_that_is_no_name_is_a_type_error(name: Any) -> None:
    with pytest.raises(TypeError, match=f"A device is a name like 'auto', 'cpu' or 'cuda:1', not {name}"):
        device.check_device(name)


@pytest.mark.usefixtures("with_two")
def test_a_failing_gpu_falls_back_to_the_cpu_only_if_it_was_not_requested_by_name(
    executors: Executors,
) -> None:
    executors.failing = DeviceMemoryError("The GPU has too little memory.")
    _, facts = device.make_executor(MODEL, "auto")
    assert (facts.id, facts.reason) == ("cpu", "CPU: the GPU has too little memory.")
    with pytest.raises(DeviceMemoryError):
        device.make_executor(MODEL, "cuda")
