"""The example of the page on layers runs."""

import re


def test_the_example_runs(root):
    page = (root / "docs" / "models.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(example, names)  # compares the decoded steps for itself
    assert names["out"].shape == names["packed"].shape == (2, 32, 64)
    assert names["loss"] > 0
