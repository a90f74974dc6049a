"""The forms of data by name: what a person chooses among, and what a run must then say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataForm:
    """`title` for people; `path`: what the path must lead to ("" = the form needs none);
    `columns`: what its inputs and targets are chosen among ("" = there is nothing to choose)."""

    title: str
    path: str = ""
    columns: str = ""


FORMS: dict[str, DataForm] = {
    "digits": DataForm("handwritten digits"),
    "synthetic": DataForm("synthetic, of the model's shape"),
    "definition": DataForm("the model file's own data()"),
    "numpy": DataForm("NumPy arrays (.npz)", "a .npz file, or a folder with train.npz", "arrays"),
    "parquet": DataForm("Parquet", "a .parquet file, or a folder of them", "columns"),
    "csv": DataForm("CSV", "a .csv file with a heading, or a folder of them", "columns"),
    "images": DataForm("folder of images", "a folder with a folder of images per class"),
    "text": DataForm("text files", "a .txt file, or a folder of them"),
    "huggingface": DataForm(
        "Hugging Face data set", "a folder that `datasets` saved, or a name on the hub", "columns"
    ),
    "python": DataForm("Python file with a Dataset", "a .py file with a class Dataset"),
}
"""`workers.data.catalog` loads each of them."""
