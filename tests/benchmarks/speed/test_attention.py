import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from benchmarks.command_line import (
    RETAINED_HEAP,
    chosen,
    default_heap,
    heap_is_retained,
    with_switches,
)
from benchmarks.files import describe_environment
from benchmarks.report import speed
from benchmarks.speed import attention, implementations, measure
from benchmarks.speed.implementations import (
    LITERAL,
    OURS,
    SDPA,
    Candidate,
    agrees,
    errors,
    reference,
    sdpa,
)
from benchmarks.speed.measure import (
    Limits,
    Samples,
    interleave,
    measure_limits,
    peaks_of,
    relative_rms,
)
from benchmarks.speed.regimes import (
    GROUPS,
    NUM_HUBS,
    Regime,
    draw,
    find,
    hubs,
    power_law,
    ragged,
    random_graph,
    regimes,
    spread,
)
from tg_mlc.ops import Blocks, graph_attention


def test_random_graph_has_distinct_columns_and_the_specified_degrees():
    degrees = spread(50, 30)
    graph = random_graph(degrees)
    assert torch.equal(graph.mask().sum(dim=1), degrees)
    assert int(degrees.min()) >= 15
    assert int(degrees.max()) <= 45
    assert torch.equal(graph.edge_index[1], graph.edge_index[1].sort().values)
    assert torch.equal(random_graph(degrees).edge_index, graph.edge_index)


def test_hubs_are_few_huge_and_popular():
    degrees = power_law(2000)
    assert degrees[:NUM_HUBS].tolist() == [400] * NUM_HUBS
    assert float((degrees <= 4).float().mean()) > 0.6
    graph = hubs(500).graph
    popularity = torch.bincount(graph.edge_index[0], minlength=500)
    assert int(popularity[:NUM_HUBS].min()) > int(popularity[NUM_HUBS:].median())


def test_ragged_blocks_have_the_specified_sizes():
    pattern = ragged(3, torch.tensor([2, 5]))
    assert pattern.query_ptr.tolist() == [0, 3, 6]
    assert pattern.key_ptr.tolist() == [0, 2, 7]


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_small_quick_regimes(group):
    tiny, full = regimes(group, quick=True), regimes(group)
    assert all(regime.make().num_edges < 10_000 for regime in tiny)
    assert {regime.baseline for regime in tiny} == {regime.baseline for regime in full}
    assert all(regime.heads * regime.channels == 512 for regime in full)


@pytest.mark.parametrize("portion", [1, 500, 10**9])
@pytest.mark.parametrize("name", ["R1", "R3", "HUB"])
def test_the_reference_is_the_same_in_portions(name, portion):
    regime = find(name, quick=True)
    pattern = regime.make()
    inputs = draw(pattern, regime, torch.float64)
    out = graph_attention(*inputs.leaves, pattern, backend="reference")
    expected = (out, *torch.autograd.grad(out, inputs.leaves, inputs.grad))
    for value, exact in zip(reference(inputs, pattern, portion), expected, strict=True):
        torch.testing.assert_close(value, exact)


def test_relative_rms_of_errors_zeros_and_nan():
    error = relative_rms(torch.tensor([1.1, 0.9]), torch.ones(2, dtype=torch.float64))
    assert error == pytest.approx(0.1)
    assert relative_rms(torch.full((2,), 0.5), torch.zeros(2)) == pytest.approx(0.5)
    assert relative_rms(torch.tensor([float("nan")]), torch.ones(1)) == float("inf")


@pytest.fixture
def wrong(monkeypatch):
    """Replaces the candidates: ours disagrees with the reference, and `broken` fails."""
    inexact = Candidate(OURS, lambda pattern: lambda q, k, v: sdpa(pattern)(q, k, v) * 1.001)
    broken = Candidate("broken", lambda pattern: lambda q, k, v: q @ k)
    candidates = [inexact, Candidate(SDPA, sdpa), broken]
    monkeypatch.setattr(implementations, "candidates", lambda: candidates)


