#!/usr/bin/env bash
# Build wheel and sdist into dist/, then install the wheel into an empty environment and render a picture with it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$root"
rm -rf dist
"$python" -m venv "$work/build"
"$work/build/bin/python" -m pip install --quiet --disable-pip-version-check build
"$work/build/bin/python" -m build --outdir dist . >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }

"$python" -m venv "$work/try"
"$work/try/bin/python" -m pip install --quiet --disable-pip-version-check dist/*.whl
cd "$work"
"$work/try/bin/latentloom" render --seeds 0 --outdir "$work/pictures"
[ -s "$work/pictures/seed0000.png" ] || { printf '%s\n' "The installed wheel rendered no picture." >&2; exit 1; }
"$work/try/bin/latentloom" doctor
# The kernels travel as text: whatever the wheel leaves out, no GPU renders with it.
for file in "$root"/gpu_backend/ops/kernels/*.cu "$root"/gpu_backend/ops/kernels/parts/*.cuh "$root"/gpu_backend/cuda/tiles/shipped/*.json; do
    [ -e "$file" ] || continue
    "$work/try/bin/python" - "${file#"$root"/}" <<'PYTHON' || { printf '%s\n' "The wheel lacks ${file#"$root"/}." >&2; exit 1; }
import importlib.util, pathlib, sys
name = pathlib.PurePosixPath(sys.argv[1])
package = pathlib.Path(importlib.util.find_spec(name.parts[0]).origin).parent
sys.exit(not package.joinpath(*name.parts[1:]).is_file())
PYTHON
done
cd "$root"
ls -l dist
