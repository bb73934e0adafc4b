from benchmarks.report.learning_curves import tried

MODEL = {"dropout": 0.1, "input_dropout": 0.4}
RECIPE = {"module": {"lr": 2e-3}, "model": MODEL, "fit": {"max_epochs": 14}}


def trial(setting, value, score, seed=0):
    return {"setting": setting, "value": value, "seed": seed, "validation": score}


def test_the_best_value_of_each_setting_is_bold():
    result = {
        "dataset": {"name": "bibtex", "sha256": "0" * 64},
        "environment": {"cuda": None, "processor": "a processor", "versions": {"torch": "2"}},
        "monitor": "val/macro_average_precision",
        "recipe": RECIPE,
        "runs": [
            trial(None, None, 0.4, 0),
            trial(None, None, 0.5, 1),
            trial("learning rate", 1e-3, 0.3),
            trial("dropout", 0.0, 0.2),
            trial("dropout", 0.2, 0.46),
        ],
    }
    head, _, *lines = tried(result)
    assert head == "| setting | value and score before | other values and their scores |"
    assert lines[0] == "| learning rate | 0.002: **0.4500** | 0.001: 0.3000 |"
    assert lines[1] == "| dropout | 0.1: 0.4500 | 0: 0.2000, 0.2: **0.4600** |"
    metric = "macro average precision of validation samples in the best epoch"
    assert lines[-2].endswith(f"{metric}; seeds 0, 1")
    assert "data sha256 000000000000; a processor; torch 2" in lines[-1]
