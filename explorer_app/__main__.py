"""``python -m explorer_app`` does what ``latentloom`` does."""

import sys

from explorer_app.cli import main

if __name__ == "__main__":
    sys.exit(main())
