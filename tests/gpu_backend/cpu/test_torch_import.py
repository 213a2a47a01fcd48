"""What a window imports of torch before its first picture, and that nothing is missing afterwards."""

import importlib.util
import sys
from subprocess import CompletedProcess
from types import SimpleNamespace

import pytest
import torch

from gpu_backend.cpu import torch_import
from tests.helpers.own_process import run_python


def test_torch_s_version_is_known_without_importing_it() -> None:
    assert torch_import._version() == torch.__version__


@pytest.fixture(scope="module")
def one_import() -> CompletedProcess[str]:
    """A process that imports torch as a window does where there is no driver, and says line by line what it finds.

    One for all that is asked of it: the import takes seconds.
    """
    return run_python("""
        import sys
        from gpu_backend import driver_library
        from gpu_backend.cpu import torch_import
        from gpu_backend.cpu.deferred_modules import DeferredModule
        torch_import._KNOWN_VERSIONS = ("",)
        torch_import.driver_is_installed = lambda: False
        torch_import.preload_library()
        torch_import.import_torch()
        import torch
        assert "gpu_backend.cpu.executor" in sys.modules

        assert not [name for name in sys.modules if name.startswith(("cuda.bindings.", "pynvml"))]
        import cuda.bindings.runtime, pynvml
        print("driver", torch_import.driver_is_installed(), flush=True)

        names = [deferral.name for deferral in (*torch_import._UNUSED, torch_import._KERNELS_FOR_GPUS)]
        assert [name for name in names if isinstance(sys.modules[name], DeferredModule)] == names
        assert not [name for name in sys.modules if name.startswith(("torch.optim.", "torch.distributions."))]
        assert not {"torch._refs", "torch._decomp", "torch._meta_registrations"} & set(sys.modules)
        weight = torch.ones(1, 1, 3, 3, requires_grad=True)
        sum = torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), weight)
        sum.backward()
        assert (sum.item(), weight.grad.sum().item()) == (9, 9)
        assert [name for name in names if isinstance(sys.modules[name], DeferredModule)] == names
        import torch.fx.experimental.proxy_tensor  # whose circle of imports works in one order only
        assert torch.vmap(lambda x: x * 2)(torch.ones(3)).sum().item() == 6
        more, less = (lambda x: x + 1), (lambda x: x - 1)
        assert torch.cond(torch.tensor(True), more, less, (torch.ones(1),)).item() == 2
        assert torch.utils.checkpoint.checkpoint(more, torch.ones(1), use_reentrant=False).item() == 2
        import torch._refs
        import torch._dynamo
        assert sys.modules["torch._refs"] is torch._refs
        assert torch._refs.add(torch.ones(1), 1).item() == 2
        assert sys.modules["torch._meta_registrations"] is torch._meta_registrations
        assert torch._meta_registrations.__file__
        assert not any(isinstance(finder, torch_import._First) for finder in sys.meta_path)
        print("shapes", torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item(), flush=True)

        import torch.optim.lr_scheduler
        weight = torch.nn.Parameter(torch.ones(2))
        optimiser = torch.optim.Adam([weight], lr=0.1)
        torch.optim.lr_scheduler.StepLR(optimiser, 1)
        weight.sum().backward()
        optimiser.step()
        assert weight.detach().max() < 1
        assert torch.distributions.Normal(0.0, 1.0).mean == 0
        assert len(torch.utils.data.DataLoader([1, 2, 3], batch_size=2)) == 2
        assert torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])).sum().get_data() == 1
        from torch.nn.quantized import FloatFunctional
        from torch.ao.quantization import QuantStub
        assert torch.quantization.QuantStub is QuantStub
        with torch.profiler.profile() as profile:
            torch.ones(2) + 1
        exported = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),)).module()(torch.zeros(1, 2)).shape
        unused = {"torch._native", "torch.nn.intrinsic", "torch.nn.qat", "torch.nn.quantizable"}
        assert {name for name in names if isinstance(sys.modules[name], DeferredModule)} <= unused
        print("packages", tuple(exported))
    """)


def test_without_a_driver_torch_is_imported_without_the_packages_that_speak_to_one(
    one_import: CompletedProcess[str],
) -> None:
    assert one_import.stdout.splitlines()[:1] == ["driver False"], one_import.stderr


def test_shapes_of_tensors_without_data_are_imported_when_something_builds_on_them_and_not_before(
    one_import: CompletedProcess[str],
) -> None:
    assert one_import.stdout.splitlines()[1:2] == ["shapes 2.0"], one_import.stderr


def test_packages_that_rendering_does_not_use_are_executed_when_something_uses_them(
    one_import: CompletedProcess[str],
) -> None:
    assert one_import.stdout.splitlines()[2:] == ["packages (1, 1)"], one_import.stderr


def test_another_version_of_torch_is_imported_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    imported: list[str] = []
    monkeypatch.setattr(torch_import, "_import_in_part", lambda: imported.append("torch in part"))
    monkeypatch.setattr(torch_import, "importlib", SimpleNamespace(util=importlib.util, import_module=imported.append))
    torch_import.import_torch()
    assert imported == ["torch in part", "gpu_backend.cpu.executor"]
    monkeypatch.setattr(torch_import, "_KNOWN_VERSIONS", ("0.1.",))
    torch_import.import_torch()
    assert imported[2:] == ["gpu_backend.cpu.executor"]


def test_where_torch_is_missing_nothing_happens() -> None:
    done = run_python("""
        import sys
        sys.modules["torch"] = None
        from gpu_backend.cpu import torch_import
        torch_import.preload_library()
        torch_import.import_torch()
    """)
    assert (done.returncode, done.stderr) == (0, "")