@pytest.mark.usefixtures("wrong")
def test_a_candidate_that_disagrees_gets_no_ratio():
    limits = Limits(1e9, 1e9, 1e9, 1e9, {})
    regime = regimes("DENSITY", quick=True)[-1]
    row = attention.compare(regime, attention.Settings(1, "cpu", "float32", 1, quick=True), limits)
    candidates = row["candidates"]
    assert candidates[OURS]["state"] == "disagrees"
    assert "forward" not in candidates[OURS]
    assert candidates["broken"]["state"] == "failed"
    assert candidates[SDPA]["forward"]["wall_ratio"] == 1.0
    assert attention.wrong({"name": row}) == [f"{OURS} on name disagrees"]
    assert candidates[OURS]["errors"]["out"] == pytest.approx(1e-3, rel=0.01)
    settings = {"threads": 1, "repeats": 1, "seed": 0}
    result = {"settings": settings, "environment": describe_environment()}
    lines = speed.attention({**result, "limits": asdict(limits), "regimes": {"name": row}})
    assert f"- Left out: {OURS} on name: disagrees; broken on name: failed." in lines


@pytest.mark.usefixtures("wrong", "own_runs")
def test_a_run_names_its_file_and_disagreeing_candidates(monkeypatch, capsys):
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    limits = Limits(1e9, 1e9, 1e9, 1e9, {})
    monkeypatch.setattr(attention, "measure_limits", lambda *args, **kwargs: limits)
    assert attention.main("R4", quick=True, threads=1) == 1
    *_, path, problems = capsys.readouterr().out.splitlines()
    assert path.startswith("Wrote ")
    assert path.endswith("attention-cpu.json")
    assert problems == f"Wrong: {OURS} on R4 disagrees"


def test_too_large_and_unsuitable_candidates_are_refused():
    regime = find("R3", quick=True)
    pattern = regime.make()
    inputs = draw(pattern, regime)
    by_name = {candidate.name: candidate for candidate in implementations.candidates()}
    literal, blocks = by_name[LITERAL], by_name[f"{OURS} (blocks)"]
    assert "would need about" in str(literal.refuse(inputs, pattern, memory=1e3))
    assert literal.refuse(inputs, pattern, memory=1e9) is None
    reason = "blocks: only for Blocks, and for complete shared graphs without a bias"
    assert blocks.refuse(inputs, pattern, memory=1e9) == reason


@pytest.mark.parametrize("name", ["R1", "R3", "R4"])
def test_all_candidates_agree(name):
    regime = find(name, quick=True)
    pattern = regime.make()
    inputs = draw(pattern, regime)
    expected, names = reference(inputs, pattern), set()
    for candidate in implementations.candidates():
        if candidate.refuse(inputs, pattern, memory=1e9) is None:
            deviations = errors(candidate.prepare(pattern), inputs, expected)
            assert agrees(deviations, torch.float32), candidate.name
            names.add(candidate.name)
    one_by_one = {"SDPA, one by one"} if isinstance(pattern, Blocks) else set()
    assert {LITERAL, "TransformerConv", SDPA, OURS} | one_by_one <= names


def test_work_counts_products_and_tensors():
    regime = Regime("", lambda: ragged(3, torch.tensor([2, 5])), heads=2, channels=4)
    pattern = regime.make()
    inputs = draw(pattern, regime)
    flop, num_bytes = attention.work(pattern, inputs, "forward")
    assert flop == 2 * 2 * 21 * 8
    assert num_bytes == 4 * 8 * (2 * 6 + 2 * 7)
    assert attention.work(pattern, inputs, "forward_backward") == (3 * flop, 3 * num_bytes)


def test_candidates_take_turns():
    order = []
    samples = interleave({name: lambda name=name: order.append(name) for name in "ab"}, repeats=3)
    assert [len(s.wall) for s in samples.values()] == [3, 3]
    turns = [x for x, y in zip(order, [None, *order], strict=False) if x != y]
    # Warm-up and timing run as ab ab. The repeats alternate their order: ab ba ab.
    assert turns == ["a", "b"] * 4
    summary = Samples([1.0, 3.0, 2.0], [1.0] * 3).summary()
    assert summary["wall_ms"] == {"median": 2000.0, "q1": 1500.0, "q3": 2500.0}


