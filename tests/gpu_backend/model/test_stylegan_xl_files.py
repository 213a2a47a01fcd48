"""StyleGAN-XL snapshots and converted files, made here from the facts of the format."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend import Model, ModelFileError, UnsupportedModelError, read_model, write_safetensors
from tests.gpu_backend.model.test_nvidia_files import assert_same_network
from tests.helpers import stylegan_xl_file
from tests.helpers.network_file import foreign_discriminator, persistent, write_nvidia_pickle
from tests.helpers.networks import make_stylegan2
from tests.helpers.pickle_writer import Call, Global, PickleWriter, dill_attribute
from tests.helpers.sentences import assert_one_sentence
from tests.helpers.stylegan3 import R
from tests.helpers.stylegan_xl import make_stylegan_xl
from tests.helpers.stylegan_xl_file import dill_array
from tests.helpers.torch_file import save_torch

NETWORKS: dict[str, dict[str, Any]] = {
    "stem": {},
    "stem, no classes, grey": {"c_dim": 0, "img_channels": 1},
    "grown once": {"resolution": 32, "c_dim": 7},
    "grown twice, R, no classes": {"resolution": 64, "c_dim": 0, **R},
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_gives_the_network_back(protocol: int, network: str, tmp_path: Path) -> None:
    made = make_stylegan_xl(seed=protocol, **NETWORKS[network])
    path = write_nvidia_pickle(
        tmp_path / "n.pkl", made, protocol=protocol, location="cuda:0", extra={"D": foreign_discriminator()}
    )
    model = read_model(path)
    assert_same_network(model, made)
    assert model.facts.warnings == ()


@pytest.mark.parametrize("container", ["pickle", "zip", "stream"])
def test_every_container_gives_the_network_back(container: Any, tmp_path: Path) -> None:
    made = make_stylegan_xl(resolution=32)
    path = write_nvidia_pickle(tmp_path / "n.pt", made, container=container, channels_last=True, location="cuda:0")
    assert_same_network(read_model(path), made)


@pytest.mark.parametrize("network", NETWORKS)
def test_converting_gives_the_same_network_back(network: str, tmp_path: Path) -> None:
    made = make_stylegan_xl(**NETWORKS[network])
    write_safetensors(made, tmp_path / "n.safetensors")
    model = read_model(tmp_path / "n.safetensors")
    assert_same_network(model, made)
    assert model.facts.family == "StyleGAN-XL"


def test_the_facts_of_the_model(tmp_path: Path) -> None:
    made = make_stylegan_xl(resolution=32)
    facts = read_model(write_nvidia_pickle(tmp_path / "n.pkl", made)).facts
    assert (facts.family, facts.architecture) == ("StyleGAN-XL", "T")
    assert facts.flavour == "StyleGAN-XL repository, super-resolution"
    assert (facts.c_dim, facts.z_dim, facts.w_dim, facts.mapping_layers) == (4, 6, 8, 2)
    assert (facts.resolution, facts.num_ws) == (32, len(made.spec.layers) + 1)
    assert facts.has_transform
    assert [layer.name for layer in facts.layers] == ["input", *(layer.name for layer in made.spec.layers)]
    assert facts.parameters == sum(a.size for n, a in made.weights.items() if n.endswith(("weight", "bias")))
    assert "/home/a" not in repr(facts), "where the smaller network lay is nobody's business"


def test_the_table_of_classes_of_a_network_without_any_is_left_alone(tmp_path: Path) -> None:
    model = read_model(write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan_xl(c_dim=0)))
    assert model.facts.flavour == "StyleGAN-XL repository"
    assert "mapping.embed.weight" not in model.weights
    assert "mapping.embed: a table of classes, which this network has not" in model.facts.ignored


def test_a_grown_network_may_say_of_itself_what_its_stem_was_and_a_stem_may_not(tmp_path: Path) -> None:
    edits = {"num_ws": 12, "synthesis.num_ws": 12, "synthesis.num_layers": 10, "synthesis.img_resolution": 16}
    made = make_stylegan_xl(resolution=32)
    assert_same_network(read_model(write_nvidia_pickle(tmp_path / "n.pkl", made, edits=edits)), made)
    for edit in edits.items():
        stem = make_stylegan_xl(stem_resolution=32, resolution=32)
        with pytest.raises(ModelFileError) as caught:
            read_model(write_nvidia_pickle(tmp_path / "n.pkl", stem, edits=dict([edit])))
        assert_one_sentence(caught.value, f"{edit[0]} to be")


@pytest.mark.parametrize(
    ("attribute", "value", "part"),
    [
        ("img_resolution", 64, "img_resolution to be 32"),
        ("c_dim", 5, "c_dim to be 4"),
        ("mapping.num_ws", 3, "mapping.num_ws to be 8"),
        ("mapping.c_dim", 3, "mapping.c_dim to be 4"),
        ("mapping.embed_proj.activation", "linear", "mapping.embed_proj.activation to be 'lrelu'"),
        ("mapping.embed_proj.bias_gain", 0.01, "mapping.embed_proj.bias_gain to be 1"),
        ("synthesis.layer_names", [f"L{index}_36_6" for index in range(7)], "to list the layers"),
        ("synthesis.L4_52_4.in_size", dill_array([52, 52]), "in_size to be [36, 36]"),
        ("synthesis.L4_52_4.in_size", dill_array([0] * 99), "at most 64 numbers"),
        ("synthesis.L4_52_4.out_size", dill_array([float("inf")] * 2, "f8"), "out_size to be [52, 52]"),
        ("synthesis.L4_52_4.tmp_sampling_rate", 2**40, "sampling rates in L4_52_4"),
        ("synthesis.output_scale", -1.0, "a number above 0"),
    ],
)
def test_an_attribute_that_contradicts_the_tensors_refuses_the_file(
    attribute: str, value: Any, part: str, tmp_path: Path
) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan_xl(resolution=32), edits={attribute: value})
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)


@pytest.mark.parametrize(
    ("name", "shape", "part"),
    [
        ("mapping.embed.weight", (3, 10), "a row of mapping.embed.weight for each of 4 classes"),
        ("mapping.embed.weight", (7, 9), "mapping.embed_proj.weight of shape (6, 9)"),
        ("mapping.embed.weight", (7,), "mapping.embed.weight to have 2 dimensions"),
        ("mapping.embed.weight", (0, 10), "something in it"),
        ("mapping.embed_proj.weight", (13, 10), "room for"),
        ("mapping.embed_proj.bias", (5,), "mapping.embed_proj.bias of shape (6,)"),
        ("mapping.w_avg", (8,), "mapping.w_avg to have 2 dimensions"),
        ("mapping.w_avg", (4, 7), "mapping.w_avg of shape (4, 8)"),
        ("mapping.w_avg", (8, 8), "each of 8 classes"),
        ("mapping.w_avg", (3, 8), "c_dim to be 3"),
    ],
)
def test_a_tensor_of_another_shape_refuses_the_file(
    name: str, shape: tuple[int, ...], part: str, tmp_path: Path
) -> None:
    made = make_stylegan_xl()
    changed = with_weights(made, {name: np.ones(shape, np.float32)})
    with pytest.raises(ModelFileError) as caught:
        read_model(write_nvidia_pickle(tmp_path / "n.pkl", changed))
    assert_one_sentence(caught.value, part)


def with_weights(model: Model, changes: dict[str, np.ndarray]) -> Model:
    return replace(model, weights={**model.weights, **changes})


def embedding(**state: Any) -> Call:
    return Call(Global("torch.nn.modules.sparse", "Embedding"), (), state=state, is_new=True)


@pytest.mark.parametrize(
    ("table", "part"),
    [
        (embedding(), "it holds something else"),
        (embedding(_parameters=[1]), "it holds something else"),
        (embedding(_parameters={}), "it holds something else"),
        (embedding(_parameters={"weight": None}), "it holds something else"),
        (embedding(_parameters={"weight": 1.0}), "it holds something else"),
        (Call(Global("torch.nn.modules.sparse", "Embedding"), (7, 10), is_new=True), "it holds something else"),
        (Call(Global("torch.nn.modules.linear", "Linear"), (), state={}, is_new=True), "the foreign class"),
        (Call(Global("torch.nn.modules.sparse", "EmbeddingBag"), (), state={}, is_new=True), "EmbeddingBag"),
        (persistent("FullyConnectedLayer", {"_parameters": {}, "_buffers": {}, "_modules": {}}), "there is none"),
        (None, "there is none"),
    ],
)
def test_another_thing_in_place_of_the_table_refuses_the_file(table: Any, part: str, tmp_path: Path) -> None:
    made = make_stylegan_xl()
    path = tmp_path / "n.pkl"
    tables = {"embed": table} if table is not None else {}
    proj = persistent("FullyConnectedLayer", {"_parameters": {}, "_buffers": {}, "_modules": {}})
    edits = {"mapping._modules": {**tables, "embed_proj": proj}}
    with pytest.raises(ModelFileError) as caught:
        read_model(write_nvidia_pickle(path, made, edits=edits))
    assert_one_sentence(caught.value, part)


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ({"num_embeddings": 8}, "mapping.embed.num_embeddings to be 7"),
        ({"embedding_dim": "wide"}, "mapping.embed.embedding_dim to be 10"),
        ({"max_norm": 1.0}, "rows are scaled"),
    ],
)
def test_a_table_that_contradicts_itself_or_is_scaled_refuses_the_file(
    said: dict[str, Any], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = stylegan_xl_file.class_table
    monkeypatch.setattr(stylegan_xl_file, "class_table", lambda table, tensor: original(table, tensor, **said))
    with pytest.raises(ModelFileError) as caught:
        read_model(write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan_xl()))
    assert_one_sentence(caught.value, part)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (Call(Global("dill._dill", "_create_array"), ()), "plain NumPy arrays"),
        (Call(Global("dill._dill", "_load_type"), ("CodeType",)), "nothing was run"),
        (Call(Global("dill._dill", "_load_type"), ("exec",)), "nothing was run"),
        (Call(Global("dill._dill", "_create_type"), ("a",)), "dill._dill _create_type"),
        (Call(Global("dill._dill", "_create_function"), ("a",)), "dill._dill _create_function"),
        (Call(Global("torch.nn.modules.sparse", "Embedding"), (), state={}), "mapping.embed"),
    ],
)
def test_other_records_of_dill_refuse_the_file(value: Any, part: str, tmp_path: Path) -> None:
    extra = {"mapping._modules": {"embed": value}}
    with pytest.raises(ModelFileError) as caught:
        read_model(write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan_xl(), edits=extra))
    assert_one_sentence(caught.value, part)


MODULES = (
    "numpy.core.multiarray",
    "numpy.core._multiarray_umath",
    "numpy._core.multiarray",
    "numpy._core._multiarray_umath",
)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(("protocol", "container"), [(3, "pickle"), (4, "pickle"), (2, "zip"), (2, "stream")])
def test_files_of_the_training_loop_give_the_network_back(
    module: str, protocol: int, container: Any, tmp_path: Path
) -> None:
    """Dill 0.3.4 writes NumPy's helpers as attributes of a module that it imports."""
    made = make_stylegan_xl(resolution=32)
    path = write_nvidia_pickle(
        tmp_path / "n.pkl",
        made,
        protocol=protocol,
        container=container,
        dill_module=module,
        extra={"D": dilled_discriminator()},
    )
    model = read_model(path)
    assert_same_network(model, made)
    assert model.facts.warnings == ()
    calls = {name for name in model.facts.names_requested if name.startswith(("numpy", "dill._dill _get"))}
    public = module.replace("_multiarray_umath", "multiarray")
    assert calls == {
        "dill._dill _get_attr",
        "numpy dtype",
        "numpy ndarray",
        f"{public} scalar",
        f"{public} _reconstruct",
    }


