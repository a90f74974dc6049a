"""The zoo is read as text."""

import subprocess
import sys

import pytest

from backend.definitions.check import check
from backend.definitions.zoo import zoo, zoo_file
from backend.errors import NotFound


def test_every_bundled_model_has_a_title_and_passes_the_check():
    entries = zoo()
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    assert "vgg_digits" in {entry.name for entry in entries}
    for entry in entries:
        assert entry.title != entry.name
        file = zoo_file(entry.name)
        check(file.name, file.read_bytes())


def test_an_unknown_model_is_not_found_and_the_others_are_named():
    with pytest.raises(NotFound, match="nonsense") as caught:
        zoo_file("nonsense")
    assert "vgg_digits" in caught.value.advice


def test_listing_the_zoo_imports_nothing_of_it():
    code = (
        "import sys; from backend.definitions.zoo import zoo; zoo(); "
        "print([name for name in sys.modules if name.split('.')[0] in ('workers', 'torch')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
