import pytest

from tg_mlc._files import sha256
from tg_mlc.datasets import reuters
from tg_mlc.datasets.downloads import RawFile
from tg_mlc.datasets.reuters import Reuters21578, read_stories
from tg_mlc.inputs.words import UNKNOWN, tokenize

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
STORY = """<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" OLDID="1" NEWID="{number}">
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
    parts = {"number": number, "split": split, "title": title, "body": body, "topics": topics}
    return STORY.format(labels="".join(f"<D>{label}</D>" for label in labels), **parts)


def parse(text):
    return list(read_stories(text.encode("latin-1")))


@pytest.fixture(scope="session")
def dataset(real_file, tmp_path_factory):
    real_file("reuters21578/raw/reut2-000.sgm.xz")
    return Reuters21578(tmp_path_factory.getbasetemp() / "reuters")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Writes a small data set of six stories to one file, and returns the folder."""
    texts = [
        story(4, "TEST", ["corn", "tea"], body="New crop"),
        story(1, labels=["corn", "rye"], body="The crop of corn. The"),
        story(3, labels=["rye"]),
        story(2, labels=["tea", "corn", "tea"], body="Tea &lt;time>&#127;late"),
        story(5, "NOT-USED"),
        story(6, topics="NO"),
    ]
    text = HEAD + "".join(texts)
    files = (RawFile("reut2-000.sgm", (sha256(text.encode()),)), reuters._DESCRIPTIONS)
    monkeypatch.setattr(Reuters21578, "files", files)
    contents = {"reut2-000.sgm": text.encode(), reuters._DESCRIPTIONS.name: b""}
    (tmp_path / "raw").mkdir()
    for name, content in contents.items():
        (tmp_path / "raw" / name).write_bytes(content)
    monkeypatch.setattr(Reuters21578, "read_raw", lambda self: dict(contents))
    return tmp_path


def words_of(dataset):
    return [" ".join(dataset.feature_names[i] for i in data.x) for data in dataset]


def topics_of(dataset, row):
    return [dataset.label_names[i] for i in dataset[row].y[0].nonzero().flatten()]


def test_stories_belong_to_their_samples(dataset):
    stories = dataset.stories
    assert [story.number for story in stories] == sorted(story.number for story in stories)
    word_indices = {word: i for i, word in enumerate(dataset.feature_names)}
    for row in (0, 17, 5000, 10_788):
        words = tokenize(stories[row].text, "letters")
        assert dataset[row].x.tolist() == [word_indices.get(word, 0) for word in words]
        topics = set(stories[row].topics) & set(dataset.label_names)
        assert set(topics_of(dataset, row)) == topics
    assert dataset[3:5].stories == stories[3:5]


def test_topics_are_described(dataset):
    assert len(dataset.label_descriptions) == 135
    assert dataset.label_descriptions.keys() >= set(dataset.label_names)
    expected = {"housing": "Housing Starts", "acq": "Mergers/Acquisitions"}
    expected["coconut-oil"] = "Coconut oil"
    assert expected.items() <= dataset.label_descriptions.items()


def test_each_option_has_its_own_processed_file(small):
    plain = Reuters21578(small)
    assert (len(plain), plain.label_names) == (3, ["corn", "tea"])
    frequent = Reuters21578(small, min_count=2)
    assert frequent.feature_names == [UNKNOWN, "the", "title"]
    short = Reuters21578(small, max_tokens=2)
    assert words_of(short) == ["title the", "title tea", f"title {UNKNOWN}"]
    assert Reuters21578(small, max_size=1).num_inputs == 2
    assert Reuters21578(small).feature_names == plain.feature_names
    assert len(list((small / "processed").glob("data*.pt"))) == 4


def test_words_labels_and_stories_of_a_small_data_set(small):
    dataset = Reuters21578(small)
    texts = ["title the crop of corn the", "title tea time late", f"title {UNKNOWN} crop"]
    assert words_of(dataset) == texts
    assert dataset.y.tolist() == [[1, 0], [1, 1], [1, 1]]
    assert [story.number for story in dataset.stories] == [1, 2, 4]
    reordered = dataset.copy([0, 2, 1]).copy([2, 1])[[1, 0]]
    for part in (dataset[1:], dataset[1:].copy(), dataset.copy([1, 2]), reordered):
        numbers = [story.number for story in part.stories]
        assert len(part) == len(numbers) == 2
        assert [{1: 6, 2: 4, 4: 3}[number] for number in numbers] == [len(data.x) for data in part]
    split = dataset.official_split(val_fraction=0.5)
    assert split.test.tolist() == [2]
    assert sorted([*split.train.tolist(), *split.val.tolist()]) == [0, 1]
    with pytest.raises(ValueError, match="all stories"):
        _ = Reuters21578(small, pre_filter=lambda data: len(data.x) > 3).stories


@pytest.mark.parametrize("option", ["min_count", "max_size", "max_tokens"])
def test_wrong_options_are_named(tmp_path, option):
    with pytest.raises(ValueError, match=f"Expected '{option}' to be a whole number of at least 1"):
        Reuters21578(tmp_path, **{option: 0})
    assert list(tmp_path.iterdir()) == []


def test_stories_are_parsed():
    parts = ["a", "b"], "AT&amp;T &lt;T>", "One\ntwo&#3;\nthree"
    [parsed] = parse(HEAD + story(7, "NOT-USED", *parts, "BYPASS"))
    assert (parsed.number, parsed.split) == (7, "NOT-USED")
    assert (parsed.has_topics, parsed.topics) == (False, ["a", "b"])
    assert parsed.text == "AT&T <T>\nOne\ntwo \nthree\n "
    text = story().replace("<BODY>Body\n&#3;</BODY>", "").replace("<TEXT>", '<TEXT TYPE="BRIEF">')
    assert parse(text)[0].text == "TITLE"
    unprocessed = story().replace("<TEXT>", '<TEXT TYPE="UNPROC">')
    unprocessed = unprocessed.replace("<TITLE>TITLE</TITLE>", "ALL &lt;T>")
    unprocessed = unprocessed.replace("<BODY>", "").replace("</BODY>", "")
    assert tokenize(parse(unprocessed)[0].text, "letters")[:2] == ["all", "t"]
