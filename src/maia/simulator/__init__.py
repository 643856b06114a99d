"""Thousands of brokers in one process: the real routing, a virtual clock, and weather that a seed decides."""

from maia.simulator.chaos import ChaosReport, History, Plan, Violation, chaos
from maia.simulator.hops import THESIS, Hops, hops
from maia.simulator.neighbour import Neighbour, meet_neighbour
from maia.simulator.network import CALM, Network, Weather
from maia.simulator.picture import line_chart
from maia.simulator.requests import CheckCount, RequestPlan, count_checks, model
from maia.simulator.scale import Scale, scale, walk
from maia.simulator.statements import AskedStatement, LastMatch, StatementReport, last_matching, state_along_tree

__all__ = [
    "CALM",
    "THESIS",
    "AskedStatement",
    "ChaosReport",
    "CheckCount",
    "History",
    "Hops",
    "LastMatch",
    "Neighbour",
    "Network",
    "Plan",
    "RequestPlan",
    "Scale",
    "StatementReport",
    "Violation",
    "Weather",
    "chaos",
    "count_checks",
    "hops",
    "last_matching",
    "line_chart",
    "meet_neighbour",
    "model",
    "scale",
    "state_along_tree",
    "walk",
]