def dill_call(name: str, *arguments: Any) -> Call:
    return Call(Global("dill._dill", name), arguments)


def dilled_function() -> Call:
    """A closure with its code, its globals and a cell, as dill 0.3.4 writes it."""
    code = dill_call("_create_code", 1, 0, 1, 1, 67, b"d\x00S\x00", (None,), (), ("x",), "a.py", "hook", 3, b"", (), ())
    cell = dill_call("_create_cell", {"1": None})
    return dill_call("_create_function", code, Global("timm.models.layers", "__dict__"), "hook", None, (cell,), {})


def dilled_discriminator() -> Call:
    """A discriminator with what dill makes of hooks, partial functions, bound methods and local classes."""
    function = dilled_function()
    norm = dill_call("_create_ftype", dill_call("_load_type", "PartialType"), function, (), {"eps": 1e-6})
    partial = Call(Global("functools", "partial"), (function,), state=(function, (), {}, None))
    base = Global("torch.nn.modules.module", "Module")
    local = dill_call("_create_type", dill_call("_load_type", "type"), "Local", (base,), {"f": function})
    state = {
        "norm": norm,
        "act": partial,
        "forward": Call(dill_call("_load_type", "MethodType"), (function, None)),
        "local": Call(local, (), state={"x": 1}, is_new=True),
        "_forward_hooks": {0: function},
    }
    return Call(Global("pg_modules.discriminator", "ProjectedDiscriminator"), (), state=state, is_new=True)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (dill_call("_import_module", "os"), "'os'"),
        (dill_call("_import_module", "numpy"), "'numpy'"),
        (dill_call("_import_module", "numpy.core.multiarray", True), "'numpy.core.multiarray'"),
        (dill_call("_import_module"), "something else"),
        (dill_call("_import_module", "numpy.core.multiarray"), "'numpy.core.multiarray'"),
        (dill_attribute("posix", "system"), "'posix'"),
        (dill_attribute("numpy.core.multiarray", "fromfile"), "'numpy.core.multiarray fromfile'"),
        (dill_attribute("numpy.core.multiarray", "scalar.__globals__"), "scalar.__globals__"),
        (dill_call("_get_attr", Global("numpy", "ndarray"), "scalar"), "_get_attr"),
        (dill_call("_get_attr", Global("torch.nn.modules.conv", "Conv2d"), "forward"), "_get_attr"),
        (dill_call("_get_attr", dill_call("_get_attr"), "scalar"), "_get_attr"),
        (dill_call("_get_attr", dill_call("_import_module", "numpy.core.multiarray"), "scalar", 1), "_get_attr"),
        (dill_call("_create_array", Global("numpy.core.multiarray", "scalar"), (), (), None), "plain NumPy arrays"),
        (dill_call("_load_type", "exec"), "dill for a type"),
        (dill_call("_load_type", "getattr"), "dill for a type"),
        (dill_call("_unmarshal", b"x"), "dill._dill _unmarshal"),
        (dill_call("_create_filehandle", "x"), "dill._dill _create_filehandle"),
        (Global("functools", "reduce"), "functools reduce"),
        (Call(dilled_function(), ()), "it calls an object of"),
        (Call(Call(Global("functools", "partial"), ()), ()), "it calls an object of"),
    ],
)
def test_every_other_use_of_dills_helpers_refuses_the_file_wherever_it_stands(
    value: Any, part: str, tmp_path: Path
) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan_xl(), extra={"D": [value]})
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)


