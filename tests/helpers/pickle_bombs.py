"""Small pickles that are expensive to read, in time or memory."""

from __future__ import annotations

import struct
from collections.abc import Callable

_TYPE, _SOURCE, _STATE = b"\x8c\x04type", b"\x8c\x0amodule_src", b"\x8c\x05state"
_PERSISTENT = b"ctorch_utils.persistence\n_reconstruct_persistent_obj\n"


def _pickle(*parts: bytes) -> bytes:
    return b"\x80\x04" + b"".join(parts) + b"."


def _put(index: int) -> bytes:
    return b"r" + struct.pack("<I", index)


def _get(index: int) -> bytes:
    return b"j" + struct.pack("<I", index)


def _text(content: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(content)) + content


def _list_of(items: list[bytes], at_once: int = 40_000) -> bytes:
    """A list that is filled from the stack, piece by piece."""
    pieces = (items[first : first + at_once] for first in range(0, len(items), at_once))
    return b"]" + b"".join(b"(" + b"".join(piece) + b"e" for piece in pieces)


def _dict_of(items: list[bytes], at_once: int = 40_000) -> bytes:
    """A dict of keys and values in turn."""
    pieces = (items[first : first + at_once] for first in range(0, len(items), at_once))
    return b"}" + b"".join(b"(" + b"".join(piece) + b"u" for piece in pieces)


def _long(value: int) -> bytes:
    content = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(content)]) + content


def _module(class_name: bytes, state: bytes) -> bytes:
    meta = (_TYPE, b"\x8c\x05class", b"\x8c\x07version", b"K\x06", _SOURCE, b"\x8c\x01x")
    return _PERSISTENT + b"}(" + b"".join(meta) + b"\x8c\x0aclass_name" + _text(class_name) + _STATE + state + b"u\x85R"


def _state(parameters: bytes, modules: bytes, more: bytes = b"") -> bytes:
    return b"}(\x8c\x0b_parameters" + parameters + b"\x8c\x08_buffers}\x8c\x08_modules" + modules + more + b"u"


def _stream(key: bytes, numel: bytes) -> bytes:
    """The five pickles at the head of one storage."""
    head = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."
    head += b"\x80\x02}\x8c\x0dlittle_endian\x88s."
    named = b"\x8c" + bytes([len(key)]) + key
    head += b"\x80\x02(\x8c\x07storagectorch\nFloatStorage\n" + named + b"\x8c\x03cpuJ" + numel + b"NtQ."
    return head + b"\x80\x02]" + named + b"a."


def _snapshot(generator: bytes) -> bytes:
    return b"}\x8c\x05G_ema" + generator + b"s"


def texts_and_sets() -> bytes:
    """The most texts and sets that the budget allows, all memoised."""
    text = "\U0001f600".encode() + b"a" * 4090
    return _pickle(_list_of([b"\x8f"] * 190_000 + [_text(text)] * 4_000 + [_long(1 << 500)] * 250_000))


def filled_sets() -> bytes:
    """Sets of one value each, kept."""
    return _pickle(_list_of([b"\x8f(K\x01\x90"] * 120_000))


def equal_hashes() -> bytes:
    """Keys that are different integers with equal hashes."""
    prime = (1 << 61) - 1
    return _pickle(_dict_of([piece for index in range(1, 120_000) for piece in (_long(index * prime), b"N")]))


def equal_tuple_hashes() -> bytes:
    """Keys that are pairs of numbers."""
    keys = (_long(index) + _long(-index) + b"\x86" for index in range(1, 90_000))
    return _pickle(_dict_of([piece for key in keys for piece in (key, b"N")]))


def long_names() -> bytes:
    """Names of the greatest length, repeatedly."""
    line = b"ctimm." + b"a" * 60 + b"\n" + b"b" * 60 + b"\n"
    return _pickle(_list_of([line] * 120_000))


def kept_names() -> bytes:
    """Short names, each imported again and memoised."""
    return _pickle(_list_of([b"ctimm.a\nb\n"] * 480_000))


def sets_of_one_list() -> bytes:
    """One long list made into a set again and again."""
    items = _list_of([_long(index) for index in range(100_000)])
    return _pickle(
        items, _put(0), b"cbuiltins\nset\n", _put(1), b"0", _list_of([_get(1) + _get(0) + b"\x85R"] * 60_000)
    )


def encodings_of_one_text() -> bytes:
    """One text turned into bytes again and again, all kept."""
    call = _get(0) + _get(1) + b"R"
    return _pickle(
        b"c_codecs\nencode\n", _put(0), _text(b"a" * 4096), b"\x8c\x06latin1\x86", _put(1), _list_of([call] * 120_000)
    )


