"""The forms of data by name: what a person chooses among, and what a run must then say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataForm:
    """`title` for people; `path`: what the path must lead to ("" = the form needs none);
    `columns`: what its inputs and targets are chosen among ("" = there is nothing to choose).
    `texts`: whether a tokenizer may make its samples; `pictures`: whether it may hold some;
    `table`: whether it has columns of numbers and words."""

    title: str
    path: str = ""
    columns: str = ""
    texts: bool = False
    pictures: bool = False
    table: bool = False


FORMS: dict[str, DataForm] = {
    "digits": DataForm("handwritten digits", pictures=True),
    "synthetic": DataForm("synthetic, of the model's shape"),
    "definition": DataForm("the model file's own data()"),
    "numpy": DataForm(
        "NumPy arrays (.npz)", "a .npz file, or a folder with train.npz", "arrays", False, True
    ),
    "parquet": DataForm(
        "Parquet", "a .parquet file, or a folder of them", "columns", True, True, table=True
    ),
    "csv": DataForm(
        "CSV", "a .csv file with a heading, or a folder of them", "columns", True, table=True
    ),
    "jsonl": DataForm(
        "JSON lines", "a .jsonl file, or a folder of them", "fields", True, table=True
    ),
    "images": DataForm(
        "folder of images", "a folder with a folder of images per class", pictures=True
    ),
    "text": DataForm("text files", "a .txt file, or a folder of them", texts=True),
    "huggingface": DataForm(
        "Hugging Face data set",
        "a folder that `datasets` saved, or a name on the hub",
        "columns",
        True,
        True,
        table=True,
    ),
    "python": DataForm(
        "Python file with a Dataset", "a .py file with a class Dataset", pictures=True
    ),
}
"""`workers.data.catalog` loads each of them."""
