"""Checks of error sentences."""

from __future__ import annotations

from gpu_backend import LoomError


def assert_one_sentence(error: LoomError, *parts: str) -> None:
    """Check that an error is one plain sentence, says what was expected and what came, and has these parts."""
    sentence = error.sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert ". " not in sentence, sentence
    assert sentence.isprintable(), sentence
    assert len(sentence) < 400, sentence
    assert "expected" in sentence
    assert "but" in sentence
    for part in parts:
        assert part in sentence, sentence
