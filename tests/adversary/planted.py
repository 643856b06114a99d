"""Violations that are planted to see that the adversary finds them: each law of the product switched off, in process.

An entry names the law, the function that keeps it, the text in it that does so, and the text that does not. The
function is compiled anew with that text and stands in for the real one while sequences are played. A text that does not
stand in the function exactly once is an error: the rule moved, and the table must follow.
"""

from __future__ import annotations
import __future__ as future

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch


@dataclass(frozen=True)
class Swap:
    """One function of the product with another text in it."""

    place: str
    old: str
    new: str

    @contextmanager
    def made(self) -> Iterator[None]:
        """Let it stand in for the real one."""
        module_name, _, path = self.place.partition(":")
        importlib.import_module(module_name)
        module = sys.modules[module_name]
        *outer, name = path.split(".")
        holder: Any = module
        for part in outer:
            holder = getattr(holder, part)
        real = inspect.getattr_static(holder, name)
        function = _function(real)
        made = _compiled(function, self.old, self.new, module)
        with ExitStack() as stack:
            if outer:
                stack.enter_context(patch.object(holder, name, _like(real, made)))
            else:
                for other in [item for key, item in sys.modules.items() if key.startswith(("maia.", *_OURS))]:
                    for word, value in list(vars(other).items()):
                        if value is real:
                            stack.enter_context(patch.object(other, word, made))
            yield


