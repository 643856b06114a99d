"""What alembic runs for each command: the migrations, on the connection that `maia.database.migrate` gives."""

from alembic import context

from maia.database.tables import metadata

_config = getattr(context, "config", None)  # there is none unless alembic runs this file
if _config is not None:
    context.configure(connection=_config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()
