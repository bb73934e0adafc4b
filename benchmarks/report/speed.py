"""Tables of time and memory: attention, whole models, exported programs, servers, and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.papers import reported, title
from benchmarks.accuracy.runs import Row
from benchmarks.files import Result, names, read, read_all
from benchmarks.report.writing import listed, machine, table

#: Tables mention the channels of a model only if they differ from this number.
WIDE = 512
#: Candidates in older results that the package no longer has.
REMOVED = ("ours (sddmm)",)
#: Candidates in the picture, with their colours.
DRAWN = {"literal": "#d55e00", "SDPA": "#e69f00", "ours": "#0072b2"}
REGIMES = ("R1", "R2", "R3", "R4", "R5", "HUB")
#: Models of the family as the papers call them.
IN_PAPERS = {
    "lamp": ("lamp2019", "LaMP"),
    "mped": ("mped2019", "MPED"),
    "mped-ar": ("mped2019", "MPED Autoregressive"),
    "mp-br": ("mped2019", "MP BR"),
    "seq2seq": ("mped2019", "RNN Seq2Seq"),
}
#: What the rounds of tools/endurance.py check.
ROUNDS = {
    "operator": "shapes of the operator, backends beside each other in float64",
    "files": "files with wrong bytes, read or refused with a reason",
    "kills": "predictions killed at any time, and resumed",
    "bombs": "small files that unpack to much, in little memory",
    "requests": "malformed, large, slow and abandoned requests, with the server alive",
}


def attention(result: Result) -> list[str]:
    """A table with a row for each regime and candidate, and notes on backends and the machine."""
    heads = ("regime", "candidate", "fwd ms", "fwd + bwd ms", "quartiles", "CPU ms")
    lines, excluded = [], []
    for regime, row in result["regimes"].items():
        for name, candidate in row["candidates"].items():
            if candidate["state"] in ("disagrees", "failed"):
                excluded.append(f"{name} on {regime}: {candidate['state']}")
            if "forward_backward" not in candidate or name in REMOVED:
                continue
            both_passes, peaks = candidate["forward_backward"], candidate.get("peak_bytes")
            forward = f"{candidate['forward']['wall_ms']['median']:.3g}"
            line = [regime, name, forward, *_times(both_passes["wall_ms"], ".3g")]
            line.append(f"{both_passes['cpu_ms']['median']:.3g}")
            line.append(f"{both_passes['wall_ratio']:.2g}" if "wall_ratio" in both_passes else "-")
            sizes = peaks.values() if isinstance(peaks, dict) else ()
            megabytes = " / ".join(f"{1e-6 * size:.0f}" for size in sizes) or "-"
            lines.append([*line, f"{both_passes['wall_share_of_limit']:.0%}", megabytes])
    regimes = result["regimes"].items()
    backends = [f"{row['auto'].partition(':')[0]} on {regime}" for regime, row in regimes]
    notes = [f"`auto` takes: {', '.join(backends)}."]
    notes += [f"Left out: {'; '.join(excluded)}."] if excluded else []
    heads += ("times faster", "of limit", "peak MB")
    return [*table(heads, lines), "", *listed([*notes, _machine(result)])]


def growth(result: Result) -> list[str]:
    """A table of the fitted exponents, with a row for each sweep."""
    lines = []
    for name, row in result["scaling"].items():
        wall, cpu = row["wall_fit"], row["cpu_fit"]
        line = [name, ", ".join(map(str, row["sizes"])), f"{wall['exponent']:.2f}"]
        line += [f"{wall['r2']:.3f}", f"{cpu['exponent']:.2f}"]
        lines.append([*line, ", ".join(dict.fromkeys(row["backends"]))])
    heads = ("sweep", "sizes", "exponent of time", "r²", "exponent of CPU time", "backend")
    return table(heads, lines)


def numbers(result: Result) -> dict[str, Any]:
    """Times of attention by regime and by size, for :func:`draw`."""

    def milliseconds(candidate: Result) -> float:
        return float(candidate["forward_backward"]["wall_ms"]["median"])

    regimes = {}
    for name in REGIMES:
        candidates = result["regimes"][name]["candidates"]
        regimes[name] = {key: milliseconds(candidates[key]) for key in DRAWN}
    growth = {name: [row["sizes"], row["wall_ms"]] for name, row in result["scaling"].items()}
    return {"regimes": regimes, "growth": growth}


def draw(numbers: dict[str, Any]) -> Figure:
    """Draws times by regime in the left panel, and times by size in the right panel."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, colour in DRAWN.items():
        times = [row[name] for row in numbers["regimes"].values()]
        left.plot(times, range(len(times)), "o", color=colour, label=name)
    left.grid(axis="y", alpha=0.3)
    left.set(xscale="log", xlabel="forward and backward, ms")
    left.set(yticks=range(len(REGIMES)), yticklabels=REGIMES)
    left.invert_yaxis()
    left.legend(fontsize="small")
    for name, (sizes, times) in numbers["growth"].items():
        right.loglog(sizes, times, "o-", markersize=4, label=name)
    right.set(xlabel="size", ylabel="forward and backward, ms")
    right.legend(fontsize="x-small")
    return figure


