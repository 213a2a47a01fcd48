import json
from dataclasses import replace
from fractions import Fraction

import pytest

from explorer_app.exporting.piece_json import piece_from_json, piece_to_json
from explorer_app.exporting.sequence import Piece
from explorer_app.session.adapting import adapt
from explorer_app.session.parameters import parameter
from explorer_app.session.session import Session
from explorer_app.session.session_json import SessionFileError
from tests.helpers.networks import make_stylegan2


def test_a_piece_knows_how_many_classes_its_model_has() -> None:
    session = adapt(Session(), make_stylegan2(resolution=32, w_dim=8, c_dim=3).facts).session
    piece = Piece.of(session, Fraction(10), Fraction(0), Fraction(1))
    data = json.loads(json.dumps(piece_to_json(piece)))
    again = piece_from_json(data, {}).session
    assert parameter("classes/number").write(again, 99).classes == ((2, 1.0),)
    with pytest.raises(SessionFileError, match="number of classes"):
        piece_from_json({**data, "class_count": 0}, {})
    unknown = replace(piece, session=replace(session, model=replace(session.model, class_count=None)))
    assert piece_from_json(piece_to_json(unknown), {}) == piece
