"""XML policies of image streams: who sees which camera, through which handlers, and who installs which filter.

A front end to the same authority as every other policy: what it decides is issued as an ordinary capability, with a
condition on the clock and with handlers that frames must pass. The texts are read by a strict reader of our own.
"""

from maia.policy.xml.decision import CitedRule, Install, See, XmlDecision, decide
from maia.policy.xml.findings import find_idle
from maia.policy.xml.hours import CameraRight, entitle
from maia.policy.xml.matrix import import_matrix
from maia.policy.xml.reader import DEFAULT_XML_LIMITS, NAMESPACE, XmlLimits, parse_clock, parse_xml, schema
from maia.policy.xml.rules import (
    AccessRule,
    Between,
    Effect,
    ForcedHandler,
    ForcedKind,
    ImageRule,
    InstallRule,
    Region,
    XmlPolicy,
    XmlRule,
)

__all__ = [
    "DEFAULT_XML_LIMITS",
    "NAMESPACE",
    "AccessRule",
    "Between",
    "CameraRight",
    "CitedRule",
    "Effect",
    "ForcedHandler",
    "ForcedKind",
    "ImageRule",
    "Install",
    "InstallRule",
    "Region",
    "See",
    "XmlDecision",
    "XmlLimits",
    "XmlPolicy",
    "XmlRule",
    "decide",
    "entitle",
    "find_idle",
    "import_matrix",
    "parse_clock",
    "parse_xml",
    "schema",
]
