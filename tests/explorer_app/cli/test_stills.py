"""Pictures that are encoded while the next are rendered; the command line is in `test_render.py`."""

import io
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from explorer_app.cli import stills
from explorer_app.cli.console import Console
from explorer_app.cli.source import Source
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.picture_document import PictureDocument, document_to_text
from explorer_app.rendering.renderer_like import DeviceLike, PendingLike
from explorer_app.session.session import ModelReference
from gpu_backend import Frame, LoomError, Renderer, RenderRequest, open_renderer
from tests.helpers.requests import request_for

_PATIENCE_S = 30.0


class FailingRenderer:
    """Fails at the third picture."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._number = 0
        self.has_failed = threading.Event()

    @property
    def device(self) -> DeviceLike:
        return self._renderer.device

    def render(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Frame:
        self._number += 1
        if self._number == 3:
            self.has_failed.set()
            raise LoomError("The device is lost.")
        return self._renderer.render(request)

    def submit(self, request: RenderRequest) -> PendingLike:
        raise AssertionError


def test_pictures_before_the_one_that_fails_are_written_although_they_wait_for_an_encoder(
    networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_renderer(networks / "plain.safetensors", device="cpu")) as real:
        renderer = FailingRenderer(real)

        def text_after_the_failure(document: PictureDocument) -> str:
            assert renderer.has_failed.wait(_PATIENCE_S)
            return document_to_text(document)

        monkeypatch.setattr(stills, "document_to_text", text_after_the_failure)
        reference = ModelReference(name="plain", model_id=real.facts.model_id)
        sources = [Source(Path("a.png"), request_for(real), reference, None)] * 3
        targets = [tmp_path / f"{number}.png" for number in range(3)]
        with pytest.raises(LoomError, match="lost"):
            stills.render_stills(sources, targets, PictureFormat(), None, 1, renderer, Console(io.StringIO()))
    assert [target.exists() for target in targets] == [True, True, False]
