"""A rank without torch: calls `work(rank, say, folder)` of its definition."""

import os
import sys
from pathlib import Path

from backend.codec import from_json
from backend.runs.job import Job
from workers.runtime.reports.event_pipe import event_pipe, tell

job: Job = from_json(Job, Path(sys.argv[1]).read_bytes())
space: dict = {}
exec(Path(job.definition).read_text(), space)
pipe = event_pipe()
space["work"](int(os.environ["RANK"]), lambda event: tell(pipe, event), Path(job.folder))
