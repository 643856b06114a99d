"""What a user does with a domain, by subject: the methods of `Domain`."""

from maia.domain.facade.channels import channel
from maia.domain.facade.decisions import decide, grant, revoke, type_from_schema
from maia.domain.facade.oversight import delegations, oversight, preview_revocation
from maia.domain.facade.peers import connect, invite_peer
from maia.domain.facade.reasoning import compare, ends, explain, rights, what_if, who_can, why_not
from maia.domain.facade.records import replay
from maia.domain.facade.releases import abandon_release, define_release, preview_release, release, released, releases
from maia.domain.facade.sessions import advertise, advertisements, deliver_plan, learn, publish_plan, unadvertise

__all__ = [
    "abandon_release",
    "advertise",
    "advertisements",
    "channel",
    "compare",
    "connect",
    "decide",
    "define_release",
    "delegations",
    "deliver_plan",
    "ends",
    "explain",
    "grant",
    "invite_peer",
    "learn",
    "oversight",
    "preview_release",
    "preview_revocation",
    "publish_plan",
    "release",
    "released",
    "releases",
    "replay",
    "revoke",
    "rights",
    "type_from_schema",
    "unadvertise",
    "what_if",
    "who_can",
    "why_not",
]
