"""Tables and pictures of the results, written into the documentation."""
