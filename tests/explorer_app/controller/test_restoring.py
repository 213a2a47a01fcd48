from explorer_app.controller.restoring import picture_session
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.session.resolve import resolve
from gpu_backend import Noise, RenderRequest, Tap, Transform


def test_a_frame_of_a_sequence_comes_back_with_its_noise_and_its_transform() -> None:
    turned = Transform(0.25, -0.5, 30.0, 2.0)
    request = RenderRequest("id", noise=Noise("none"), transform=turned.matrix)
    session = picture_session(PictureDocument(request, "m"))
    assert (session.noise, session.transform) == (request.noise, turned)
    assert resolve(session).transform == turned.matrix
    assert picture_session(PictureDocument(RenderRequest("id"), "m")).transform == Transform()


def test_a_transform_that_no_handles_make_is_left_out() -> None:
    sheared = RenderRequest("id", transform=(1.0, 0.5, 0, 0, 1.0, 0, 0, 0, 1.0))
    assert picture_session(PictureDocument(sheared, "m")).transform == Transform()


def test_a_picture_of_a_layer_comes_back_with_the_layer() -> None:
    tap = Tap("b8.conv1", (2,), 6.0)
    assert picture_session(PictureDocument(RenderRequest("id", tap=tap), "m")).tap == tap