def modules_of_one_description() -> bytes:
    """One long description made into a network module again and again."""
    keys = [piece for index in range(100_000) for piece in (_text(b"k%d" % index), b"N")]
    call = _get(1) + _get(0) + b"R"
    return _pickle(_dict_of(keys), b"\x85", _put(0), _PERSISTENT, _put(1), _list_of([call] * 60_000))


def modules_of_one_state() -> bytes:
    """One long state made into a network module again and again."""
    keys = [piece for index in range(100_000) for piece in (_text(b"k%d" % index), b"N")]
    meta = b"}(" + _TYPE + b"\x8c\x05class\x8c\x07versionK\x06" + _SOURCE + b"\x8c\x01x\x8c\x0aclass_name\x8c\x01G"
    meta += _STATE + _get(2) + b"u\x85" + _put(0)
    call = _get(1) + _get(0) + b"R"
    return _pickle(_dict_of(keys), _put(2), meta, _PERSISTENT, _put(1), _list_of([call] * 60_000))


def modules_of_one_table() -> bytes:
    """A network of many modules that share one long table of nothing."""
    table = _dict_of([piece for index in range(200_000) for piece in (_text(b"k%d" % index), b"N")])
    child = _module(b"SynthesisBlock", _state(_get(0), b"}")) + _put(1)
    blocks = b"".join(_text(b"b%d" % index) + _get(1) for index in range(250))
    synthesis = _module(b"SynthesisNetwork", _state(b"}", b"}(" + blocks + b"u"))
    children = b"}(\x8c\x09synthesis" + synthesis + b"u"
    return _pickle(table, _put(0), b"0", child, b"0", _snapshot(_module(b"Generator", _state(b"}", children))))


def modules_of_many_tensors() -> bytes:
    """A network of many modules, seven deep, that share one long table of tensors."""
    stream = _stream(b"", bytes(4)) + bytes(8)
    storage = b"ctorch.storage\n_load_from_bytes\nB" + struct.pack("<I", len(stream)) + stream + b"\x85R"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x00\x85K\x01\x85\x89}tR"
    names = [_text(b"a" * 60 + b"%03d" % index) for index in range(256)]
    table = _dict_of([piece for name in names for piece in (name, _get(0))])
    parts = [tensor, _put(0), b"0", table, _put(1), b"0", _module(b"Leaf", _state(_get(1), b"}")), _put(2), b"0"]
    for level in range(3, 8):
        children = _dict_of([piece for name in names[:240] for piece in (name, _get(level - 1))])
        parts += [_module(b"Branch", _state(_get(1), children)), _put(level), b"0"]
    return _pickle(*parts, _snapshot(_module(b"Generator", _state(_get(1), b"}" + names[0] + _get(7) + b"s"))))


def filters_of_one_text() -> bytes:
    """A network whose many filters are small pieces of one long text, which protocol 2 would wrap bytes in."""
    numel = 1 << 20
    stream = _stream(b"1048576", struct.pack("<i", numel)) + struct.pack("<q", numel) + b"a" * 4 * numel
    text = stream.decode("latin-1").encode()
    storage = b"ctorch.storage\n_load_from_bytes\nc_codecs\nencode\n" + _text(text) + b"\x8c\x06latin1\x86R\x85R"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x04K\x04\x86K\x04K\x01\x86\x89}tR"
    state = b"}(\x8c\x0b_parameters}\x8c\x08_buffers}(\x8c\x0fresample_filter" + _get(0) + b"\x8c\x05const" + _get(0)
    child = _module(b"SynthesisBlock", state + b"u\x8c\x08_modules}u") + _put(1)
    blocks = b"".join(_text(b"b%d" % index) + _get(1) for index in range(250))
    synthesis = _module(b"SynthesisNetwork", _state(b"}", b"}(" + blocks + b"u"))
    children = b"}(\x8c\x09synthesis" + synthesis + b"u"
    return _pickle(tensor, _put(0), b"0", child, b"0", _snapshot(_module(b"Generator", _state(b"}", children))))


def storages() -> bytes:
    """The greatest number of empty storages."""
    stream = _stream(b"", bytes(4)) + bytes(8)
    call = _get(0) + b"B" + struct.pack("<I", len(stream)) + stream + b"\x85R"
    return _pickle(b"ctorch.storage\n_load_from_bytes\n", _put(0), _list_of([call] * 19_000))


def memo() -> bytes:
    """One value memoised under the greatest number of indices."""
    return _pickle(b"N", b"".join(_put(index * 7919) for index in range(490_000)))


