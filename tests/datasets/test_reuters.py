from __future__ import annotations

import lzma
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tg_mlc._files import sha256
from tg_mlc.datasets import ChecksumError, DatasetUnavailableError, reuters
from tg_mlc.datasets.downloads import Network, RawFile, SourceError
from tg_mlc.datasets.reuters import Reuters21578, read_stories, select_modapte
from tg_mlc.inputs.vocabulary import UNKNOWN, tokenize

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
STORY = """<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="{number}">
<DATE>26-FEB-1987</DATE>
<TOPICS>{labels}</TOPICS>
<PLACES><D>usa</D></PLACES>
<TEXT>&#2;
<TITLE>{title}</TITLE>
<DATELINE>    NEW YORK - </DATELINE><BODY>{body}
&#3;</BODY></TEXT>
</REUTERS>
"""


def story(number=1, split="TRAIN", labels=("corn",), title="TITLE", body="Body", topics="YES"):
    labels = "".join(f"<D>{label}</D>" for label in labels)
    return STORY.format(
        number=number, split=split, labels=labels, title=title, body=body, topics=topics
    )


def parse(text):
    return list(read_stories(text.encode("latin-1")))


@pytest.fixture(scope="session")
def dataset(real_file, tmp_path_factory):
    real_file("reuters21578/raw/reut2-000.sgm.xz")
    return Reuters21578(tmp_path_factory.getbasetemp() / "reuters")


