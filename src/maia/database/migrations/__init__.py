"""Alembic's folder: what it runs (``env``) and the migrations, oldest first, in ``versions``."""
