"""The access control service of a domain: role policy in, capabilities out, and withdrawal that reaches everything.

`AccessControl` is the logic, without HTTP; `open_access_control` runs it in process over a home.
"""

from maia.services.access_control.appointments import Appointment, appointment_tag, issue_appointment
from maia.services.access_control.embedded import (
    AGREEMENT_SUFFIX,
    POLICY_FOLDER,
    HomeAgreements,
    HomeEnvironment,
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
    Difference,
    Ended,
    Enrolment,
    Entry,
    Environment,
    Handed,
    Member,
    MemberKind,
    PolicyChange,
    Revocation,
    Surroundings,
    Telling,
    Withdrawn,
)

__all__ = [
    "ADMINISTER",
    "AGREEMENT_SUFFIX",
    "POLICY_FOLDER",
    "AccessControl",
    "Appointment",
    "Difference",
    "Ended",
    "Enrolment",
    "Entry",
    "Environment",
    "Handed",
    "HomeAgreements",
    "HomeEnvironment",
    "HomeSurroundings",
    "HomeTelling",
    "Member",
    "MemberKind",
    "PolicyChange",
    "Revocation",
    "Settings",
    "Surroundings",
    "Telling",
    "Withdrawn",
    "appointment_tag",
    "issue_appointment",
    "open_access_control",
    "prove_key",
    "read_agreement",
    "read_settings",
]
