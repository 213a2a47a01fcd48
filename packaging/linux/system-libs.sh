#!/usr/bin/env bash
# Find the system libraries that Qt's own libraries and plug-ins lack, and a font if there is none, and install them.
#
#   system-libs.sh [--check | --install] [window | offscreen]
#
# --check    says what is missing; exit status 1 if something essential is.
# --install  installs it with apt-get (sudo only when not root); elsewhere prints the names.
#
# "window" (default) needs the plug-ins of the display that is set, X11 or Wayland; "offscreen" needs no display. What
# only the other plug-ins lack is reported, and installed where that is possible, but is not essential.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${LATENTLOOM_VENV:-$root/.venv}/bin/python
mode=--check
purpose=window
for word in "$@"; do
    case $word in
        --check | --install) mode=$word ;;
        window | offscreen) purpose=$word ;;
        *) printf '%s\n' "system-libs.sh: expected --check, --install, window or offscreen, not '$word'." >&2; exit 2 ;;
    esac
done

say() { printf '%s\n' "$*" >&2; }

# soname, Debian and Ubuntu, Fedora, Arch
table='
font fonts-dejavu-core dejavu-sans-fonts ttf-dejavu
libEGL.so.1 libegl1 libglvnd-egl libglvnd
libGL.so.1 libgl1 libglvnd-glx libglvnd
libGLX.so.0 libglx0 libglvnd-glx libglvnd
libOpenGL.so.0 libopengl0 libglvnd-opengl libglvnd
libX11.so.6 libx11-6 libX11 libx11
libX11-xcb.so.1 libx11-xcb1 libX11-xcb libx11
libdbus-1.so.3 libdbus-1-3 dbus-libs dbus
libdrm.so.2 libdrm2 libdrm libdrm
libfontconfig.so.1 libfontconfig1 fontconfig fontconfig
libfreetype.so.6 libfreetype6 freetype freetype2
libgbm.so.1 libgbm1 mesa-libgbm mesa
libglib-2.0.so.0 libglib2.0-0 glib2 glib2
libgthread-2.0.so.0 libglib2.0-0 glib2 glib2
libgssapi_krb5.so.2 libgssapi-krb5-2 krb5-libs krb5
libwayland-client.so.0 libwayland-client0 libwayland-client wayland
libwayland-cursor.so.0 libwayland-cursor0 libwayland-cursor wayland
libwayland-egl.so.1 libwayland-egl1 libwayland-egl wayland
libxcb.so.1 libxcb1 libxcb libxcb
libxcb-cursor.so.0 libxcb-cursor0 xcb-util-cursor xcb-util-cursor
libxcb-glx.so.0 libxcb-glx0 libxcb libxcb
libxcb-icccm.so.4 libxcb-icccm4 xcb-util-wm xcb-util-wm
libxcb-image.so.0 libxcb-image0 xcb-util-image xcb-util-image
libxcb-keysyms.so.1 libxcb-keysyms1 xcb-util-keysyms xcb-util-keysyms
libxcb-randr.so.0 libxcb-randr0 libxcb libxcb
libxcb-render.so.0 libxcb-render0 libxcb libxcb
libxcb-render-util.so.0 libxcb-render-util0 xcb-util-renderutil xcb-util-renderutil
libxcb-shape.so.0 libxcb-shape0 libxcb libxcb
libxcb-shm.so.0 libxcb-shm0 libxcb libxcb
libxcb-sync.so.1 libxcb-sync1 libxcb libxcb
libxcb-util.so.1 libxcb-util1 xcb-util xcb-util
libxcb-xfixes.so.0 libxcb-xfixes0 libxcb libxcb
libxcb-xinerama.so.0 libxcb-xinerama0 libxcb libxcb
libxcb-xkb.so.1 libxcb-xkb1 libxcb libxcb
libxkbcommon.so.0 libxkbcommon0 libxkbcommon libxkbcommon
libxkbcommon-x11.so.0 libxkbcommon-x11-0 libxkbcommon-x11 libxkbcommon-x11
libz.so.1 zlib1g zlib zlib
libzstd.so.1 libzstd1 libzstd zstd
'

package_of() {  # soname column
    local found
    found=$(printf '%s' "$table" | awk -v soname="$1" -v column="$2" '$1 == soname { print $column; exit }')
    printf '%s\n' "${found:-$1}"
}

# What asks for libraries: Qt's own files, never a list of ours. Plug-ins for other purposes (GTK themes, printing) may
# lack theirs; Qt does without them.
qt=$("$python" -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("PySide6").origin))') || {
    say "system-libs.sh: expected PySide6 in ${python%/bin/python}, but it is not installed there; call make run."
    exit 2
}