@pytest.mark.parametrize(
    "value",
    [
        dilled_function(),
        [{"a": (dilled_function(),)}],
        Call(Global("functools", "partial"), ()),
        dill_call("_create_cell", 1),
        dill_call("_create_code", 1),
        dill_call("_load_type", "MethodType"),
        Call(dill_call("_load_type", "MethodType"), ()),
        Global("functools", "partial"),
        Call(Global("torch.nn.modules.activation", "ReLU"), (), state={"a": dilled_function()}, is_new=True),
    ],
)
@pytest.mark.parametrize("place", ["_forward_hooks", "_init_kwargs", "synthesis.L0_36_6._backward_hooks", "mapping.x"])
def test_functions_and_types_inside_the_generator_refuse_the_file(value: Any, place: str, tmp_path: Path) -> None:
    made = make_stylegan_xl()
    place = place.replace("L0_36_6", made.spec.layers[0].name)
    with pytest.raises(ModelFileError) as caught:
        read_model(write_nvidia_pickle(tmp_path / "n.pkl", made, edits={place: {0: value}}))
    assert_one_sentence(caught.value, "its generator holds", "nothing was run")


def test_a_number_that_is_not_finite_in_the_averages_or_the_table_refuses_the_file(tmp_path: Path) -> None:
    made = make_stylegan_xl()
    for name in ("mapping.w_avg", "mapping.embed.weight"):
        broken = made.weights[name].copy()
        broken[-1, -1] = np.nan
        with pytest.raises(ModelFileError) as caught:
            read_model(write_nvidia_pickle(tmp_path / "n.pkl", with_weights(made, {name: broken})))
        assert_one_sentence(caught.value, name)


