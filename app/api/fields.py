"""Numbers that a query may hold, with their bounds."""

from typing import Annotated

from pydantic import Field

MAX_ID = 2**31 - 1
Id = Annotated[int, Field(ge=1, le=MAX_ID)]
Offset = Annotated[int, Field(ge=0, le=MAX_ID)]
Epochs = Annotated[int, Field(ge=0, le=1_000_000)]
Limit = Annotated[int, Field(ge=1, le=1000)]
Lines = Annotated[int, Field(ge=1, le=5000)]
Points = Annotated[int, Field(ge=2, le=100_000)]
