"""Flow tags and labels: how data may flow inside and between brokers."""

from maia.labels.label import NO_PRIVILEGE, PUBLIC, Label, Privilege, can_flow, join

__all__ = ["NO_PRIVILEGE", "PUBLIC", "Label", "Privilege", "can_flow", "join"]
