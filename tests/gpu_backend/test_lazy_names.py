import sys
from types import ModuleType

import pytest

from gpu_backend.lazy_names import LazyModule, lazy_names


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made, home = ModuleType("shop"), ModuleType("shop.bakery")
    home.bread = "bread"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop", made)
    monkeypatch.setitem(sys.modules, "shop.bakery", home)
    made.__getattr__, made.__dir__ = lazy_names("shop", {"bakery": ("bread",)})  # type: ignore[method-assign]
    return made


def test_a_name_is_fetched_from_its_module_once_and_stays(package: ModuleType) -> None:
    assert "bread" not in vars(package)
    assert package.bread == "bread"
    assert vars(package)["bread"] == "bread"


def test_names_are_listed_before_they_are_fetched(package: ModuleType) -> None:
    assert "bread" in dir(package)


def test_another_name_is_refused_in_python_s_words(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'wine'"):
        _ = package.wine


def test_a_lazy_module_is_imported_when_its_first_attribute_is_read(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    bakery = sys.modules["shop.bakery"]
    monkeypatch.delitem(sys.modules, "shop.bakery")
    lazy = LazyModule("shop.bakery")
    monkeypatch.setitem(sys.modules, "shop.bakery", bakery)
    assert lazy.bread == "bread"
    assert vars(lazy)["bread"] == "bread"
