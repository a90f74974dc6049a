"""A client of the REST API, in plain Python: `Client("http://127.0.0.1:8501").runs()`.

What comes back are the same values as the services give. Needs neither Streamlit nor torch.
"""

from app.client.preparing import Preparing
from app.client.running import Running


class Client(Preparing, Running):
    """`token` is the server's STAGEFLOW_API_TOKEN; a server on this machine needs none.

    Every method raises `ApiProblem` with the server's words, or `ServerUnreachable`.
    """
