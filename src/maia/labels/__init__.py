"""Flow tags and labels: how data may flow inside and between brokers, and through every operator of a program."""

from maia.labels.checks import FlowChecks
from maia.labels.label import NO_PRIVILEGE, PUBLIC, Label, Privilege, can_change, can_flow, join, read_as
from maia.labels.local import LocalLabel, LocalTags, is_global
from maia.labels.policy import DeclaredComponent, LabelPolicy, LabelReader, parse_label_policy
from maia.labels.relation import (
    NOTHING_READ,
    Component,
    How,
    RelationLabel,
    declassified,
    endorsed,
    explode,
    group,
    join_relations,
    limit,
    project,
    union,
    where,
    window,
)
from maia.labels.symbolic import Carrier, SymbolicLabel
from maia.labels.tag import common_tags, family_of, tag_of, whole_family
from maia.labels.translation import known_tags, outside_labels, policy_tags, translated_policy

__all__ = [
    "NOTHING_READ",
    "NO_PRIVILEGE",
    "PUBLIC",
    "Carrier",
    "Component",
    "DeclaredComponent",
    "FlowChecks",
    "How",
    "Label",
    "LabelPolicy",
    "LabelReader",
    "LocalLabel",
    "LocalTags",
    "Privilege",
    "RelationLabel",
    "SymbolicLabel",
    "can_change",
    "can_flow",
    "common_tags",
    "declassified",
    "endorsed",
    "explode",
    "family_of",
    "group",
    "is_global",
    "join",
    "join_relations",
    "known_tags",
    "limit",
    "outside_labels",
    "parse_label_policy",
    "policy_tags",
    "project",
    "read_as",
    "tag_of",
    "translated_policy",
    "union",
    "where",
    "whole_family",
    "window",
]
