"""What the process says when it ends: the exit code of an error, and a hint on what to do.

Codes: 0 done, 1 failed, 2 usage, 3 access denied, 4 verification failed, 5 not found, 130 interrupted. The same number
stands as ``"code"`` in the output of ``--json``.
"""

from __future__ import annotations

from enum import IntEnum

from maia.errors import DeniedError, MaiaError, NotFoundError, UsageError, VerificationError


class ExitCode(IntEnum):
    """The documented exit codes."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    NOT_VERIFIED = 4
    NOT_FOUND = 5
    INTERRUPTED = 130


_BY_FAMILY: tuple[tuple[type[MaiaError], ExitCode], ...] = (
    (UsageError, ExitCode.USAGE),
    (DeniedError, ExitCode.DENIED),
    (VerificationError, ExitCode.NOT_VERIFIED),
    (NotFoundError, ExitCode.NOT_FOUND),
)

_HINTS = {
    "USAGE": "try `maia --help`",
    "UNKNOWN_ACTION": "connect and install are for networks; publish, subscribe, manage and extend for event types",
    "ATTRIBUTE_TYPE": "use integer, float, decimal, string, boolean, date, timestamp or binary",
    "NO_HOME": "`maia domain init DIR` makes a home; --home DIR names one",
    "KEY_EXISTS": "choose another name; a key is never overwritten",
    "KEY_FILE_MODE": "run `chmod 600` on the file, and make sure that it is yours",
    "KEY_PASSPHRASE": "try again; without the passphrase the key cannot be used",
    "PASSPHRASE_MISSING": "answer the prompt, set MAIA_PASSPHRASE, or give --passphrase-file FILE or --passphrase-fd N",
    "NO_SUCH_KEY": "`maia key show` lists the keys of this home; `maia key import` adds a public key",
    "NO_SUCH_CERTIFICATE": "`maia cert show` lists the certificates of this home",
    "AMBIGUOUS": "give more characters",
    "NO_SUCH_ATTRIBUTE": "`maia type show TYPE` lists the attributes; `uid:N` names one by its uid",
    "ATTRIBUTE_VALUE": "write the value as the attribute's type demands",
    "ENDS_IN_PAST": "choose a later --until, or leave it out",
    "ISSUER_LACKS_RIGHT": "ask for the right first, narrow it, or give --blanket to issue it nevertheless",
    "SPEAKS_OF_CLOSED": "constraints and conditions name only what their issuer holds; leave that one out",
    "NO_OWNER": "name who owns it with --root PRINCIPAL, or give --blanket to issue it nevertheless",
    "DELEGATION_FORBIDDEN": "the certificate above has to be issued with --delegate",
    "THRESHOLD_NOT_MET": "collect certificates of further members of the threshold",
    "NO_EVIDENCE": "ask for a capability, and put its certificate into the folder",
    "BROKEN_CHAIN": "a certificate between the two is missing from the folder",
    "WRONG_ROOT": "only a chain that starts at the owner counts; ask the owner, or name another root with --root",
    "EXPIRED": "ask its issuer for a fresh certificate",
    "NOT_YET_VALID": "wait, or ask its issuer for an earlier start",
    "REVOKED": "ask its issuer why; a revoked certificate does not come back",
    "NO_STATEMENT": "fetch the statement that the certificate names and add it with `maia statement add`",
    "NAME_UNRESOLVED": "add the name certificate that says whom the name stands for",
    "NOT_PERMITTED": "ask for the missing right",
    "EMPTY_AUTHORITY": "ask for the missing right; the links have nothing in common",
    "IRREVOCABLE": "it ends with its validity period; issue the next one with --test crl:SIGNER",
    "STATEMENT_OVERLAP": "start the new list where the last one ends; lists are never superseded early",
    "STATEMENT_ROLLBACK": "use a higher sequence number",
    "CONFIRMATION_MISSING": "give --yes, or --dry-run to see what would happen",
    "LIMIT_EXCEEDED": "present only the certificates that matter",
}


def exit_code(error: MaiaError) -> ExitCode:
    """Return the exit code of an error: by its family, and 1 for what has no code of its own."""
    if error.code == "INTERRUPTED":
        return ExitCode.INTERRUPTED
    for family, code in _BY_FAMILY:
        if isinstance(error, family):
            return code
    return ExitCode.FAILED


def hint_for(code: str) -> str | None:
    """Return what to do about an error, when something can be done."""
    return _HINTS.get(code)