core_files() {
    find "$qt" -maxdepth 1 \( -name 'QtCore.*so' -o -name 'QtGui.*so' -o -name 'QtWidgets.*so' -o -name 'QtSvg.*so' \)
    find "$qt/Qt/lib" -maxdepth 1 \( -name 'libQt6Core.so*' -o -name 'libQt6Gui.so*' -o -name 'libQt6Widgets.so*' \
        -o -name 'libQt6DBus.so*' -o -name 'libQt6Svg.so*' \) 2>/dev/null || true
    find "$qt/Qt/plugins/platforms" -name 'libqoffscreen.so' 2>/dev/null || true
}
x11_files() {
    find "$qt/Qt/plugins/platforms" -name 'libqxcb.so' 2>/dev/null || true
    find "$qt/Qt/lib" -maxdepth 1 -name 'libQt6XcbQpa.so*' 2>/dev/null || true
    find "$qt/Qt/plugins/xcbglintegrations" -name '*.so' 2>/dev/null || true
}
wayland_files() {
    find "$qt/Qt/plugins/platforms" -name 'libqwayland*.so' 2>/dev/null || true
    find "$qt/Qt/plugins" -path '*/wayland-*/*' -name '*.so' 2>/dev/null || true
    find "$qt/Qt/lib" -maxdepth 1 -name 'libQt6WaylandClient.so*' 2>/dev/null || true
}

missing_of() {  # file names on standard input -> missing sonames, one a line
    xargs ldd 2>/dev/null | awk '/=> not found/ && $1 !~ /^libQt6/ { print $1 }' | sort -u || true
}

fonts() {  # some line for each font that Qt would find; Qt brings none of its own
    if command -v fc-list >/dev/null 2>&1; then fc-list; return; fi
    find -L /usr/share/fonts /usr/local/share/fonts "${XDG_DATA_HOME:-${HOME:-}/.local/share}/fonts" "${HOME:-}/.fonts" \
        -type f \( -name '*.[ot]tf' -o -name '*.ttc' -o -name '*.pf[ab]' \) 2>/dev/null || true
}
missing_font() {
    [ -n "$(fonts)" ] || printf '%s\n' font
}

x11() { [ -n "${DISPLAY:-}" ] || [ -z "${WAYLAND_DISPLAY:-}" ]; }
wayland() { [ -n "${WAYLAND_DISPLAY:-}" ]; }

essential_now() {
    core_files | missing_of
    [ "$purpose" = window ] || return 0
    missing_font
    if x11; then x11_files | missing_of; fi
    if wayland; then wayland_files | missing_of; fi
}
other_now() {
    [ "$purpose" = window ] || return 0
    if ! x11; then x11_files | missing_of; fi
    if ! wayland; then wayland_files | missing_of; fi
}

essential=$(essential_now)
other=$(other_now)
essential=$(printf '%s\n' "$essential" | awk 'NF' | sort -u)
other=$(printf '%s\n' "$other" | awk 'NF' | sort -u)
[ -n "$essential$other" ] || exit 0

names() {  # column, for all that is missing
    printf '%s\n' "$essential" "$other" | awk 'NF' | while read -r soname; do package_of "$soname" "$1"; done | sort -u | paste -sd ' ' -
}

say "Qt lacks these on this system: $(printf '%s\n' "$essential" "$other" | awk 'NF' | sort -u | paste -sd ' ' -)"

by_hand() {
    say "Install them, then call make again:"
    say "  Debian, Ubuntu: apt-get install $(names 2)"
    say "  Fedora:         dnf install $(names 3)"
    say "  Arch:           pacman -S $(names 4)"
    [ -z "$essential" ]
}

if [ "$mode" = --check ] || ! command -v apt-get >/dev/null 2>&1; then
    by_hand
    exit
fi

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        say "Installing needs root, and sudo is not here."
        by_hand
        exit
    fi
    as_root=sudo
fi

packages=$(names 2 | tr ' ' '\n' | awk '!/\.so/' | paste -sd ' ' -)
say "Installing with apt-get: $packages"
# The names are words without blanks, so they are split on purpose.
# shellcheck disable=SC2086
if ! { $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages >&2; }; then
    say "apt-get could not install all of them."
fi

essential=$(essential_now | awk 'NF' | sort -u)
if [ -n "$essential" ]; then
    other=""
    say "Still missing: $(printf '%s\n' "$essential" | paste -sd ' ' -)"
    by_hand
    exit 1
fi