def test_generators_of_projected_gan_are_named(tmp_path: Path) -> None:
    path = tmp_path / "n.pkl"
    generator = Call(Global("pg_modules.networks_fastgan", "Generator"), (), state={"_modules": {}}, is_new=True)
    other = Call(Global("torch.nn.modules.container", "Sequential"), (), state={}, is_new=True)
    for value, part in (
        ({"G_ema": generator}, "FastGAN or ProjectedGAN (class 'pg_modules.networks_fastgan.Generator')"),
        (generator, "FastGAN or ProjectedGAN"),
        ({"G_ema": other}, "the foreign class 'torch.nn.modules.container.Sequential'"),
    ):
        path.write_bytes(PickleWriter(4).dumps(value))
        with pytest.raises(UnsupportedModelError) as caught:
            read_model(path)
        assert_one_sentence(caught.value, part)


def test_a_stylegan2_behind_such_a_mapping_network_is_named(tmp_path: Path) -> None:
    made = make_stylegan2()
    mapping = persistent(
        "MappingNetwork", {"_parameters": {}, "_buffers": {}, "_modules": {"embed": embedding(_parameters={})}}
    )
    path = write_nvidia_pickle(tmp_path / "n.pkl", made, edits={"_modules": {"mapping": mapping}})
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "the mapping network of a StyleGAN-XL with another synthesis network")


def test_tensors_without_settings_are_named(tmp_path: Path) -> None:
    path = save_torch(dict(make_stylegan_xl().weights), tmp_path / "n.pt")
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "the tensors of a StyleGAN-XL generator without its settings")
