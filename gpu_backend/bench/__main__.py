"""``python -m gpu_backend.bench``."""

from gpu_backend.bench.command import main

if __name__ == "__main__":
    raise SystemExit(main())
