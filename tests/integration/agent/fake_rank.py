"""A rank without torch: calls `work(rank, say, folder)` of its definition."""

import os
import sys
from pathlib import Path

from backend.codec import from_json
from backend.runs.events import write_line
from backend.runs.job import Job

job: Job = from_json(Job, Path(sys.argv[1]).read_bytes())
space: dict = {}
exec(Path(job.definition).read_text(), space)
space["work"](
    int(os.environ["RANK"]), lambda event: print(write_line(event), flush=True), Path(job.folder)
)