def test_fractions_refer_to_the_best_limits_of_a_run():
    early = Limits(2.0, 30.0, 1.0, 15.0, {"highest": 2.0})
    late = Limits(4.0, 20.0, 2.0, 10.0, {"highest": 4.0})
    best = early.or_better(late)
    assert best == Limits(4.0, 30.0, 2.0, 15.0, {"highest": 4.0})
    median = {"wall_ms": {"median": 1000.0}, "cpu_ms": {"median": 2000.0}}
    times = {name: dict(median) for name in attention.PASSES}
    row = {"work": dict.fromkeys(attention.PASSES, (1.0, 15.0)), "candidates": {"ours": times}}
    for limits, fraction in ((late, 0.75), (best, 0.5)):
        attention.relate(row, limits)
        assert times["forward"]["wall_share_of_limit"] == pytest.approx(fraction)
        assert times["forward"]["cpu_share_of_limit"] == pytest.approx(fraction)


def test_limits_exclude_products_of_lower_precision(monkeypatch):
    def product(*args):
        return ((9.0, 9.0), False) if "medium" in args else ((1.0, 1.0), True)

    monkeypatch.setattr(measure, "_product", product)
    limits = measure_limits("cpu", torch.float32, quick=True)
    assert limits.flops == 1.0
    assert set(limits.by_precision) == {"highest", "high"}
    assert limits.seconds(2.0, 0.0) == {"bound": "FLOP", "wall_ms": 2000.0, "cpu_ms": 2000.0}


def test_the_exponent_of_a_power_law_is_fitted():
    fit = attention.fit_exponent([1, 2, 4, 8], [3 * n**1.5 for n in (1, 2, 4, 8)])
    assert fit["exponent"] == pytest.approx(1.5)
    assert fit["r2"] == pytest.approx(1.0)


def test_switches_need_no_value():
    arguments = with_switches(["--quick", "--save", "false", "--repeats", "3"], ["quick", "save"])
    assert arguments == ["--quick", "true", "--save", "false", "--repeats", "3"]


def test_unknown_choices_are_refused():
    assert chosen("regimes", "R1, R2", GROUPS) == ["R1", "R2"]
    with pytest.raises(SystemExit, match=r"Expected 'regimes' to be some of R1.*got 'R9'"):
        chosen("regimes", "R9", GROUPS)


def test_default_heap_removes_the_settings_of_a_retained_heap(monkeypatch):
    for name, value in RETAINED_HEAP.items():
        monkeypatch.setenv(name, value)
    assert heap_is_retained()
    assert not any(name.startswith("MALLOC_") for name in default_heap())


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the system does not count peaks of memory"
)
@pytest.mark.slow
def test_peak_memory_of_another_process_is_measured():
    arguments = {"regime": "R3", "candidate": OURS, "quick": True, "dtype": "float32"}
    peaks = peaks_of("benchmarks.speed.implementations:memory_jobs", threads=1, **arguments)
    assert not isinstance(peaks, str)
    assert set(peaks) == {"forward", "forward_backward"}
    assert all(0 <= num_bytes < 2**27 for num_bytes in peaks.values())


def test_failed_memory_measurement_returns_the_exit_status(monkeypatch):
    monkeypatch.setattr("sys.executable", "false")
    monkeypatch.setattr("benchmarks.speed.measure.CLEAR", Path(__file__))
    assert peaks_of("benchmarks.speed.implementations:memory_jobs") == "exit status 1"


@pytest.mark.slow
def test_quick_run_agrees_and_writes_a_file(own_runs, monkeypatch, capsys):
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    assert attention.main(quick=True, threads=1) == 0
    result = json.loads((own_runs / "attention-cpu.json").read_text())
    names = [regime.name for group in GROUPS for regime in regimes(group, quick=True)]
    assert list(result["regimes"]) == names
    for row in result["regimes"].values():
        assert row["candidates"][OURS]["state"] == "agrees"
        assert row["candidates"][OURS]["forward_backward"]["wall_ratio"] > 0
    assert result["settings"]["threads"] == 1
    assert len(result["scaling"]) == len(attention.SWEEPS)
    assert "Wrong" not in capsys.readouterr().out
