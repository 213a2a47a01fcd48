"""What the package does by being imported."""

import os
import subprocess
import sys

import pytest

_ASK = "import explorer_app, os, sys; print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)"


@pytest.mark.parametrize(("said", "found"), [(None, "1"), ("3", "3")])
def test_numpy_is_limited_to_one_thread_before_it_is_loaded_unless_the_user_chose_otherwise(
    said: str | None, found: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if said is not None:
        environment["OPENBLAS_NUM_THREADS"] = said
    done = subprocess.run([sys.executable, "-c", _ASK], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [found, "False"]
