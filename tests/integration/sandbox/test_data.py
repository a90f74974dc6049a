"""What a run sees of the machine's data: the file that was asked for, read-only."""

from backend.runs.request.spec import DataSpec
from backend.runs.states import RunState
from tests.integration.sandbox.conftest import failure

LOOK = """
def work(rank, say, folder):
    say(Started(rank))
    path = Path(job.data)
    print("reads", path.read_text())
    for other in (path.parent / "salaries.csv", path.parent.parent):
        print("beside", list(other.iterdir()) if other.is_dir() else other.exists())
    try:
        path.write_text("mine now")
    except OSError as error:
        print("writes", type(error).__name__)
    say(Finished(rank))
"""
WITH_JOB = "import sys\nfrom pathlib import Path\nfrom backend.codec import from_json\n"
JOB = "from backend.runs.job import Job\njob = from_json(Job, Path(sys.argv[1]).read_bytes())\n"


def test_a_file_is_read_but_not_written_and_nothing_beside_it_is_seen(lab, tmp_path):
    folder = tmp_path / "data" / "plants"
    folder.mkdir(parents=True)
    (folder / "leaves.csv").write_text("width,species")
    (folder / "salaries.csv").write_text("secret")
    lab = lab(data=str(tmp_path / "data"))
    run = lab.works(WITH_JOB + JOB + LOOK, data=DataSpec("csv", path="plants/leaves.csv"))
    text = lab.text(run)
    assert run.state is RunState.SUCCEEDED, text
    assert "reads width,species" in text
    assert "beside False" in text
    assert "salaries" not in text
    assert "writes OSError" in text or "writes PermissionError" in text
    assert (folder / "leaves.csv").read_text() == "width,species"


def test_what_the_operator_has_not_opened_is_refused_before_anything_starts(lab, tmp_path):
    (tmp_path / "leaves.csv").write_text("width,species")
    lab = lab(data="")
    path = str(tmp_path / "leaves.csv")
    run = lab.works(LOOK, data=DataSpec("csv", path=path))
    kind, message = failure(run)
    assert kind == "DataNotAllowed"
    assert path in message
