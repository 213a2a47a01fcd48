from collections.abc import Iterator

import pytest

from tests.helpers.one_thread import one_thread_of_torch


@pytest.fixture
def one_thread() -> Iterator[None]:
    with one_thread_of_torch():
        yield
