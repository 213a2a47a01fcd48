import torch

from gpu_backend.training.world import FACTORS, sample_factors
from gpu_backend.training.world.factors import Setting


def test_factors_have_names_of_their_own_in_the_order_of_a_setting() -> None:
    assert list(Setting.__dataclass_fields__) == [*(factor.name for factor in FACTORS), "seeds"]


def test_sampled_factors_fill_their_ranges() -> None:
    drawn = sample_factors(4000, torch.Generator().manual_seed(0))
    for column, factor in zip(drawn.unbind(1), FACTORS, strict=True):
        width = factor.high - factor.low
        assert factor.low <= column.min() < factor.low + 0.02 * width
        assert factor.high - 0.02 * width < column.max() <= factor.high


def test_the_same_generator_state_samples_the_same_factors() -> None:
    first = sample_factors(5, torch.Generator().manual_seed(7))
    assert torch.equal(first, sample_factors(5, torch.Generator().manual_seed(7)))


def test_seeds_that_differ_beyond_32_bits_are_different() -> None:
    setting = Setting.of(torch.zeros(2, len(FACTORS)), torch.tensor([5, 5 + 2**45]))
    assert setting.seeds[0] != setting.seeds[1]
