"""Alembic's environment: runs on the connection that backend/storage/schema.py hands over."""

from alembic import context

from backend.storage.tables import tables


def migrate() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=tables.Base.metadata,
        render_as_batch=True,
        compare_type=True,
        compare_server_default=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


migrate()
