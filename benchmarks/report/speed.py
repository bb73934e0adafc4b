"""Tables of time and memory: of attention, its growth, and whole models."""

from __future__ import annotations

from typing import Any

Result = dict[str, Any]
#: Channels of a model that go without saying.
WIDE = 512
#: Candidates of results that the package has no longer.
REMOVED = ("ours (sddmm)",)


def attention(result: Result) -> list[str]:
    """One line for each regime and candidate, and what they were measured on."""
    lines = [
        "| regime | candidate | fwd ms | fwd + bwd ms | quartiles | CPU ms | times faster | of limit | peak MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for regime, row in result["regimes"].items():
        for name, found in row["candidates"].items():
            if "forward_backward" in found and name not in REMOVED:
                lines.append(_candidate(regime, name, found, row))
    left_out = [
        f"{name} on {regime}: {found['state']}"
        for regime, row in result["regimes"].items()
        for name, found in row["candidates"].items()
        if found["state"] in ("disagrees", "failed")
    ]
    auto = {regime: row["auto"].partition(":")[0] for regime, row in result["regimes"].items()}
    return [
        *lines,
        "",
        f"- `auto` takes: {', '.join(f'{backend} on {regime}' for regime, backend in auto.items())}.",
        *([f"- Left out: {'; '.join(left_out)}."] if left_out else []),
        *_machine(result),
    ]


def growth(result: Result) -> list[str]:
    """The fitted exponents of one line for each sweep."""
    lines = ["| sweep | sizes | exponent of time | r² | exponent of CPU time | backend |", "|---|---|---|---|---|---|"]
    for name, row in result["scaling"].items():
        lines.append(
            f"| {name} | {', '.join(map(str, row['sizes']))} | {row['wall_fit']['exponent']:.2f} "
            f"| {row['wall_fit']['r2']:.3f} | {row['cpu_fit']['exponent']:.2f} "
            f"| {', '.join(dict.fromkeys(row['backends']))} |"
        )
    return lines


def models(result: Result) -> list[str]:
    """One line for each model, layout and mode."""
    lines = [
        "| labels | graph | layout | mode | ms | quartiles | samples/s | x ours | of the floor | peak MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["models"]:
        for name, found in row["layouts"].items():
            lines += [_layout(row, name, mode, found) for mode in ("inference", "training") if mode in found]
    precision, setting = result["settings"]["precision"], result["settings"].get("matmul_precision", "highest")
    under = "" if setting == "highest" else f', under `torch.set_float32_matmul_precision("{setting}")`'
    return [*lines, "", f"- Precision: {precision}{under}.", *_machine(result)]


def _candidate(regime: str, name: str, found: Result, row: Result) -> str:
    both, wall = found["forward_backward"], found["forward_backward"]["wall_ms"]
    ratio = f"{both['wall_ratio']:.2g}" if "wall_ratio" in both else "-"
    peaks = found.get("peak_bytes")
    peak = " / ".join(f"{1e-6 * size:.0f}" for size in peaks.values()) if isinstance(peaks, dict) else "-"
    return (
        f"| {regime} | {name} | {found['forward']['wall_ms']['median']:.3g} | {wall['median']:.3g} "
        f"| {wall['q1']:.3g} to {wall['q3']:.3g} | {both['cpu_ms']['median']:.3g} | {ratio} "
        f"| {both['wall_share_of_limit']:.0%} | {peak} |"
    )


def _layout(row: Result, name: str, mode: str, found: Result) -> str:
    times, peaks = found[mode], found.get("peak_bytes")
    ratio = f"{times['ours_is_faster']:.2f}" if "ours_is_faster" in times else "-"
    peak = f"{1e-6 * peaks[mode]:.0f}" if isinstance(peaks, dict) and mode in peaks else "-"
    wall, sizes = times["wall_ms"], row["sizes"]
    labels = f"{sizes['num_labels']}" + ("" if sizes["channels"] == WIDE else f", d={sizes['channels']}")
    return (
        f"| {labels} | {row['sizes']['graph']} | {name} | {mode} | {wall['median']:.0f} "
        f"| {wall['q1']:.0f} to {wall['q3']:.0f} | {times['samples_per_second']:.3g} | {ratio} "
        f"| {times['floor_share']:.0%} | {peak} |"
    )


def _machine(result: Result) -> list[str]:
    settings, machine, limits = result["settings"], result["environment"], result["limits"]
    rates = ", ".join(f"{1e-9 * rate:.0f} ({name})" for name, rate in limits["by_precision"].items())
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    return [
        f"- {machine['cuda'] or machine['processor']}, {settings['threads']} threads; matrix products {rates} GFLOP/s, "
        f"copies {1e-9 * limits['bandwidth']:.0f} GB/s, measured in the same run; {settings['repeats']} rounds, in "
        f"which the candidates take turns; seed {settings['seed']}; {versions}",
    ]
