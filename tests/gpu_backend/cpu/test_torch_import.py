"""What a window imports of torch before its first picture, and that nothing is missing afterwards."""

import torch

from gpu_backend.cpu import torch_import
from tests.helpers.own_process import run_python


def test_torch_s_version_is_known_without_importing_it() -> None:
    assert torch_import._version() == torch.__version__


def test_shapes_of_tensors_without_data_are_imported_when_something_builds_on_them_and_not_before() -> None:
    done = run_python("""
        import sys
        from gpu_backend.cpu import torch_import
        torch_import._KNOWN_VERSIONS = ("",)
        torch_import.preload_library()
        torch_import.import_torch()
        import torch
        assert "gpu_backend.cpu.executor" in sys.modules
        assert not {"torch._refs", "torch._decomp", "torch._meta_registrations"} & set(sys.modules)
        assert torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3)).item() == 9
        import torch._refs
        import torch._dynamo
        assert sys.modules["torch._refs"] is torch._refs
        assert torch._refs.add(torch.ones(1), 1).item() == 2
        assert sys.modules["torch._meta_registrations"] is torch._meta_registrations
        assert torch._meta_registrations.__file__
        assert not any(type(finder).__name__ == "_ShapesFirst" for finder in sys.meta_path)
        print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item())
    """)
    assert done.stdout == "2.0\n", done.stderr


def test_another_version_of_torch_is_imported_as_a_whole() -> None:
    done = run_python("""
        import sys
        from gpu_backend.cpu import torch_import
        torch_import._KNOWN_VERSIONS = ("0.1.",)
        torch_import.import_torch()
        print("torch._refs" in sys.modules)
    """)
    assert done.stdout == "True\n", done.stderr


def test_where_torch_is_missing_nothing_happens() -> None:
    done = run_python("""
        import sys
        sys.modules["torch"] = None
        from gpu_backend.cpu import torch_import
        torch_import.preload_library()
        torch_import.import_torch()
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_driver_torch_is_imported_without_the_packages_that_speak_to_one() -> None:
    done = run_python("""
        import sys
        from gpu_backend import driver_library
        from gpu_backend.cpu import torch_import
        torch_import._KNOWN_VERSIONS = ("",)
        torch_import.driver_is_installed = lambda: False
        torch_import.import_torch()
        assert "gpu_backend.cpu.executor" in sys.modules
        assert not [name for name in sys.modules if name.startswith(("cuda.bindings.", "pynvml"))]
        import cuda.bindings.runtime, pynvml
        print(torch_import.driver_is_installed())
    """)
    assert done.stdout == "False\n", done.stderr


def test_packages_that_rendering_does_not_use_are_executed_when_something_uses_them() -> None:
    done = run_python("""
        import sys
        from gpu_backend.cpu import torch_import
        from gpu_backend.cpu.deferred_modules import DeferredModule
        torch_import._KNOWN_VERSIONS = ("",)
        torch_import.import_torch()
        import torch
        deferred = [name for name in torch_import._UNUSED if isinstance(sys.modules[name], DeferredModule)]
        assert deferred == list(torch_import._UNUSED)
        assert not [name for name in sys.modules if name.startswith(("torch.optim.", "torch.distributions."))]
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
        print(torch.export.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),)).module()(torch.zeros(1, 2)).shape)
        assert not [name for name in torch_import._UNUSED if isinstance(sys.modules[name], DeferredModule)
                    and name not in ("torch.nn.intrinsic", "torch.nn.qat", "torch.nn.quantizable")]
    """)
    assert done.stdout == "torch.Size([1, 1])\n", done.stderr