def models(result: Result) -> list[str]:
    """A table with a row for each model, layout and mode, and notes on precision and machine."""
    lines, excluded = [], []
    for row in result["models"]:
        sizes = row["sizes"]
        channels = "" if sizes["channels"] == WIDE else f", d={sizes['channels']}"
        model = f"{sizes['num_labels']} labels{channels} along {sizes['graph']}"
        for name, layout in row["layouts"].items():
            if layout["state"] == "disagrees" or layout.get("why"):
                excluded.append(f"{name} on {model}: {layout.get('why') or 'disagrees'}")
            for mode in (mode for mode in ("inference", "training") if mode in layout):
                times, peaks = layout[mode], layout.get("peak_bytes")
                ratio = f"{times['ours_is_faster']:.2f}" if "ours_is_faster" in times else "-"
                has_peak = isinstance(peaks, dict) and mode in peaks
                peak = f"{1e-6 * peaks[mode]:.0f}" if has_peak else "-"
                line = [f"{sizes['num_labels']}{channels}", sizes["graph"], name, mode]
                line += [*_times(times["wall_ms"], ".0f"), f"{times['samples_per_second']:.3g}"]
                lines.append([*line, ratio, f"{times['floor_share']:.0%}", peak])
    heads = ("labels", "graph", "layout", "mode", "ms", "quartiles", "samples/s", "x ours")
    settings = result["settings"]
    precision = settings.get("matmul_precision", "highest")
    under = f', under `torch.set_float32_matmul_precision("{precision}")`'
    notes = [f"Precision: {settings['precision']}{'' if precision == 'highest' else under}."]
    notes += [f"Left out: {'; '.join(excluded)}."] if excluded else []
    heads += ("of the floor", "peak MB")
    return [*table(heads, lines), "", *listed([*notes, _machine(result)])]


def ratios(result: Result) -> list[str]:
    """A table of our throughput and memory, and other layouts' time and memory divided by ours."""
    lines = []
    for row in result["models"]:
        layouts = {name: item for name, item in row["layouts"].items() if item["state"] == "agrees"}
        line = [str(row["sizes"]["num_labels"]), row["sizes"]["graph"]]
        for mode in ("inference", "training"):
            line += [f"{layouts['ours'][mode]['samples_per_second']:,.0f}"]
            for name in ("released layout", "literal path"):
                times = layouts.get(name, {}).get(mode)
                line.append("-" if times is None else f"{times['ours_is_faster']:.2f}")
        peaks = [layouts[name]["peak_bytes"]["training"] for name in ("ours", "released layout")]
        lines.append([*line, f"{1e-6 * peaks[0]:.0f}", f"{peaks[1] / peaks[0]:.2f}"])
    heads = [
        head
        for mode in ("inference", "training")
        for head in (f"{mode}: ours", "released", "literal")
    ]
    notes = [f"Precision: {result['settings']['precision']}.", _machine(result)]
    heads = ["labels", "graph", *heads, "MB: ours", "released"]
    return [*table(heads, lines), "", *listed(notes)]


