"""The access control service of a domain: role policy in, capabilities out, and withdrawal that reaches everything.

`AccessControl` is the logic, without HTTP; `open_access_control` runs it in process over a home, and
`make_access_control` over HTTP, which loads FastAPI when it is asked for.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

from maia.services.access_control.appointments import Appointment, appointment_tag, issue_appointment
from maia.services.access_control.embedded import (
    AGREEMENT_SUFFIX,
    POLICY_FOLDER,
    HomeAgreements,
    HomeEnvironment,
    HomeKeyGroups,
    HomeSurroundings,
    HomeTelling,
    open_access_control,
    prove_key,
    read_agreement,
    read_settings,
)
from maia.services.access_control.service import ADMINISTER, AccessControl
from maia.services.access_control.settings import Settings
from maia.services.access_control.values import (
    Application,
    Difference,
    Ended,
    Enrolment,
    Entry,
    Environment,
    Handed,
    Invitation,
    Member,
    MemberKind,
    PolicyChange,
    Revocation,
    Surroundings,
    Telling,
    Withdrawn,
)

if _typing.TYPE_CHECKING:
    from maia.services.access_control.hosting import make_access_control
    from maia.services.access_control.routes import access_control_routes

__all__ = [
    "ADMINISTER",
    "AGREEMENT_SUFFIX",
    "POLICY_FOLDER",
    "AccessControl",
    "Application",
    "Appointment",
    "Difference",
    "Ended",
    "Enrolment",
    "Entry",
    "Environment",
    "Handed",
    "HomeAgreements",
    "HomeEnvironment",
    "HomeKeyGroups",
    "HomeSurroundings",
    "HomeTelling",
    "Invitation",
    "Member",
    "MemberKind",
    "PolicyChange",
    "Revocation",
    "Settings",
    "Surroundings",
    "Telling",
    "Withdrawn",
    "access_control_routes",
    "appointment_tag",
    "issue_appointment",
    "make_access_control",
    "open_access_control",
    "prove_key",
    "read_agreement",
    "read_settings",
]

_ON_FIRST_USE = {"access_control_routes": "routes", "make_access_control": "hosting"}


def __getattr__(name: str) -> object:
    """Load what needs FastAPI when it is asked for."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module `maia.services.access_control` has no attribute `{name}`")
    value: object = getattr(_import_module(f"maia.services.access_control.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = value
    return value
