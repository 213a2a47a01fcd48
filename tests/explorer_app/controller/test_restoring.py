from explorer_app.controller.restoring import Restoring, difference, picture_session
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from gpu_backend import Noise, RenderRequest, Tap, Transform
from tests.helpers.fake_controller import facts


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


def test_a_picture_of_another_model_says_which_by_name_and_by_hash() -> None:
    picture = Restoring(Session(), ModelReference("", "cats", "ab" * 32), "The picture walk.png")
    sentence, details = difference(picture, facts(name="dogs", model_id="cd" * 32), ("Two sliders were left out.",))
    assert sentence == (
        "The picture walk.png was made with cats, which was not found; dogs shows it differently until you open cats."
    )
    assert details.splitlines() == [
        f"Its model has the SHA-256 {'ab' * 32}; dogs has {'cd' * 32}.",
        "Two sliders were left out.",
    ]


def test_a_picture_of_another_model_of_the_same_name_says_that_it_is_another_one() -> None:
    picture = Restoring(Session(), ModelReference("", "network", "ab" * 32), "The picture walk.png")
    sentence, _ = difference(picture, facts(name="network", model_id="cd" * 32), ())
    assert sentence == (
        "The picture walk.png was made with another model of the name network, which was not found; this one shows it "
        "differently until you open that."
    )
