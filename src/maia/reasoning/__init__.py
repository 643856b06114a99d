"""Who reads and writes what, why and why not, what if: answers about rights, from the decisions that enforce them.

This floor decides nothing. It puts questions to the kernel, for everybody whom a question concerns, and compares the
answers: who reads a cell, what ends with a certificate, what differs between two moments, and what one set of rights
shows that another does not.
"""

from maia.reasoning.changes import Changed, Changes, HeldAttribute, changes, ends, offers_of
from maia.reasoning.compare import (
    AttributeRight,
    Rights,
    Verdict,
    Witness,
    always,
    disjoint,
    equivalent,
    errors,
    implies,
    never,
)
from maia.reasoning.demands import NOT_COMPARABLE
from maia.reasoning.denials import DenialEffect, DenialView, view_denials
from maia.reasoning.matrix import Matrix, matrix, stands_for
from maia.reasoning.overlaps import Overlap, overlaps
from maia.reasoning.regions import Row
from maia.reasoning.right_sets import rights_alone, rights_on
from maia.reasoning.roles import Conclusion, RoleRight, conclude, roles_that
from maia.reasoning.who import Cell, CellHolder, WhoCan, held, opens_cell, who_can, why_not
from maia.reasoning.world import World

__all__ = [
    "NOT_COMPARABLE",
    "AttributeRight",
    "Cell",
    "CellHolder",
    "Changed",
    "Changes",
    "Conclusion",
    "DenialEffect",
    "DenialView",
    "HeldAttribute",
    "Matrix",
    "Overlap",
    "Rights",
    "RoleRight",
    "Row",
    "Verdict",
    "WhoCan",
    "Witness",
    "World",
    "always",
    "changes",
    "conclude",
    "disjoint",
    "ends",
    "equivalent",
    "errors",
    "held",
    "implies",
    "matrix",
    "never",
    "offers_of",
    "opens_cell",
    "overlaps",
    "rights_alone",
    "rights_on",
    "roles_that",
    "stands_for",
    "view_denials",
    "who_can",
    "why_not",
]
