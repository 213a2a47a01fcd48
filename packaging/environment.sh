#!/usr/bin/env bash
# Make .venv and install Latent Loom into it: environment.sh run | test | bench
#
# "run" installs what the program needs (for NVIDIA GPUs: a compiler for kernels, no CUDA toolkit), "test" also what its
# tests and checks need, "bench" also what draws the plots of measurements. A second call compares one checksum and is
# done. Works with bash 3.2, which is what macOS has.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${LATENTLOOM_VENV:-$root/.venv}
want=${1:-run}
oldest="3.11"

say() { printf '%s\n' "$*" >&2; }

fresh() {  # what an installation depends on: the list of packages, the place, the interpreter
    printf '%s %s %s\n' "$(cksum <"$root/pyproject.toml")" "$root" "$(readlink "$venv/bin/python" 2>/dev/null || true)"
}

installed() { [ -x "$venv/bin/python" ] && [ -f "$venv/installed-$1" ] && [ "$(cat "$venv/installed-$1")" = "$(fresh)" ]; }

find_python() {
    for name in ${PYTHON:-} python3.13 python3.12 python3.14 python3.11 python3 python; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
    say "Latent Loom needs Python $oldest or newer, but none was found: install one (python.org, your system's packages), then call make again."
    return 1
}

make_venv() {
    local python version
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
        say "Python $version lacks its venv module: install it (Debian, Ubuntu: sudo apt-get install python$version-venv), then call make again."
        return 1
    fi
    say "Making ${venv#"$root"/} with Python $version ..."
    rm -rf "$venv"
    "$python" -m venv "$venv"
}

case $want in
    run)
        if installed run || installed test || installed bench; then exit 0; fi
        extra=""
        ;;
    test)
        if installed test; then exit 0; fi
        extra="[dev]"
        ;;
    bench)
        if installed bench; then exit 0; fi
        extra="[bench]"
        ;;
    *) say "environment.sh: expected 'run', 'test' or 'bench', not '$want'."; exit 2 ;;
esac

# A folder that was moved, or whose interpreter is gone, is made again.
if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import pip' >/dev/null 2>&1; then
    make_venv
fi

say "Installing what Latent Loom needs to $want (the first time takes some minutes: torch and Qt are large) ..."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$root$extra"
# pip compiles what it copies, but not this folder. Without bytecode a start takes 0.4 s longer; a folder that cannot be
# written does without.
"$venv/bin/python" -m compileall -q "$root/explorer_app" "$root/gpu_backend" >&2 || true
fresh >"$venv/installed-$want"
