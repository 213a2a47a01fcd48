#!/usr/bin/env bash
# Open the window on the bundled model; where there is no display, render the demo sequence with the same engine.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${LATENTLOOM_VENV:-$root/.venv}/bin/python

if [ "$(uname -s)" = Linux ]; then
    if [ -z "${DISPLAY:-}" ] && [ -z "${WAYLAND_DISPLAY:-}" ]; then
        printf '%s\n' "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so the window cannot open." \
            "Rendering the demo sequence into latentloom-demo/ instead." >&2
        cd "$root"
        exec "$python" -m explorer_app demo
    fi
    "$root/packaging/linux/system-libs.sh" --install window
fi
exec "$python" -m explorer_app "$@"
