"""What is known of published data sets without loading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tg_mlc.datasets._statistics import Statistics
from tg_mlc.datasets.card import Facts

MULAN = "https://mulan.sourceforge.net/datasets-mlc.html"
MOLECULENET = "Wu et al., MoleculeNet: A Benchmark for Molecular Machine Learning, Chemical Science 2018"
MOLECULENET_FILES = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"  # as in torch_geometric.datasets
LAMP = "Lanchantin, Sekhon and Qi, Neural Message Passing for Multi-Label Classification, ECML PKDD 2019"
TAGS = "Katakis, Tsoumakas and Vlahavas, Multilabel Text Classification for Automated Tag Suggestion, 2008"
NEURAL_CLASSIFIER = "https://github.com/Tencent/NeuralNLP-NeuralClassifier"
LYRL2004 = "Lewis, Yang, Rose and Li, RCV1: A New Benchmark Collection for Text Categorization Research, JMLR 5, 2004"
RESEARCH = "research purposes only"


@dataclass(frozen=True)
class RegistryEntry:
    """A data set that can be had by its name."""

    facts: Facts
    maker: str  #: ``module:class`` that loads it, or empty if there is no file to load
    options: Mapping[str, Any] = field(default_factory=dict)  #: further arguments of the class
    keeps: Literal["files", "files by name", "nothing"] = "files"  #: in its folder, or in one that it makes in another
    reported: Statistics | None = None  #: what papers say of it, for as long as nobody counted it here

    def folder(self, root: str | Path) -> list[str]:
        """The class's argument that says where to keep files, if it has one, so that they lie in ``root/name``."""
        folders = {"files": [str(Path(root) / self.facts.name)], "files by name": [str(root)], "nothing": []}
        return folders[self.keeps]


def _mulan(facts: Facts, reported: Statistics | None = None) -> RegistryEntry:
    return RegistryEntry(facts, "tg_mlc.datasets.mulan:MulanDataset", {"name": facts.name}, "files by name", reported)


