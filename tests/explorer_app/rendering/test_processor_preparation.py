from explorer_app.rendering.processor_preparation import ProcessorPreparation
from tests.helpers.fake_renderer import Engine


def test_torch_is_imported_only_once_that_is_allowed() -> None:
    engine = Engine()
    preparation = ProcessorPreparation(engine)
    preparation.preload()
    preparation.preload()
    preparation.close()
    assert engine.prepared == ["preload"]


def test_it_is_preloaded_first_and_imported_then() -> None:
    engine = Engine()
    preparation = ProcessorPreparation(engine)
    preparation.preload()
    preparation.import_now()
    assert preparation._thread is not None
    preparation._thread.join()
    assert engine.prepared == ["preload", "import"]
    preparation.close()
    preparation.close()


def test_where_a_gpu_rendered_the_last_time_nothing_is_prepared() -> None:
    engine = Engine()
    preparation = ProcessorPreparation(engine)
    preparation.import_now()
    preparation.close()
    assert engine.prepared == []