@dataclass(frozen=True)
class Planted:
    """One law switched off.

    Attributes:
        law: Which part of the law.
        swaps: The functions that keep it, each with the text in it that does so, and the text that does not. Several
            where one holds behind another.
        themes: The sequences that are about it.
    """

    law: str
    swaps: tuple[Swap, ...]
    themes: tuple[str, ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Let the law go while the block runs."""
        with ExitStack() as stack:
            for swap in self.swaps:
                stack.enter_context(swap.made())
            yield


_OURS = ("stage", "homes", "rogue", "vandal", "impostor", "caretaker")
"""What of the adversary calls the product by names of its own."""


def _function(real: object) -> FunctionType:
    found = real.fget if isinstance(real, property) else getattr(real, "__func__", real)
    found = inspect.unwrap(found)  # type: ignore[arg-type]
    assert isinstance(found, FunctionType), real
    return found


def _like(real: object, made: Any) -> object:
    if isinstance(real, property):
        return property(made)
    return type(real)(made) if isinstance(real, (staticmethod, classmethod)) else made


def _swap(place: str, old: str, new: str) -> Swap:
    return Swap(f"maia.{place}", old, new)


def _of(law: str, themes: str, place: str, old: str, new: str) -> Planted:
    return Planted(law, (_swap(place, old, new),), tuple(themes.split()))


def _compiled(function: FunctionType, old: str, new: str, module: ModuleType) -> Any:
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise LookupError(f"`{old}` stands {source.count(old)} times in {function.__qualname__}")
    source = source.replace(old, new).replace("@property\n", "").replace("@staticmethod\n", "")
    flags = future.annotations.compiler_flag
    scope = dict(vars(module))
    exec(compile(source, f"<planted in {module.__name__}>", "exec", flags=flags, dont_inherit=True), scope)  # noqa: S102
    made = scope[function.__name__]
    if isinstance(made, FunctionType) and made.__closure__ is None:
        # What it calls is looked up in the module itself, as it is then.
        made = FunctionType(made.__code__, vars(module), made.__name__, made.__defaults__)
        made.__kwdefaults__ = scope[function.__name__].__kwdefaults__
    return made


PLANTED = (
    # -- rights
    _of("law of speech", "readers", "authority.speech:narrow", "not speaks(given, added)", "True"),
    _of("law of speech: conditions", "readers", "authority.speech:narrow",
        "[attributes_of(condition) for condition in added]", "[]"),
    _of("chains only narrow", "readers", "authority.derive:_State.narrowed",
        "_State(heard.tag, period", "_State(link.tag, period"),
    _of("who may not delegate gives nothing", "readers", "authority.tuples:five_tuple", "body.delegate", "True"),
    _of("certificates are signed by their issuer", "readers", "principals.certificate:verify_certificate",
        "certificate.signer.key_id != certificate.body.issuer_id", "False"),
    _of("clauses are never mixed", "readers", "kernel.delivery:_Views._cells",
        "self._any(openers)", "self._any(tuple(sorted(set(compiled.demands))))"),
    _of("closed cells are null", "readers", "kernel.delivery:_Views._cells",
        "self._any(openers)", "np.ones(self._batch.num_rows, dtype=np.bool_)"),
    _of("a filter sees only visible cells", "readers", "kernel.delivery:_Views.admitted",
        "admitted &= self._any(compiled.openers[uid])[rows]", "pass"),
    _of("a publisher sets only what is open to it", "publishers", "kernel.publication:_Candidate.of",
        "elif not clause.opens(name):", "elif False:"),
    # -- keys
    _of("keys are for domains", "keys", "kernel.broker_places:BrokerPlaces._placed_by",
        "self._standing(keys if by_name else keys[:-1], domain, by_name=by_name)", "()"),
    _of("keys are not for rights on some rows", "keys", "kernel.group_admission:_Admissions._unserved",
        "if cells.served:", "if False:"),
    _of("keys are not for conditional rights", "keys", "kernel.group_admission:_Admissions._rights",
        "if derived.conditions:", "if False:"),
    # -- origins
    _of("origins prove their right", "origins", "domain.origins:_clauses",
        "verifier.clauses(request, principal=principal", "verifier.clauses(request, principal=definition.name.owner"),
    _of("origins keep to their rows", "origins", "kernel.origin_right:within_right",
        "if not np.logical_or.reduce([np.zeros(count, dtype=np.bool_), *masks]).all():", "if False:"),
    _of("origins keep to their cells", "origins", "kernel.origin_right:within_right",
        "if _sets(clause, uid, kind)", "if True"),
    # -- lanes
    _of("lane objects are signed", "log", "log.lane_objects:_opened",
        "verify_signature(kind, content, signature, owner)", "pass"),
    _of("lane objects are signed by the lane's owner", "log", "log.lane_objects:_opened",
        "if owner.key_id != lane.owner:", "if False:"),
    _of("records continue the digest before", "origins", "log.lane:LaneReader.since",
        "if record.previous != place.digest:", "if False:"),
    Planted("segments have the digest of their commit", (
        _swap("log.segments:_compare", "if left or found.hexdigest() != file.digest:", "if False:"),
        _swap("log.segments:_private",
              "if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.digest:", "if False:"),
    ), ("log",)),
    _of("missing evidence waits", "log", "domain.origins:Origins._judged_on",
        'Judged(doubt="EVIDENCE_MISSING")', "Judged()"),
    _of("a repeated publication counts once", "log publishers", "log.commits:check_turn",
        "if newest is None:", "if True:"),
    # -- replay
    _of("parcels of others are not replayed", "origins", "log.segments:deliver_segment",
        "header.origin.hex() != origin", "False"),
    # -- time
    _of("periods end", "time", "authority.case:Case._check_in_force", "if not period.contains(self.at):", "if False:"),
    _of("plans end", "time", "kernel.plan_term:PlanTerm.check", "if now >= self.until + self.skew:", "if False:"),
    _of("events are not dated back", "origins", "log.commits:read_commit",
        "if any(not before < file.first_stamp <= file.last_stamp <= record.stamp for file in found.files):",
        "if False:"),
    Planted("events are not dated ahead", (
        _swap("domain.stretches:_doubt", "commit.stamp > milliseconds(at) + domain.home.tolerance.skew", "False"),
        _swap("kernel.opening:begin_opening", "header.stamp > arrives + tolerance.skew", "False"),
        _swap("encryption.epochs:select_epoch", "if stamp > arrives + tolerance.skew:", "if False:"),
    ), ("origins",)),
    # -- revocation
    _of("a withdrawal counts at once", "time", "authority.book:StatementBook._taken_away",
        "return certificate in plain.body.certificates", "return False"),
    Planted("lists withdraw", (
        _swap("authority.book:StatementBook.check",
              "listed is (test.kind is TestKind.CRL) or self._taken_away(test, certificate, body)", "False"),
    ), ("time",)),
    Planted("silence denies", (
        _swap("authority.book:StatementBook._in_force",
              "return None if track or", "return track[-1] if track else None if"),
        _swap("authority.book:StatementBook.check", "Confirmation(body.ends)", "Confirmation(None)"),
    ), ("time",)),
    # -- possession
    _of("a key is proven by this challenge", "everything", "principals.authentication:check_nonce_proof",
        "verify_signature(Kind.AUTHENTICATION, _nonce_body(proof.own_nonce, challenge, audience), proof.signature, "
        "proof.key)",
        "pass"),
    # -- keys that are not heard of
    _of("an epoch that was not heard of waits", "rekeys", "domain.stretches:_Segments.doubt",
        "self._require_keys(newest, descent)", "pass"),
    _of("what a publisher that was kept deaf sealed is not lost", "rekeys silence", "encryption.epochs:replaced_epochs",
        "found.append(epochs[position])", "pass"),
    _of("who does not hear the manager seals nothing", "silence", "domain.heard:require_heard",
        "if heard is None or (not heard.alarm and now <= heard.due + home.config.silence * 1000):", "if True:"),
    _of("an eviction changes the key", "rekeys silence", "key_manager.review:review_group",
        "return bool(changes) and", "return False and"),
    # -- upkeep, and disks that fail
    _of("where segments lie is signed before the old ones go", "upkeep", "log.upkeep:_rewrite",
        "writer.append(write_moves(places, lane.lane.folder), at=at)", "pass"),
    _of("a file stays as long as anything in it", "upkeep", "log.upkeep:expire",
        "gone -= {_lies(lane, file) for file in staying}", "pass"),
    _of("what has expired is signed before it goes", "upkeep", "log.upkeep:expire",
        "writer.forget(going[-1].sequence, at=at, keep_own=True)", "pass"),
    _of("a floor that was signed before the disk failed is told", "upkeep", "log.lane_writer:LaneWriter.forget",
        "if upto <= floor.number and told is not None and told.floor.number >= upto:", "if upto <= floor.number:"),
    _of("what something names is not swept", "upkeep", "log.upkeep:sweep",
        "named |= {_lies(lane, file) for file in files}", "pass"),
    _of("stamps are as their commit says", "upkeep", "log.segments:deliver_segment",
        "or not file.first_stamp <= header.stamp <= file.last_stamp", "or False"),
    _of("events of an old log count once", "upkeep", "log.migration:migrate",
        "if parcel.base not in seen:", "if True:"),
    Planted("of an old log a broker takes over what it sealed", (
        _swap("log.migration:_parcels", "if header.origin.hex() == commit.origin:", "if True:"),
        _swap("log.segments:deliver_segment", "header.origin.hex() != origin", "False"),
    ), ("upkeep",)),
    _of("services are no clients", "everything", "domain.possession:client_key",
        "if known[name] in [known[service] for service in services if service in known]:", "if False:"),
)  # fmt: skip
