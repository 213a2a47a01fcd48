"""What is measured by default, and what naming things changes."""

from gpu_backend.bench.cases import PEERS, choose
from gpu_backend.bench.contender import Case


def test_by_default_every_peer_runs_in_half_precision_and_every_precision_is_seen() -> None:
    choice = choose(on_gpu=True)
    assert choice.batches == (1, 8, 16, 32)
    assert choice.ours == ("fp16", "tf32", "fp32")
    assert {(c.who, c.batch) for c in choice.peers if c.precision == "fp16"} == {
        (who, batch) for who in PEERS if who != "autotuned" for batch in (1, 8, 16, 32)
    }
    assert {c.precision for c in choice.peers} == {"fp16", "bf16", "tf32", "fp32"}
    assert all(c.precision == "fp16" for c in choice.peers if c.who == "compiled")


def test_the_peer_to_beat_comes_first() -> None:
    assert choose(on_gpu=True).peers[:2] == (Case("compiled", "fp16", 1), Case("compiled", "fp16", 8))


def test_peers_that_take_minutes_come_after_all_others() -> None:
    peers = choose(on_gpu=True, everything=True).peers
    slow = [case.who == "autotuned" for case in peers]
    assert sum(slow) == 4 * 4
    assert slow == sorted(slow)


def test_one_omitted_case_is_a_case() -> None:
    assert choose(on_gpu=False, quick=True).left_out.startswith("1 more case of peers: ")


def test_omitted_cases_are_counted_and_all_includes_them() -> None:
    some, everything = choose(on_gpu=True), choose(on_gpu=True, everything=True)
    assert len(everything.peers) == 4 * 4 * len(PEERS)
    assert everything.ours == ("fp16", "fp8", "tf32", "bf16x3", "fp32")
    assert some.left_out.startswith(f"{96 - len(some.peers)} more")
    assert everything.left_out == ""


def test_named_values_are_measured_in_all_combinations() -> None:
    choice = choose(on_gpu=True, batches=(3, 5), peers=("eager", "traced"), precisions=("tf32", "fp32"))
    assert len(choice.peers) == 8
    assert choice.ours == ("tf32", "fp32")
    assert choose(on_gpu=True, peers=()).peers == ()


def test_fp8_is_measured_where_it_is_named_and_no_peer_has_it() -> None:
    choice = choose(on_gpu=True, precisions=("fp8", "fp16"))
    assert choice.ours == ("fp16", "fp8")
    assert {case.precision for case in choice.peers} == {"fp16"}
    assert choose(on_gpu=True, precisions=("fp8",)).peers == ()


def test_peers_in_bf16_alone_are_held_against_fp16() -> None:
    choice = choose(on_gpu=True, precisions=("bf16",))
    assert choice.ours == ("fp16",)
    assert {case.precision for case in choice.peers} == {"bf16"}


def test_no_peer_has_bf16x3() -> None:
    choice = choose(on_gpu=True, precisions=("bf16x3", "fp32"), peers=("eager",))
    assert choice.ours == ("bf16x3", "fp32")
    assert {case.precision for case in choice.peers} == {"fp32"}


def test_the_processor_has_fp32_of_ours_and_batch_1() -> None:
    choice = choose(on_gpu=False)
    assert (choice.batches, choice.ours) == ((1,), ("fp32",))
    assert {c.who for c in choice.peers if c.precision == "fp32"} == set(PEERS) - {"graph", "autotuned"}
    assert {c.who for c in choice.peers if c.precision == "bf16"} == {"channels-last"}
    assert choice.left_out.startswith("5 more")


def test_quick_is_little() -> None:
    choice = choose(on_gpu=True, quick=True)
    assert choice.batches == (1, 8)
    assert {c.precision for c in choice.peers} == {"fp16"}


def test_a_peer_that_takes_minutes_is_measured_where_it_is_named() -> None:
    assert {c.who for c in choose(on_gpu=True, peers=("autotuned",)).peers} == {"autotuned"}
    assert {c.precision for c in choose(on_gpu=True, peers=("autotuned",)).peers} == {"fp16"}