def unknown_keys() -> bytes:
    """A snapshot with very many unknown parts."""
    keys = [piece for index in range(200_000) for piece in (_text(b"k%d" % index), b"N")]
    return _pickle(_dict_of(keys), b"\x8c\x05G_ema" + _module(b"Generator", _state(b"}", b"}")) + b"s")


def _array(data: bytes, shape: bytes, wrapped: bool = False) -> bytes:
    """A NumPy array of float32; `wrapped` as protocol 2 keeps its bytes."""
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85\x8c\x01b\x87R"
    dtype = b"cnumpy\ndtype\n\x8c\x02f4\x89\x88\x87R(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    content = b"B" + struct.pack("<I", len(data)) + data
    if wrapped:
        content = b"c_codecs\nencode\n" + _text(data) + b"\x8c\x06latin1\x86R"
    return made + b"(K\x01" + shape + dtype + b"\x89" + content + b"tb"


def _tensorflow(variables: bytes, components: bytes = b"}") -> bytes:
    """A TensorFlow network."""
    state = b"}(\x8c\x0dstatic_kwargs}\x8c\x0acomponents" + components + b"\x8c\x09variables" + variables + b"u"
    return b"cdnnlib.tflib.network\nNetwork\n)\x81" + state + b"b"


def variables_of_one_text() -> bytes:
    """A TensorFlow network whose many variables are one long text, which protocol 2 wraps bytes in."""
    numel = 1 << 20
    array = _array(b"a" * 4 * numel, b"J" + struct.pack("<i", numel) + b"\x85", wrapped=True)
    names = [_text(b"synthesis/noise%d" % index) + _get(0) + b"\x86" for index in range(1, 1990)]
    marker = _text(b"synthesis/4x4/Const/const") + _get(0) + b"\x86"
    return _pickle(array, _put(0), b"0", _tensorflow(_list_of([marker, *names])))


def variables_of_one_list() -> bytes:
    """A TensorFlow network with as many variables as the pickle may hold, its components' among them."""
    array = _array(bytes(4), b"K\x01\x85")
    names = [_text(b"v%d" % index) + _get(0) + b"\x86" for index in range(90_000)]
    parts = b"}(\x8c\x09synthesis" + _get(2) + b"\x8c\x07mapping" + _get(2) + b"u"
    inner = _tensorflow(_get(1)) + _put(2) + b"0"
    return _pickle(array, _put(0), b"0", _list_of(names), _put(1), b"0", inner, _tensorflow(_get(1), parts))


def networks_of_one_network() -> bytes:
    """A long tuple of one TensorFlow network."""
    return _pickle(_tensorflow(b"]"), _put(0), b"0(", _get(0) * 40_000, b"t")


def checkpoint_of_one_table() -> bytes:
    """A checkpoint that has one long table of tensors under every name that tools use."""
    stream = _stream(b"", bytes(4)) + bytes(8)
    storage = b"ctorch.storage\n_load_from_bytes\nB" + struct.pack("<I", len(stream)) + stream + b"\x85R"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x00\x85K\x01\x85\x89}tR"
    table = _dict_of([piece for index in range(120_000) for piece in (_text(b"k%d" % index), _get(0))])
    keys = (b"g_ema", b"G_ema", b"generator_smooth", b"generator_ema", b"params_ema", b"g_running", b"state_dict", b"g")
    tables = b"}(" + b"".join(_text(key) + _get(1) for key in keys) + b"u"
    return _pickle(tensor, _put(0), b"0", table, _put(1), b"0", tables[:-1], _text(b"models"), tables, b"u")


def decoder_of_many_names() -> bytes:
    """A state dict with a great many tensors beside those of a decoder."""
    stream = _stream(b"", bytes(4)) + bytes(8)
    storage = b"ctorch.storage\n_load_from_bytes\nB" + struct.pack("<I", len(stream)) + stream + b"\x85R"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x00\x85K\x01\x85\x89}tR"
    names = [_text(b"decoder." + b"k" * 60 + b"%d" % index) + _get(0) for index in range(110_000)]
    marker = _text(b"decoder.input.input") + _get(0)
    return _pickle(tensor, _put(0), b"0", _dict_of([marker, *names], 20_000))


BOMBS: tuple[Callable[[], bytes], ...] = (
    texts_and_sets,
    filled_sets,
    equal_hashes,
    equal_tuple_hashes,
    long_names,
    kept_names,
    sets_of_one_list,
    encodings_of_one_text,
    modules_of_one_description,
    modules_of_one_state,
    modules_of_one_table,
    modules_of_many_tensors,
    filters_of_one_text,
    storages,
    memo,
    unknown_keys,
    variables_of_one_text,
    variables_of_one_list,
    networks_of_one_network,
    checkpoint_of_one_table,
    decoder_of_many_names,
)
