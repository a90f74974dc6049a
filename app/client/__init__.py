"""What programs import to use a server: `from app.client import Client`."""

from app.client.client import Client as Client
from app.server.answers import ApiProblem as ApiProblem
from app.server.answers import ServerUnreachable as ServerUnreachable