_ALL = (
    RegistryEntry(
        Facts(
            name="sider",
            title="side effects of drugs, as molecular graphs",
            paper=f"Kuhn et al., The SIDER Database of Drugs and Side Effects, 2016; grouped by {MOLECULENET}",
            urls=("http://sideeffects.embl.de", f"{MOLECULENET_FILES}/sider.csv.gz"),
            licence="CC BY-NC-SA 4.0",
            licence_note="attribution, no commercial use, share alike",
            notes=(
                "Labels are positive for 57% of the samples, so that constant scores reach the F1 of the papers.",
                "Every pair of labels occurs together: the papers' co-occurrence graph is complete.",
            ),
        ),
        "tg_mlc.datasets.sider:SIDER",
    ),
    RegistryEntry(
        Facts(
            name="nci",
            title="functional groups of molecules of the National Cancer Institute's open collection",
            urls=("http://www.rdkit.org",),
            licence="BSD-3-Clause",
            licence_note="the files come with RDKit, which has this licence",
            notes=("The groups are a hierarchy, which is the known label graph.",),
        ),
        "tg_mlc.datasets.nci:NCIFunctionalGroups",
    ),
    RegistryEntry(
        Facts(
            name="tox21",
            title="toxicity of chemicals in 12 assays, as molecular graphs",
            paper=MOLECULENET,
            urls=(f"{MOLECULENET_FILES}/tox21.csv.gz",),
            notes=("Not every chemical was tested in every assay: many labels are unknown.",),
        ),
        "tg_mlc.datasets.moleculenet:Tox21",
    ),
    RegistryEntry(
        Facts(
            name="clintox",
            title="approval and toxicity of drugs, as molecular graphs",
            paper=MOLECULENET,
            urls=(f"{MOLECULENET_FILES}/clintox.csv.gz",),
            notes=("The file has 1,484 rows; some of its molecules are no valid graphs and are left out.",),
        ),
        "tg_mlc.datasets.moleculenet:ClinTox",
    ),
    RegistryEntry(
        Facts(
            name="toxcast",
            title="toxicity of chemicals in 617 assays, as molecular graphs",
            paper=MOLECULENET,
            urls=(f"{MOLECULENET_FILES}/toxcast_data.csv.gz",),
        ),
        "tg_mlc.datasets.moleculenet:ToxCast",
    ),
    _mulan(
        Facts(
            name="bibtex",
            title="tags of publications, as bags of words",
            paper=TAGS,
            urls=(MULAN,),
            notes=("The training part has 16 rows more than the 4,377 + 487 that the papers count; all are kept.",),
        )
    ),
    _mulan(
        Facts(
            name="delicious",
            title="tags of web pages, as bags of words",
            paper="Tsoumakas, Katakis and Vlahavas, Effective and Efficient Multilabel Classification in Domains with "
            "Large Number of Labels, 2008",
            urls=(MULAN,),
            notes=("The training part has 34 rows more than the 11,597 + 1,289 that the papers count; all are kept.",),
        )
    ),
    _mulan(
        Facts(
            name="bookmarks",
            title="tags of bookmarked web pages, as bags of words",
            paper=TAGS,
            urls=(MULAN,),
            notes=("The papers split it into 48,000 + 12,000 + 27,856; it is distributed as one file.",),
        ),
        Statistics(
            kind="bag",
            samples=87_856,
            labels=208,
            num_inputs=2_150,
        ),
    ),
    RegistryEntry(
        Facts(
            name="reuters",
            title="topics of news stories, as words in order (Reuters-21578, ModApte split)",
            paper="Lewis, Reuters-21578 Text Categorization Test Collection, 1997",
            urls=("http://www.daviddlewis.com/resources/testcollections/reuters21578/",),
            licence=RESEARCH,
            licence_note="free distribution for research, copyright with Reuters Ltd.",
            notes=("Reduced to the 90 topics that occur in both parts.",),
        ),
        "tg_mlc.datasets.reuters:Reuters21578",
    ),
    RegistryEntry(
        Facts(
            name="rcv1",
            title="topics of news stories, as bags of weighted words (RCV1-v2)",
            paper=LYRL2004,
            urls=("http://www.ai.mit.edu/projects/jmlr/papers/volume5/lewis04a/lyrl2004_rcv1v2_README.htm",),
            licence=RESEARCH,
            licence_note="the stories are Reuters'; vectors and tokens are distributed openly",
            notes=(
                "The topics are a hierarchy, which is the known label graph.",
                "The papers train on the large part (703,135 + 78,126) and test on the 23,149: reverse_split=True.",
            ),
        ),
        "tg_mlc.datasets.rcv1:RCV1",
        reported=Statistics(
            kind="bag",
            samples=804_414,
            labels=103,
            num_inputs=47_236,
            official=(23_149, 781_265),
        ),
    ),
    RegistryEntry(
        Facts(
            name="rcv1-sample",
            title="topics of 2,316 news stories, as words in order (a small part of RCV1-v2)",
            paper=LYRL2004,
            urls=(NEURAL_CLASSIFIER,),
            licence=RESEARCH,
            licence_note="the stories are Reuters'",
            notes=("For trying things out: there is no published split, and 5 of the topics never occur.",),
        ),
        "tg_mlc.datasets.rcv1:RCV1",
        {"form": "json"},
    ),
    RegistryEntry(
        Facts(
            name="tfbs",
            title="transcription factors that bind to pieces of DNA (ENCODE), as letters",
            paper=LAMP,
            urls=("https://github.com/QData/LaMP",),
            notes=(
                "The papers' files are not distributed; DNADataset reads FASTA files with a table of labels.",
                "The label graph of the papers is that of protein interactions (STRING).",
            ),
        ),
        "",
        reported=Statistics(
            kind="sequence",
            samples=2_297_492,
            labels=179,
            num_inputs=4,
            official=(1_671_873, 301_823, 323_796),
        ),
    ),
    RegistryEntry(
        Facts(
            name="binding-sites",
            title="pieces of human DNA to which five transcription factors bind or do not, as letters",
            paper="Blakely et al., FastSK: Fast Sequence Analysis with Gapped String Kernels, Bioinformatics 2020",
            urls=("https://github.com/QData/FastSK",),
            licence="Apache-2.0",
            licence_note="that of the repository with the files",
            notes=(
                "A piece was looked at for one factor only: the other labels are unknown.",
                "STRING knows interactions of the factors, which are a prior label graph.",
            ),
        ),
        "tg_mlc.datasets.binding_sites:BindingSites",
    ),
    RegistryEntry(
        Facts(
            name="deepsea",
            title="chromatin features of 1,000 bp pieces of DNA, as letters",
            paper="Zhou and Troyanskaya, Predicting Effects of Noncoding Variants with Deep Learning-based Sequence "
            "Model, Nature Methods 12, 2015",
            urls=("http://deepsea.princeton.edu/media/code/deepsea_train_bundle.v0.9.tar.gz",),
            notes=("690 of the 919 labels are transcription factors in a cell line.",),
        ),
        "tg_mlc.datasets.deepsea:DeepSEA",
        {"factors_only": False},
        reported=Statistics(
            kind="sequence",
            samples=4_863_024,
            labels=919,
            num_inputs=4,
            official=(4_400_000, 8_000, 455_024),
        ),
    ),
    _mulan(
        Facts(
            name="nuswide",
            title="concepts of photographs, as vectors of 128 entries (cVLAD+)",
            paper="Chua et al., NUS-WIDE: A Real-World Web Image Database, 2009",
            urls=(MULAN,),
            notes=("The papers count 85 labels and split it into 129,431 + 32,358 + 107,859; Mulan's file has 81.",),
        ),
        Statistics(  # of Mulan's files, as Mulan reports them
            kind="vector",
            samples=269_648,
            labels=81,
            num_inputs=128,
            official=(161_789, 107_859),
            cardinality=1.869,
            density=0.023,
        ),
    ),
    _mulan(
        Facts(
            name="mediamill",
            title="concepts of video shots, as vectors",
            paper="Snoek et al., The Challenge Problem for Automated Detection of 101 Semantic Concepts in Multimedia, "
            "2006",
            urls=(MULAN,),
        )
    ),
    _mulan(
        Facts(
            name="yeast",
            title="functions of genes, as vectors",
            paper="Elisseeff and Weston, A Kernel Method for Multi-Labelled Classification, 2001",
            urls=(MULAN,),
        )
    ),
    _mulan(
        Facts(
            name="scene",
            title="what photographs show, as vectors of colours",
            paper="Boutell et al., Learning Multi-Label Scene Classification, 2004",
            urls=(MULAN,),
        )
    ),
    _mulan(
        Facts(
            name="emotions",
            title="emotions in music, as vectors of its sound",
            paper="Trohidis et al., Multi-Label Classification of Music into Emotions, 2008",
            urls=(MULAN,),
        )
    ),
    _mulan(
        Facts(
            name="genbase",
            title="families of proteins, as bags of motifs",
            paper="Diplaris et al., Protein Classification with Multiple Algorithms, 2005",
            urls=(MULAN,),
            notes=("The name of the protein is among the columns of the file; it is left out.",),
        )
    ),
    _mulan(
        Facts(
            name="corel5k",
            title="words for photographs, as bags of visual words",
            paper="Duygulu et al., Object Recognition as Machine Translation, 2002",
            urls=(MULAN,),
        )
    ),
    RegistryEntry(
        Facts(
            name="planted",
            title="samples drawn from a known label graph, whose neighbours carry half of the information",
            licence="MIT",
            licence_note="made by this package",
            notes=("The planted graph is known, so that a learned one can be judged.",),
        ),
        "tg_mlc.datasets.planted:Planted",
        keeps="nothing",
    ),
)
REGISTRY = {entry.facts.name: entry for entry in _ALL}
