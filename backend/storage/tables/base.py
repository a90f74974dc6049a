"""What all tables have in common: names of their constraints, and columns of Python types."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, BigInteger, Enum, Integer, MetaData
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import Double

from backend.storage.tables.values import CleanText, UtcDateTime

Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
Big = BigInteger().with_variant(Integer(), "sqlite")


def one_of(kind: type[StrEnum]) -> Enum:
    """A column that holds the values of `kind`."""
    return Enum(
        kind,
        native_enum=False,
        length=16,
        values_callable=lambda members: [member.value for member in members],
    )


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy's own way)
        str: CleanText(),
        float: Double(),
        datetime: UtcDateTime(),
        dict[str, Any]: Json,
        list[Any]: Json,
    }
