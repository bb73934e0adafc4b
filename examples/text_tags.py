"""Predicts the tags of texts, where labels are sets of names: python examples/text_tags.py"""

from __future__ import annotations

import random

from tg_mlc.metrics import evaluate
from tg_mlc.sklearn import AutoClassifier

SENTENCES = {
    "billing": ["I was charged twice", "the invoice is wrong", "my card was declined"],
    "login": ["I cannot sign in", "my password is rejected", "the reset mail never came"],
    "crash": ["the app closes by itself", "it freezes after the update", "I only see an error"],
    "mobile": ["this is on my phone", "on Android only", "it happens on my tablet"],
}


def main(seconds: float = 30) -> None:
    """Trains on support tickets, evaluates on other tickets, and tags new ones."""
    texts, tags = make_tickets(200)
    classifier = AutoClassifier(seconds=seconds, random_state=0).fit(texts[:150], tags[:150])

    truth = [[name in names for name in classifier.classes_] for names in tags[150:]]
    probabilities = classifier.predict_proba(texts[150:])
    print(evaluate(truth, probabilities, label_names=list(classifier.classes_)))
    new = ["My password is rejected on my phone", "It freezes and I was charged twice"]
    print(classifier.predict(new))


def make_tickets(count: int) -> tuple[list[str], list[set[str]]]:
    """Makes up tickets: the text with one sentence per tag, and its one to three tags."""
    rng = random.Random(0)
    tags = [set(rng.sample(sorted(SENTENCES), rng.randint(1, 3))) for _ in range(count)]
    return [". ".join(rng.choice(SENTENCES[tag]) for tag in sorted(names)) for names in tags], tags


if __name__ == "__main__":
    main()
