from benchmarks.accuracy.trust import PLAIN
from benchmarks.files import describe_environment
from benchmarks.report.trust import page


def result():
    runs = []
    for seed in (0, 1):
        coverage = {"of labels": 0.9 + 0.01 * seed, "least label": 0.8, "of samples": 0.7}
        coverage |= {"size": 3.0, "true size": 2.0}
        rules = {"90% per label": "label", "90% per sample": "sample", PLAIN: "threshold"}
        for rule, per in rules.items():
            counted = {} if rule == PLAIN else {"labels within": 5, "labels": 6, "most label": 0.95}
            sets = {"sets": rule, "per": per, **coverage, **counted}
            runs.append({"dataset": "songs", "seed": seed, **sets})
        for is_calibrated in (False, True):
            errors = dict.fromkeys(("ece", "brier", "log loss"), 0.2 - 0.1 * is_calibrated)
            model = {"model": "the default", "calibrated": is_calibrated, "changed labels": seed}
            runs.append({"dataset": "songs", "seed": seed, **model, **errors})
    return {
        "runs": runs,
        "datasets": {"songs": {"sha256": "abcdef0123456789"}},
        "settings": {"resplits": 100},
        "seeds": [0, 1],
        "environment": describe_environment(),
    }


def test_the_page_shows_coverage_and_calibration_errors():
    lines = page(result()).splitlines()
    covered, sizes = "0.905 ± 0.007", "0.700 ± 0.000 | 3.0 | 2.0 |"
    both = f"{covered} | 0.800, 0.950"
    assert f"| songs | 90% per label | {both} | 5 of 6; 5 of 6 | {sizes}" in lines
    assert f"| songs | 90% per sample | {both} |  | {sizes}" in lines
    assert f"| songs | {PLAIN} | {covered} | 0.800 |  | {sizes}" in lines
    cells = " | ".join(["0.200 ± 0.000", "0.100 ± 0.000"] * 3)
    assert f"| songs | the default | 0.5 | {cells} |" in lines
