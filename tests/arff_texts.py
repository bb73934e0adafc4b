"""Small ARFF files."""

ATTRIBUTES = "".join(f"@attribute {name} {{0,1}}\n" for name in "uvAB")
TRAIN = f"@relation r\n{ATTRIBUTES}@data\n"
SPARSE, SPARSE_TEST = f"{TRAIN}{{0 1,2 1}}\n{{}}\n{{1 1,2 1,3 1}}\n", f"{TRAIN}{{1 1,3 1}}\n"
XML = (
    '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n'
    '<label name="{}"></label>\n<label name="{}"/></labels>'
)