def exported(result: Result) -> list[str]:
    """A table of times of a model and its exported programs, by kind of input and batch size."""
    lines = []
    for row in result["exported"]:
        forms = row["forms"]
        ours = forms["tg_mlc"]["wall_ms"]["median"]
        line = [row["kind"], str(row["batch_size"])]
        for name, form in forms.items():
            line.append("{} [{}]".format(*_times(form["wall_ms"], ".3g")))
            line += [] if name == "tg_mlc" else [f"{form['wall_ms']['median'] / ours:.2f}"]
        lines.append([*line, f"{max(form['apart'] for form in forms.values()):.0e}"])
    heads = ["input", "batch", "tg_mlc, ms"]
    for name in (name for name in result["exported"][0]["forms"] if name != "tg_mlc"):
        heads += [f"{name}, ms", "x"]
    settings = result["settings"]
    notes = [
        f"Medians [quartiles] of {settings['repeats']} rounds in which all take turns; x: as a "
        f"multiple of the time of tg_mlc; {settings['num_labels']} labels, {settings['channels']} "
        f"channels, {settings['threads']} threads, seed {settings['seed']}; the last column is the "
        f"largest difference of a probability.",
        machine(result),
    ]
    return [*table([*heads, "difference"], lines), "", *listed(notes)]


def served() -> list[str]:
    """A table of throughput and cost of the server and of the model alone, by model."""
    results = list(read_all("serving-").values())
    if not results:
        return ["Not measured."]
    lines = []
    for result in results:
        times, model = result["serving"], result["model"]
        alone, server = (median(times[f"{mode}_per_second"]) for mode in ("alone", "served"))
        cost, server_cost = (median(times[f"{mode}_processor_ms"]) for mode in ("alone", "served"))
        memory = " to ".join(f"{1e-6 * times['resident_bytes'][index]:.0f}" for index in (1, -1))
        statuses = sorted(times["malformed"].items())
        malformed = ", ".join(f"{count:,} times {status}" for status, count in statuses)
        line = [f"{model['kind']}, {model['labels']} labels", f"{alone:,.0f}", f"{server:,.0f}"]
        line += [f"{cost:.2f}", f"{server_cost:.2f}", f"{cost / server_cost:.0%}"]
        line += [f"{times['milliseconds'][quantile]:.0f}" for quantile in ("p50", "p99")]
        lines.append([*line, malformed, memory, f"{times['requests']:,}"])
    heads = ["model", "alone, inputs/s", "server, requests/s", "alone, CPU ms", "server, CPU ms"]
    heads += ["model's fraction", "median ms", "99 % ms", "malformed", "MB", "requests"]
    settings = results[0]["settings"]
    notes = [
        f"{settings['clients']} clients on the same machine, which send one input each; medians of "
        f"{settings['rounds']} rounds of {settings['seconds']:g} s in which the server and the "
        f"model alone, {settings['clients']} inputs at a time, take turns; {settings['threads']} "
        f"threads. Model's fraction: of the processor time of a request, that of the model alone. "
        f"MB: resident memory of the server over so many requests.",
        machine(results[0]),
    ]
    return [*table(heads, lines), "", *listed(notes)]


def scored() -> list[str]:
    """A table of time and peak resident memory, with a row for each method and number of rows."""
    lines, notes = [], []
    for result in read_all("scoring-").values():
        for row in result["scored"]:
            sizes = row["peak_bytes"].items()
            peaks = ", ".join(f"{kind} {1e-6 * size:,.0f}" for kind, size in sizes)
            times = [f"{row['seconds']:,.0f}", f"{row['rows'] / row['seconds']:,.0f}"]
            lines.append([row["what"], f"{row['rows']:,}", f"{row['refused']:,}", *times, peaks])
        notes.append(machine(result))
    heads = ("method", "rows", "unreadable", "s", "rows/s", "peak MB of a process")
    return [*table(heads, lines), "", *listed(dict.fromkeys(notes))] if lines else ["Not measured."]


def endured() -> list[str]:
    """A table of the rounds in the last long run of tools/endurance.py."""
    if "endurance" not in names("endurance"):
        return ["Not measured."]
    result = read("endurance")
    lines = [[ROUNDS[kind], f"{count:,}"] for kind, count in result["rounds"].items()]
    failed = "; ".join(f"`{command}`" for command in result["failed"]) or "none"
    note = f"{result['minutes']:.0f} minutes, seeds from {result['first_seed']}; failed: {failed}"
    sizes = [largest(what, number) for what, number in result.get("largest", {}).items()]
    return [*table(("what", "rounds"), lines), "", *listed([note, *sizes, machine(result)])]


