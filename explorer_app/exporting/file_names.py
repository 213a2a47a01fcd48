"""Names of files as text, also where the locale is not UTF-8.

In such a locale (``LC_ALL=C`` without Python's UTF-8 mode) Python gives the bytes of a name that it cannot decode as
surrogates, and expects them so in paths. Texts that others read, such as manifests, hold the letters that they mean.
"""

from __future__ import annotations

import sys


def text_of_name(name: str) -> str:
    """Return a file's name as text; bytes that are not UTF-8 stay surrogates.

    Raises
    ------
    UnicodeEncodeError
        If files cannot have the name in this locale.
    """
    encoding = sys.getfilesystemencoding()
    if encoding == "utf-8":
        return name
    data = name.encode(encoding, "surrogateescape")
    has_bytes = any("\udc80" <= letter <= "\udcff" for letter in name)
    return data.decode("utf-8", "surrogateescape") if has_bytes else name


def name_of_text(text: str) -> str:
    """Return the name of a file that `text_of_name` gave as text; a damaged text stays as it is."""
    encoding = sys.getfilesystemencoding()
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        try:
            return text if encoding == "utf-8" else text.encode().decode(encoding, "surrogateescape")
        except UnicodeEncodeError:
            return text
    return text
