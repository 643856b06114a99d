"""Principals, attributes, rights and proofs in the words of a home: as people write them, and as they are shown."""

from maia.home.words.asked import (
    Right,
    find_attribute,
    parse_attribute,
    parse_right,
    parse_value,
    split_owner,
    split_type,
)
from maia.home.words.bounds import describe_bounds
from maia.home.words.objects import object_right, parse_object, parse_object_right, show_object
from maia.home.words.online_tests import parse_tests
from maia.home.words.principals import parse_principal_text, show_node, show_subject
from maia.home.words.rights import RightView, describe_tag, describe_value, name_attributes, views
from maia.home.words.steps import ProofStep, explain_proof, removed
from maia.home.words.topics import find_topic, parse_topic_right
from maia.home.words.types import new_name, parse_add, parse_pair, parse_retype, signer_key, split_network, uid_policy

__all__ = [
    "ProofStep",
    "Right",
    "RightView",
    "describe_bounds",
    "describe_tag",
    "describe_value",
    "explain_proof",
    "find_attribute",
    "find_topic",
    "name_attributes",
    "new_name",
    "object_right",
    "parse_add",
    "parse_attribute",
    "parse_object",
    "parse_object_right",
    "parse_pair",
    "parse_principal_text",
    "parse_retype",
    "parse_right",
    "parse_tests",
    "parse_topic_right",
    "parse_value",
    "removed",
    "show_node",
    "show_object",
    "show_subject",
    "signer_key",
    "split_network",
    "split_owner",
    "split_type",
    "uid_policy",
    "views",
]
