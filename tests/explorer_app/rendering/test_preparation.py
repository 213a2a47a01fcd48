from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.preparation import Preparation
from tests.helpers.fake_renderer import Engine


def test_torch_is_imported_only_once_that_is_allowed() -> None:
    engine = Engine()
    preparation = Preparation(engine)
    preparation.preload_processor()
    preparation.preload_processor()
    preparation.close()
    assert engine.prepared == ["preload"]


def test_it_is_preloaded_first_and_imported_then() -> None:
    engine = Engine()
    preparation = Preparation(engine)
    preparation.preload_processor()
    preparation.import_now()
    assert preparation._processor is not None
    preparation._processor.join()
    assert engine.prepared == ["preload", "import"]
    preparation.close()
    preparation.close()


def test_where_a_gpu_rendered_the_last_time_nothing_is_prepared() -> None:
    engine = Engine()
    preparation = Preparation(engine)
    preparation.import_now()
    preparation.close()
    assert engine.prepared == []


def test_the_driver_is_started_once_and_torch_is_not_imported_for_it() -> None:
    engine = Engine()
    preparation = Preparation(engine)
    preparation.preload_gpu(DeviceChoice("cuda:1"))
    preparation.preload_gpu(DeviceChoice("cuda:1"))
    preparation.import_now()
    preparation.close()
    preparation.preload_gpu(DeviceChoice("cuda:0"))
    assert engine.prepared == ["preload cuda:1"]