def largest(what: str, number: float) -> str:
    """Says a largest number of bytes or seconds."""
    unit, _, of = what.partition(" ")
    size = f"{number / 2**20:,.0f} MiB" if unit == "bytes" else f"{number:.2f} s"
    return f"at most {size} {of}"


def registers(result: Result) -> list[str]:
    """A table of registers and warps of each kernel by architecture, without and with dropout."""
    variants, lines = pd.DataFrame(result["variants"]), []
    keys, archs = ["walk", "kernel", "type", "channels"], sorted(variants["arch"].unique())
    for key, rows in variants.groupby(keys, sort=False):
        cells = []
        for arch in archs:
            kernels = rows[rows["arch"] == arch].itertuples()
            cells.append(" / ".join(f"{row.registers}: {row.warps}" for row in kernels) or "-")
        lines.append([*map(str, key), *cells])
    spill_format = "{kernel} {type} {channels} on sm_{arch}: {spilled} bytes"
    spilled = variants[variants["spilled"] > 0].to_dict("records")
    spills = ", ".join(spill_format.format(**row) for row in spilled) or "none"
    triton = f"triton {result['environment']['versions']['triton']}"
    notes = [f"{len(variants)} variants, spills: {spills}.", triton]
    heads = ("rows", *keys[1:], *(f"sm_{arch}" for arch in archs))
    return [*table(heads, lines), "", *listed(notes)]


def family(results: Sequence[Result] | None = None) -> list[str]:
    """Minutes per epoch of the family's models beside LaMP's Table 4 and MPED's Table 2.

    Reads all tracked results by default.
    """
    results = list(read_all("family-").values()) if results is None else results
    if not results:
        return ["Not measured."]
    lines, notes = [], []
    for result in results:
        for dataset, content in result["datasets"].items():
            for model in (model for model in content["models"].values() if model["agrees"]):
                row, cells = Row(**model["row"]), []
                for mode in ("training", "testing"):
                    cells += _minutes(dataset, row, mode, model[mode])
                lines.append([dataset, title(row), *cells])
        settings = result["settings"]
        processor, versions = machine(result).split(";")
        notes.append(
            f"{processor}, threads: {settings['threads']}; median [quartiles] of "
            f"{settings['rounds']} rounds of {settings['batches']} batches of "
            f"{settings['batch_size']}, scaled to an epoch; epochs of training before: "
            f"{settings['epochs_before']}; seed {settings['seed']};{versions}"
        )
    heads = ("data", "model", "training", "x RNN Seq2Seq", "testing", "x RNN Seq2Seq")
    return [*table(heads, lines), "", *listed(notes)]


def _minutes(dataset: str, row: Row, mode: str, times: Result) -> Iterator[str]:
    """Yields the texts of minutes and of speed-up, each with the paper's figure in parentheses."""
    paper, paper_model = IN_PAPERS.get(row.model, ("", ""))
    minutes, phase = times["minutes_per_epoch"], mode.removesuffix("ing")
    ours = f"{minutes['median']:.3f} [{minutes['q1']:.3f}, {minutes['q3']:.3f}]"
    ratio = f"{times['speedup']['median']:.2f}" if "speedup" in times else ""
    columns = ((ours, "minutes_per_epoch", 3), (ratio, "speedup_over_rnn_seq2seq", 1))
    for text, metric, digits in columns:
        figure = reported().get((paper, dataset, paper_model, f"{phase}_{metric}"))
        yield text if figure is None else f"{text} ({figure:.{digits}f})".strip()


def _times(wall: Mapping[str, float], digits: str) -> tuple[str, str]:
    return f"{wall['median']:{digits}}", f"{wall['q1']:{digits}} to {wall['q3']:{digits}}"


def _machine(result: Result) -> str:
    settings, limits, environment = result["settings"], result["limits"], result["environment"]
    precisions = limits["by_precision"].items()
    rates = ", ".join(f"{1e-9 * rate:.0f} ({name})" for name, rate in precisions)
    versions = ", ".join(
        f"{name} {number}" for name, number in environment["versions"].items() if number
    )
    return (
        f"{environment['cuda'] or environment['processor']}, {settings['threads']} threads; matrix "
        f"products {rates} GFLOP/s, copies {1e-9 * limits['bandwidth']:.0f} GB/s, measured in the "
        f"same run; {settings['repeats']} rounds, in which the candidates take turns; seed "
        f"{settings['seed']}; {versions}"
    )
