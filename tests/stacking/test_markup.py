from tg_mlc.stacking.markup import aligned_table, latex, latex_float, latex_table, markdown_table

CELLS = [("", "F1"), ("my|model_1", "0.5 ± 0.1"), ("b", "1")]


def test_columns_of_text_are_aligned():
    assert aligned_table(CELLS).splitlines() == [
        "            F1",
        "my|model_1  0.5 ± 0.1",
        "b           1",
    ]


def test_markdown_has_one_column_per_cell():
    assert markdown_table(CELLS).splitlines() == [
        "|  | F1 |",
        "| --- | ---: |",
        r"| my\|model_1 | 0.5 ± 0.1 |",
        "| b | 1 |",
    ]


def test_latex_reads_no_character_of_a_text_as_a_command():
    assert latex_table(CELLS).splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r" & F1 \\",
        r"\midrule",
        r"my\textbar{}model\_1 & 0.5 $\pm$ 0.1 \\",
        r"b & 1 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert latex(r"\a{&%$#~^<>") == (
        r"\textbackslash{}a\{\&\%\$\#\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}"
    )
    lines = latex_float([CELLS, CELLS], "5 % better").splitlines()
    assert lines[1:4] == [r"\begin{table}", r"\centering", r"\caption{5 \% better}"]
    assert lines.count(r"\begin{tabular}{lr}") == 2
    assert lines[-1] == r"\end{table}"