@pytest.fixture(scope="session")
def stories(real_file):
    folder = real_file("reuters21578/raw")
    return [
        found
        for path in sorted(folder.glob("*.sgm.xz"))
        for found in read_stories(lzma.open(path).read())
    ]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The data set of two stories a part in a file of its own."""
    text = HEAD + "".join(
        [
            story(4, "TEST", ["corn", "tea"], body="New crop"),
            story(1, labels=["corn", "rye"], body="The crop of corn. The"),
            story(3, labels=["rye"]),
            story(2, labels=["tea", "corn", "tea"], body="Tea &lt;time>&#127;late"),
            story(5, "NOT-USED"),
            story(6, topics="NO"),
        ]
    )
    files = (RawFile("reut2-000.sgm", (sha256(text.encode()),)), reuters._DESCRIPTIONS)
    monkeypatch.setattr(Reuters21578, "files", files)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "reut2-000.sgm").write_text(text)
    (tmp_path / "raw" / reuters._DESCRIPTIONS.name).write_text("")
    monkeypatch.setattr(
        Reuters21578,
        "read_raw",
        lambda self: {name: (tmp_path / "raw" / name).read_bytes() for name in self.raw_file_names},
    )
    return tmp_path


def test_the_numbers_of_the_collection(stories):
    assert sorted(found.number for found in stories) == list(range(1, 21_579))
    modapte = [found.split for found in stories if found.has_topics]
    assert (modapte.count("TRAIN"), modapte.count("TEST")) == (9603, 3299)


def test_the_numbers_of_the_data_set(dataset):
    assert len(dataset) == 10_789
    assert dataset.num_labels == 90
    assert dataset.kind == "sequence"
    assert dataset.num_inputs == len(dataset.feature_names) == 24_805
    assert dataset.official_split().sizes == (6993, 777, 3019)
    assert dataset.label_names == sorted(dataset.label_names)
    length = dataset.slices["x"].diff()
    assert (length.min(), length.max()) == (5, 1332)
    assert length.float().mean().item() == pytest.approx(122.8, abs=0.05)
    split = dataset.official_split()
    for rows in ([*split.train, *split.val], split.test):  # every topic is in both parts
        assert (dataset.y[rows].sum(dim=0) > 0).all()
    assert (dataset.y.sum(dim=1) > 0).all()


def test_the_cardinality(dataset, stories):
    assert dataset.y.sum(dim=1).mean().item() == pytest.approx(1.2354, abs=5e-5)
    kept, topics = select_modapte(stories)
    assert topics == dataset.label_names
    assert np.mean(
        [sum(topic in topics for topic in found.topics) for found in kept]
    ) == pytest.approx(1.236, abs=5e-4)
    assert [found.number for found in kept if len(set(found.topics)) < len(found.topics)] == [
        5467,
        19918,
    ]


def test_the_first_story_word_by_word(dataset):
    words = [dataset.feature_names[i] for i in dataset[0].x]
    begin = "bahia cocoa review showers continued throughout the week in the bahia cocoa zone alleviating the drought"
    assert words[:16] == begin.split()
    assert words[-5:] == ["ends", "midday", "on", "february", "reuter"]
    assert [
        name for name, value in zip(dataset.label_names, dataset[0].y[0], strict=True) if value
    ] == ["cocoa"]


def test_stories_belong_to_their_samples(dataset):
    found = dataset.stories
    assert [story.number for story in found] == sorted(story.number for story in found)
    number = {word: i for i, word in enumerate(dataset.feature_names)}
    for row in (0, 17, 5000, 10_788):
        assert dataset[row].x.tolist() == [
            number.get(word, 0) for word in tokenize(found[row].text, "letters")
        ]
        topics = {
            name
            for name, value in zip(dataset.label_names, dataset[row].y[0], strict=True)
            if value
        }
        assert topics == set(found[row].topics) & set(dataset.label_names)
    assert [story.number for story in dataset[3:5].stories] == [
        story.number for story in found[3:5]
    ]


def test_the_vocabulary_is_of_training_stories_alone(dataset):
    train = np.flatnonzero([found.split == "TRAIN" for found in dataset.stories])
    ids, ends = dataset._data.x, dataset.slices["x"]
    seen = torch.cat([ids[ends[row] : ends[row + 1]] for row in train]).unique()
    assert seen.tolist() == list(range(1, dataset.num_inputs))
    assert (dataset._data.x == 0).sum() == 7896


def test_texts_without_parts_are_taken_whole(dataset):
    undivided = [found for found in dataset.stories if "<TITLE" not in found.markup]
    assert len(undivided) == 61
    assert tokenize(undivided[0].text, "letters")[:4] == ["federal", "reserve", "weekly", "report"]


def test_topics_are_described(dataset):
    assert len(dataset.label_descriptions) == 135
    assert dataset.label_descriptions.keys() >= set(dataset.label_names)
    described = {
        "housing": "Housing Starts",
        "acq": "Mergers/Acquisitions",
        "coconut-oil": "Coconut oil",
    }
    assert described.items() <= dataset.label_descriptions.items()


def test_options_keep_files_of_their_own(small):
    plain = Reuters21578(small)
    assert (len(plain), plain.label_names) == (3, ["corn", "tea"])
    frequent = Reuters21578(small, min_count=2)
    assert frequent.feature_names == [UNKNOWN, "the", "title"]
    short = Reuters21578(small, max_tokens=2)
    assert [[short.feature_names[i] for i in data.x] for data in short] == [
        ["title", "the"],
        ["title", "tea"],
        ["title", UNKNOWN],
    ]
    assert Reuters21578(small, max_size=1).num_inputs == 2
    assert Reuters21578(small).feature_names == plain.feature_names
    assert len(list((small / "processed").glob("data*.pt"))) == 4


def test_the_small_one_in_full(small):
    dataset = Reuters21578(small)
    assert [[dataset.feature_names[i] for i in data.x] for data in dataset] == [
        ["title", "the", "crop", "of", "corn", "the"],
        ["title", "tea", "time", "late"],
        ["title", UNKNOWN, "crop"],
    ]
    assert dataset.y.tolist() == [[1, 0], [1, 1], [1, 1]]
    assert [found.number for found in dataset.stories] == [1, 2, 4]
    for part in (
        dataset[1:],
        dataset[1:].copy(),
        dataset.copy([1, 2]),
        dataset.copy([0, 2, 1]).copy([2, 1])[[1, 0]],
    ):
        numbers = [found.number for found in part.stories]
        assert len(part) == len(numbers) == 2
        assert [{1: 6, 2: 4, 4: 3}[number] for number in numbers] == [len(data.x) for data in part]
    split = dataset.official_split(val_fraction=0.5)
    assert (split.test.tolist(), sorted([*split.train.tolist(), *split.val.tolist()])) == (
        [2],
        [0, 1],
    )


def test_filtered_samples_have_no_stories(small):
    with pytest.raises(ValueError, match="all stories"):
        _ = Reuters21578(small, pre_filter=lambda data: len(data.x) > 3).stories


@pytest.mark.parametrize("option", ["min_count", "max_size", "max_tokens"])
def test_options_out_of_range(tmp_path, option):
    with pytest.raises(ValueError, match=f"Expected '{option}' to be a whole number of at least 1"):
        Reuters21578(tmp_path, **{option: 0})
    assert list(tmp_path.iterdir()) == []


def test_offline_it_says_what_to_do(tmp_path, monkeypatch):
    def refuse(network, address):
        raise SourceError("no network")

    monkeypatch.setattr(Network, "read", refuse)
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    with pytest.raises(DatasetUnavailableError) as error:
        Reuters21578(tmp_path)
    first, *others = Reuters21578.files
    assert len(first.urls) == 3
    assert all(url.endswith("/reuters21578.tar.gz#reut2-000.sgm") for url in first.urls)
    assert all(f"{url}: no network" in str(error.value) for url in first.urls)
    assert all(f"'{tmp_path / 'raw' / file.name}'" in str(error.value) for file in others)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_wrong_file_is_set_aside(dataset, tmp_path):
    shutil.copytree(Path(dataset.root) / "raw", tmp_path / "raw")
    wrong = tmp_path / "raw" / "reut2-005.sgm"
    wrong.write_bytes(wrong.read_bytes()[:-1])
    with pytest.raises(
        ChecksumError, match=r"reut2-005\.sgm' is not the file.*reut2-005\.sgm\.bad"
    ):
        Reuters21578(tmp_path)
    assert not list((tmp_path / "processed").iterdir())


def test_a_story_and_its_parts():
    [found] = parse(
        HEAD + story(7, "NOT-USED", ["a", "b"], "AT&amp;T &lt;T>", "One\ntwo&#3;\nthree", "BYPASS")
    )
    assert (found.number, found.split, found.has_topics, found.topics) == (
        7,
        "NOT-USED",
        False,
        ["a", "b"],
    )
    assert found.text == "AT&T <T>\nOne\ntwo \nthree\n "


def test_a_story_without_a_body():
    text = story().replace("<BODY>Body\n&#3;</BODY>", "").replace("<TEXT>", '<TEXT TYPE="BRIEF">')
    assert parse(text)[0].text == "TITLE"
    unprocessed = (
        story()
        .replace("<TEXT>", '<TEXT TYPE="UNPROC">')
        .replace("<TITLE>TITLE</TITLE>", "ALL &lt;T>")
    )
    unprocessed = unprocessed.replace("<BODY>", "").replace("</BODY>", "")
    assert tokenize(parse(unprocessed)[0].text, "letters")[:2] == ["all", "t"]
