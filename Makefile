# Each target sets up what it needs by itself; a second call finds it done.

.DEFAULT_GOAL := run
.PHONY: run test test-backend test-app gpu-test gpu-sanitize check bench package clean

PYTHON_IN_VENV := $(or $(LATENTLOOM_VENV),.venv)/bin/python
LINUX := $(filter Linux,$(shell uname -s))
# Starts of the program and the tests' workers share what is compiled, also where the shell says otherwise.
KEEPING_BYTECODE := PYTHONDONTWRITEBYTECODE=

run:  ## open the window on the bundled model (without a display: render the demo sequence)
	@packaging/environment.sh run
	@$(KEEPING_BYTECODE) packaging/run.sh

# Before a release: EVERY_KERNEL=1 FUZZ_EXAMPLES=1000 FULL=1 make test
test:  ## all tests, without a display
	@packaging/environment.sh test
	@$(if $(LINUX),packaging/linux/system-libs.sh --install offscreen)
	@$(KEEPING_BYTECODE) QT_QPA_PLATFORM=offscreen $(PYTHON_IN_VENV) -m pytest -q -n auto $(ARGS)

test-backend:  ## the half of them that needs neither Qt nor its libraries
	@packaging/environment.sh test
	@$(KEEPING_BYTECODE) $(PYTHON_IN_VENV) -m pytest -q -n auto -p no:pytest-qt tests/gpu_backend $(ARGS)

test-app:  ## the other half: the window, the commands, whole sessions, packaging
	@packaging/environment.sh test
	@$(if $(LINUX),packaging/linux/system-libs.sh --install offscreen)
	@$(KEEPING_BYTECODE) QT_QPA_PLATFORM=offscreen $(PYTHON_IN_VENV) -m pytest -q -n auto --ignore tests/gpu_backend tests $(ARGS)

gpu-test:  ## the backend's tests on a GPU, none of which may be skipped for want of one; needs no window
	@packaging/environment.sh test
	@REQUIRE_GPU=1 $(PYTHON_IN_VENV) -m pytest -q tests/gpu_backend $(ARGS)

gpu-sanitize:  ## small plans under compute-sanitizer, which comes with the CUDA toolkit: bad accesses, then races
	@packaging/environment.sh test
	@for tool in memcheck racecheck; do REQUIRE_GPU=1 compute-sanitizer --tool $$tool --error-exitcode 1 \
		$(PYTHON_IN_VENV) -m pytest -q tests/gpu_backend/cuda/test_small_plan.py || exit 1; done

check:  ## formatting, lint, types, layers
	@packaging/environment.sh test
	@$(PYTHON_IN_VENV) -m ruff format --check .
	@$(PYTHON_IN_VENV) -m ruff check .
	@$(PYTHON_IN_VENV) -m mypy
	@$(dir $(PYTHON_IN_VENV))lint-imports

bench:  ## what a frame costs, beside the same network in plain PyTorch
	@packaging/environment.sh bench
	@$(PYTHON_IN_VENV) -m gpu_backend.bench $(ARGS)

package:  ## wheel and sdist in dist/, tried out in an environment of their own
	@packaging/environment.sh test
	@PYTHON="$(PYTHON_IN_VENV)" packaging/package.sh

clean:  ## remove what these targets made, .venv included
	rm -rf .venv dist build latentloom-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
