"""The command ``tg-mlc compare``: whether a label graph helps on the data of a CSV file."""

from __future__ import annotations

from pathlib import Path

from tg_mlc.cli._options import InputColumns, TableOptions, TrainOptions


def compare_(
    options: TrainOptions,
    columns: InputColumns,
    table: TableOptions,
    *,
    graphs: str | list[str] = "edgeless,complete,prior,learned",
    seeds: int = 5,
    metric: str = "average_precision_macro",
    json: bool = False,
) -> int:
    """Compares label graphs with classifiers alone on splits of a file.

    The folder --out gets the results as comparison.json, .csv, .md, .tex and, with the extra plot,
    .png; an --out that ends in one of the first four is one file. If --seconds are too few for all
    seeds by the time of the first one, a warning says how many will run.

    Args:
        graphs (NAMES): Label graphs, separated by commas: edgeless, complete, prior, learned, and
            files of edges.
        seeds (NUMBER): The number of splits; the first has the seed --seed.
        metric (NAME): The metric to compare by.
        json: Prints the result as JSON.

    Examples:
        tg-mlc compare --csv songs.csv --labels calm,sad --graphs edgeless,prior --out comparison
    """
    from tg_mlc.cli._inputs import split_names
    from tg_mlc.cli._output import show
    from tg_mlc.cli._training import Run
    from tg_mlc.stacking.comparison import compare

    if options.split == "scaffold":
        got = "scaffold, which is the same for all seeds"
        raise ValueError(f"Expected '--split' to be random or stratified (got {got})")
    out, graph_names = Path(options.out), split_names(graphs)
    if missing := [name for name in graph_names if Path(name).suffix and not Path(name).is_file()]:
        raise ValueError(f"Expected '--graphs' to name existing files (got {missing})")
    comparison = compare(
        Run(options, columns, table).dataset,
        graph_names,
        seeds=seeds,
        seconds=options.seconds,
        metric=metric,
        split=options.split,
        first_seed=options.seed,
    )
    comparison.save(out)
    show(comparison.to_dict(), f"{comparison}\n\nThe results are in '{out}'.", json)
    return 0
