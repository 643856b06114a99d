"""Switch the security rules of the product off, one by one; the acceptance tests must notice.

A mutation is a rule, the file it stands in, the exact text that keeps it, the text that lets go of it, and the tests
that have to fail then. For each, the sources are copied to a temporary folder, the one text is exchanged, and the tests
run against that copy. A text that does not stand in its file exactly once is an error: the rule moved, and the table
must follow. A mutation that its tests do not notice is an error as well, and the reason to write a test.

``--sample N`` takes N of them at random, ``--seed`` says which; ``--only WORDS`` those whose rule has these words;
``--check`` looks at the texts alone.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = "tests/acceptance"
TIMEOUT = 900


@dataclass(frozen=True, slots=True)
class Mutation:
    """One rule switched off.

    Attributes:
        rule: What no longer holds.
        file: Where it stands, below src/maia.
        old: The text that keeps it.
        new: The text that does not.
        tests: Who must notice, below tests/acceptance.
    """

    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


BUDGET, UP = "test_one_budget.py", "test_services_stay_up.py"
CERTIFICATES, RIGHTS, VALIDITY = "test_certificates.py", "test_rights.py", "test_validity.py"
NOTICES = "test_notices.py"
REVOCATION, FETCHED = "test_revocation_laws.py", "test_fetched.py"
STREAM, VERSIONS = "test_numberplate_stream.py", "test_versions_stream.py"
SPEECH, ON_VERSIONS = "test_law_of_speech.py", "test_rights_on_versions.py"
LANES = "test_lanes.py"
AUDIT = "test_audit.py"
TIME = "test_plans_end.py"
HOLDERS = "test_who_holds_keys.py"
PEERS = "test_peers.py"
INHERITED, INHERITED_BOUNDS = "test_inheritance.py", "test_inheritance_bounds.py"
BOUNDS, BOUNDED, CARRIED = (
    "test_access_control_filters.py", "test_access_control_filters_stream.py", "test_bounds_in_certificates.py"
)  # fmt: skip
TOPICS, TOPIC_STREAM = "test_topics.py", "test_topics_stream.py"
BROKERS, WRITES, TREES = "test_dishonest_brokers.py", "test_spark_writes.py", "test_key_trees.py"

MUTATIONS = (
    Mutation(
        "inherited: a right on the child opens what the child inherits",
        "kernel/known_types.py",
        "tuple(item.definition for item in known.lineage)",
        "(known.event_type,)",
        (f"{INHERITED}::test_a_right_on_a_type_opens_the_attributes_that_the_type_defines",),
    ),
    Mutation(
        "inherited: a right on the child chooses rows by what the child inherits",
        "kernel/descent.py",
        "        if _named(clause) <= own and (opened or not own):\n",
        "        if opened or not own:\n",
        (f"{INHERITED}::test_a_right_on_the_child_speaks_of_no_inherited_attribute",),
    ),
    Mutation(
        "inherited: a right on the parent admits rows of the child",
        "kernel/delivery.py",
        "for n, clause in zip(demands, clauses, strict=True) if clause.holder is None}",
        "for n in demands}",
        (f"{INHERITED}::test_a_right_on_the_parent_admits_no_row_of_the_child",),
    ),
    Mutation(
        "inherited: what is inherited is sealed by the child's keys",
        "kernel/descent.py",
        "        return None if holder is None else KeyGroupId(holder, label)\n",
        "        return None if holder is None else KeyGroupId(self.type_id, label)\n",
        (f"{INHERITED}::test_a_childs_event_is_the_parents_with_the_parents_attributes",),
    ),
    Mutation(
        "inherited: a child has key groups for what it inherits",
        "key_manager/manager.py",
        "        known = [version.definition for version in versions]",
        "        known = [version.event_type for version in versions]",
        (f"{INHERITED}::test_keys_of_what_is_inherited_are_the_parents",),
    ),
    Mutation(
        "inherited: a reader of the parent opens the child's own attributes",
        "kernel/descent.py",
        "        return self.holders.get(uid, None if self.as_parent else self.type_id)\n",
        "        return self.holders.get(uid, self.type_id)\n",
        (f"{INHERITED}::test_a_number_that_the_parent_takes_later_is_not_the_childs",),
    ),
    Mutation(
        "inherited: a child is sealed as it likes",
        "events/inheritance.py",
        "(ours.encryption, ours.padding, ours.release) != (theirs.encryption, theirs.padding, theirs.release)",
        "False",
        (f"{INHERITED}::test_a_child_travels_as_its_parent",),
    ),
    Mutation(
        "inherited: a uid changes hands between versions",
        "home/types.py",
        "                if holders.setdefault(uid, definition.type_id) != definition.type_id:\n",
        "                if False:\n",
        (f"{INHERITED}::test_versions_of_parent_and_child_are_read_in_each_others_shape",),
    ),
    Mutation(
        "inherited: a bound on the child speaks of what the child inherits",
        "kernel/descent.py",
        "    found.update(uid for bound in clause.cells.bounds for uid in bound.filter.attributes)\n",
        "",
        (f"{INHERITED_BOUNDS}::test_a_bound_on_the_child_speaks_of_no_inherited_attribute",),
    ),
    Mutation(
        "inherited: a subscription out of the child's bounds stands on a right on the parent",
        "kernel/bounds.py",
        "    return found if any(clause.holder is None for clause in found) else ()\n",
        "    return found\n",
        (f"{INHERITED_BOUNDS}::test_a_subscription_is_held_as_a_whole_to_the_bounds_of_each_type",),
    ),
    Mutation(
        "topics: publishing under a topic needs no right on its super-topics",
        "kernel/topics.py",
        "    names = lineage(name.name) if _binds(action, event_type) else (name.name,)\n",
        "    names = (name.name,)\n",
        (f"{TOPICS}::test_publishing_needs_a_right_on_every_super_topic",),
    ),
    Mutation(
        "topics: what the right on a topic demands is lost beside that on its super-topic",
        "kernel/topics.py",
        "    return _demanding(met, other.constraints)\n",
        "    return met\n",
        (f"{TOPICS}::test_what_a_super_topic_demands_counts_below_it",),
    ),
    Mutation(
        "topics: a row that says another topic goes out under this one",
        "kernel/topics.py",
        "    other = np.asarray(pc.not_equal(column, name).fill_null(False))\n",
        "    other = np.zeros(len(column), dtype=np.bool_)\n",
        (f"{TOPICS}::test_a_row_that_says_another_topic_is_refused",),
    ),
    Mutation(
        "topics: an origin writes the name of another topic into its events",
        "kernel/topics.py",
        "    if not _binds(action, event_type):\n        return found\n",
        "    if True:\n        return found\n",
        (f"{TOPIC_STREAM}::test_a_broker_that_writes_another_topic_into_an_event_is_refused",),
    ),
    Mutation(
        "topics: readers believe an origin that lacks a super-topic",
        "domain/origins.py",
        "    requests = requests_for(Action.PUBLISH, definition, any_version=True, versions=versions)\n",
        "    requests = requests_for(Action.PUBLISH, definition, any_version=True, versions=versions)[-1:]\n",
        (f"{TOPIC_STREAM}::test_a_broker_that_lacks_a_super_topic_is_believed_by_nobody",),
    ),
    Mutation(
        "topics: a definition that does not verify is a topic all the same",
        "domain/topics.py",
        "    known = [verified.event_type for verified, _ in domain.known(at=domain.clock()).types]\n",
        "    types = domain.home.types\n"
        "    known = [item.definition for name in types.names() for item in types.find(name)]\n",
        (f"{TOPICS}::test_a_topic_that_its_owner_did_not_sign_is_refused_by_every_broker",),
    ),
    Mutation(
        "topics: a topic of another owner is taken for the one that was named",
        "domain/topics.py",
        "        topics = [item for item in topics if is_owner(domain.home, owner, item.name.owner)]\n",
        "        topics = topics[:]\n",
        (f"{TOPICS}::test_whoever_takes_the_name_of_a_topic_gets_one_of_its_own",),
    ),
    Mutation(
        "topics: who has no right on a topic reads what is below it by its name",
        "domain/topics.py",
        '    needed = parts if "*" in asked.topic else parts[:1]\n',
        "    needed = parts\n",
        (f"{TOPICS}::test_subscribing_needs_the_right_on_that_topic_only",),
    ),
    Mutation(
        "topics: a right on a topic reaches names that merely start alike",
        "authority/rights.py",
        """    return one_of((_name_tag(name), parse_tag((b"*", b"prefix", encode_name(f"{name}.")))))\n""",
        """    return one_of((_name_tag(name), parse_tag((b"*", b"prefix", encode_name(name)))))\n""",
        (f"{TOPICS}::test_subscribing_needs_the_right_on_that_topic_only",),
    ),
    Mutation(
        "who does not prove a client's key is not in the audit",
        "domain/operations.py",
        "        if key is not None and error.code not in _NOT_TRIED:\n",
        "        if False:\n",
        ("test_possession.py::test_who_does_not_prove_a_key_is_in_the_audit",),
    ),
    Mutation(
        "a certificate that was lost is waited for though somebody let it go",
        "domain/grounds.py",
        "        if not home.certificates.let_go(identity):\n",
        "        if True:\n",
        (f"{LANES}::test_a_certificate_that_is_lost_is_named_and_let_go_of_knowingly",),
    ),
    Mutation(
        "a certificate that was lost is let go of without a word in the audit",
        "domain/grounds.py",
        "    audit_of(home).note([row])  # INVARIANT",
        "    # INVARIANT",
        (f"{LANES}::test_a_certificate_that_is_lost_is_named_and_let_go_of_knowingly",),
    ),
    Mutation(
        "who does not prove a key to a service is not in the audit",
        "services/http/app.py",
        "            if isinstance(error, VerificationError):\n",
        "            if False:\n",
        ("test_possession.py::test_who_does_not_prove_a_key_to_a_service_is_in_its_audit",),
    ),
    Mutation(
        "whoever floods a service fills its audit",
        "services/http/unproven.py",
        "            if told is not None and told <= at < told + _EVERY:\n",
        "            if False:\n",
        ("test_possession.py::test_who_does_not_prove_a_key_to_a_service_is_in_its_audit",),
    ),
    # -- access-control filters
    Mutation(
        "a subscription is not held to the bounds of its right",
        "kernel/sessions.py",
        "        clauses = require_bounds(clauses, filter_, Side.SUBSCRIBE)\n",
        "",
        (f"{BOUNDS}::test_subscriptions_are_held_to_the_bounds_of_the_right_at_the_first_broker",),
    ),
    Mutation(
        "an advertisement is not held to the bounds of its right",
        "kernel/bounds.py",
        "if all_allow(clause.cells.bounds, part, side=Side.ADVERTISE)]\n",
        "]\n",
        (f"{BOUNDS}::test_many_fake_advertisements_and_subscriptions_leave_no_state",),
    ),
    Mutation(
        "a right whose bounds forbid a filter opens its attributes to it",
        "kernel/bounds.py",
        "    if held and not found:\n",
        "    if held and found:\n        return held\n    if held:\n",
        (f"{BOUNDS}::test_what_one_right_bounds_another_does_not_loosen",),
    ),
    Mutation(
        "rows are not held to the bounds of the right to publish",
        "kernel/publication.py",
        "        fits = met & bounds_mask(result, clause.cells.bounds)\n",
        "        fits = met\n",
        (f"{BOUNDED}::test_publications_are_held_to_the_bounds_of_the_right",),
    ),
    Mutation(
        "a strict bound leaves other attributes free",
        "kernel/bounds.py",
        "            if uid not in named:\n",
        "            if False:\n",
        (f"{BOUNDED}::test_publications_are_held_to_the_bounds_of_the_right",),
    ),
    Mutation(
        "a publisher is not held to what it announced",
        "kernel/bounds.py",
        "    word = Bound(filter=wanted, kind=BoundKind.STRICT_LOWER)\n",
        "    return tuple(clauses)\n    word = Bound(filter=wanted, kind=BoundKind.STRICT_LOWER)\n",
        (f"{BOUNDED}::test_a_publisher_is_held_to_what_it_announced",),
    ),
    Mutation(
        "a broker is not held to the bounds of its own right",
        "kernel/origin_right.py",
        "    return mask & bounds_mask(batch, clause.cells.bounds, hidden=None if whole else hidden)\n",
        "    return mask\n",
        (f"{BOUNDED}::test_a_broker_is_held_to_the_bounds_of_its_own_right",),
    ),
    Mutation(
        "a link takes away the bounds of the links above it",
        "authority/bounds.py",
        "        return Bounds.of((*self.members, *other.members))\n",
        "        return other\n",
        (f"{CARRIED}::test_the_bounds_of_a_chain_hold_together",),
    ),
    Mutation(
        "a link bounds by attributes that are closed to its issuer",
        "authority/speech.py",
        "    return {uid for uid in named if not permits(uids, uid.encode(), budget)}\n",
        "    return set()\n",
        (f"{CARRIED}::test_nobody_bounds_by_what_is_closed_to_it",),
    ),
    Mutation(
        "two limits of one entry become alternatives of a lower bound",
        "authority/bounds.py",
        "                if len(found) == 1:\n",
        "                if found:\n",
        (f"{CARRIED}::test_bounds_are_a_form_of_tags_that_is_read_in_one_way",),
    ),
    Mutation(
        "a right within a bound opens a key group",
        "authority/rights.py",
        "        return bool(self.bounds) or any(",
        "        return any(",
        (f"{HOLDERS}::test_a_right_within_a_bound_brings_no_key",),
    ),
    # -- a broker's own right
    Mutation(
        "a broker whose right demands one-time answers is not told so",
        "domain/own_right.py",
        '        if error.code != "NO_STATEMENT" or not _needs_answer(verifier, broker, pool, at):\n',
        "        if True:\n",
        (f"{FETCHED}::test_a_broker_whose_right_demands_answers_publishes_nothing_and_is_told_why",),
    ),
    Mutation(
        "nobody warns of a domain's right to publish that one-time answers confirm",
        "authority/lint.py",
        "    found = _answered(body, tag)\n",
        "    found = ()\n",
        (f"{FETCHED}::test_a_broker_whose_right_demands_answers_publishes_nothing_and_is_told_why",),
    ),
    # -- migration
    Mutation(
        "what is damaged is left out of a migration unasked",
        "log/migration.py",
        "    if damaged and not without_damaged:\n",
        "    if False:\n",
        ("test_formats.py::test_a_golden_log_becomes_lanes_once_and_is_read_as_before",),
    ),
    # -- lists that a broker brings
    Mutation(
        "lists do not go along with a request for keys",
        "domain/key_groups.py",
        "    return (*shown, *lists_behind(tests, verifier.statements, at=at, withdrawals=True))\n",
        "    return shown\n",
        (f"{HOLDERS}::test_a_broker_without_a_common_log_brings_the_lists_of_its_rights",),
    ),
    Mutation(
        "a key manager takes no list that a broker brings",
        "key_manager/demanded_lists.py",
        "        if lists and self._take is not None:\n",
        "        if False:\n",
        (f"{HOLDERS}::test_a_broker_without_a_common_log_brings_the_lists_of_its_rights",),
    ),
    # -- keys that were replaced
    Mutation(
        "what a publisher sealed that was kept deaf is lost",
        "encryption/epochs.py",
        "        found.append(epochs[position])\n",
        "        pass\n",
        (f"{NOTICES}::test_what_a_sender_seals_that_is_kept_deaf_is_not_lost",),
    ),
    Mutation(
        "a replaced key opens for ever",
        "encryption/epochs.py",
        "        if stamp > ended + tolerance.deaf or arrives > ended + tolerance.deaf + tolerance.grace:\n",
        "        if False:\n",
        ("test_epochs.py::test_a_replaced_key_is_tried_while_its_publisher_may_be_deaf",),
    ),
    # -- peers
    Mutation(
        "a file between peers that was altered counts",
        "policy/peers/files.py",
        "        verify_signature(kind, body, signature, key)\n",
        "        _ = verify_signature, kind, body, signature, key\n",
        (f"{PEERS}::test_an_altered_invitation_is_refused_and_changes_nothing",),
    ),
    Mutation(
        "an invitation to a peer never ends",
        "policy/peers/invitation.py",
        "        if not self.begins <= at <= self.ends:\n",
        "        if False:\n",
        (f"{PEERS}::test_an_invitation_ends",),
    ),
    Mutation(
        "an invitation to a peer works for anybody, again and again",
        "domain/peers/records.py",
        "        if sent.bound not in (None, key):\n",
        "        if False:\n",
        (f"{PEERS}::test_an_invitation_works_for_one_domain",),
    ),
    Mutation(
        "who was not given an invitation answers it",
        "domain/peers/admission.py",
        "    signed.check_secret(invitation.one_time_key)\n",
        "",
        (f"{PEERS}::test_who_was_not_given_the_file_cannot_answer_it",),
    ),
    Mutation(
        "an answer may agree to more than was offered",
        "domain/peers/admission.py",
        "    if (agreement.title, agreement.giver, agreement.rows) != offered:\n",
        "    if False:\n",
        (f"{PEERS}::test_an_answer_to_more_than_was_offered_is_refused",),
    ),
    Mutation(
        "an invitation for one key is for every key",
        "domain/peers/admission.py",
        "    if invitation.peer_key not in (None, key):\n",
        "    if False:\n",
        (f"{PEERS}::test_an_invitation_for_one_key_is_for_nobody_else",),
    ),
    Mutation(
        "whoever invites manages the keys of every type",
        "domain/peers/answering.py",
        "            prove_key_manager(invitation.manager, item.name, pool, verifier=home.verifier(), at=at)\n",
        "            _ = prove_key_manager, pool\n",
        (f"{PEERS}::test_nobody_takes_over_the_keys_of_a_type_that_is_not_theirs",),
    ),
    Mutation(
        "the title of an agreement is a path",
        "domain/agreement_files.py",
        'f"{check_key_name(title)}{AGREEMENT_SUFFIX}"',
        'f"{title}{AGREEMENT_SUFFIX}"',
        (f"{PEERS}::test_a_title_leads_nowhere",),
    ),
    Mutation(
        "words of an invitation are signed whatever they mean",
        "domain/peers/answering.py",
        "    check_meaning(agreement, TypeCatalogue(types, networks=networks))\n",
        "    _ = check_meaning, TypeCatalogue(types, networks=networks)\n",
        (f"{PEERS}::test_words_that_mean_something_else_are_not_signed",),
    ),
    Mutation(
        "keys of earlier epochs go to every peer",
        "domain/peers/admission.py",
        "history=invitation.history, at=at\n",
        "history=invitation.begins.replace(year=1971), at=at\n",
        (f"{PEERS}::test_keys_of_earlier_come_only_where_the_owner_says_so",),
    ),
    Mutation(
        "ending a connection revokes nothing",
        "domain/peers/ending.py",
        "    revoked = service.revoke(at=at, certificates=dict.fromkeys(ids))\n",
        "    revoked = service.preview_revocation(at=at, certificates=dict.fromkeys(ids))\n",
        (f"{PEERS}::test_disconnecting_revokes_all_and_changes_the_keys",),
    ),
    # -- possession
    Mutation(
        "possession is not demanded by the data source",
        "domain/possession.py",
        "    if not path.is_file():\n        raise NotFoundError(\n",
        "    if not path.is_file():\n        return home.broker\n        raise NotFoundError(\n",
        ("test_possession.py::test_a_name_alone_is_refused_at_every_door",),
    ),
    Mutation(
        "a private key proves any name",
        "domain/possession.py",
        "    if signer.public_key != key:\n",
        "    if False:\n",
        ("test_possession.py::test_a_private_key_of_somebody_else_proves_nothing",),
    ),
    Mutation(
        "the domain's services are clients",
        "domain/possession.py",
        "    if known[name] in [known[service] for service in services if service in known]:\n",
        "    if False:\n",
        ("test_possession.py::test_the_command_refuses_names_too",),
    ),
    Mutation(
        "the passphrase of a sealed key is not asked for",
        "domain/possession.py",
        '    signer = read_key(path, passphrase=passphrase or passphrase_asker(f"`{name}`"))\n',
        "    signer = home.broker if is_locked(home, name) else read_key(path)\n    key = signer.public_key\n",
        ("test_possession.py::test_a_sealed_key_is_unlocked_by_its_passphrase_and_proven_by_an_agent",),
    ),
    # -- certificates and chains
    Mutation(
        "the signature of a certificate is not verified",
        "principals/certificate.py",
        "    verify_signature(Kind.CERTIFICATE, certificate.body_bytes, certificate.signature, certificate.signer)\n",
        "",
        (f"{CERTIFICATES}::test_every_field_is_under_the_signature",),
    ),
    Mutation(
        "the period of a certificate is ignored",
        "authority/case.py",
        "        if not period.contains(self.at):\n",
        "        if False:\n",
        (f"{CERTIFICATES}::test_one_invalid_link_voids_the_chain_and_is_named",),
    ),
    Mutation(
        "a certificate that is not valid yet counts",
        "principals/validity.py",
        "        if self.not_before is not None and at < self.not_before:\n",
        "        if False:\n",
        (f"{VALIDITY}::test_a_period_includes_its_ends_and_an_absent_end_is_open",),
    ),
    Mutation(
        "a revocation list is ignored",
        "authority/book.py",
        "        if listed is (test.kind is TestKind.CRL) or self._taken_away(test, certificate, body):\n",
        "        if False:\n",
        (f"{CERTIFICATES}::test_any_kind_of_invalid_link_voids_the_chain",),
    ),
    Mutation(
        "a missing statement allows",
        "authority/book.py",
        '            raise UncheckedError(f"no {test.kind.value} of `{test.signer.fingerprint}` in force", '
        'code="NO_STATEMENT")\n',
        "            return Confirmation(None)\n",
        (f"{VALIDITY}::test_when_a_timed_list_lapses_the_certificates_that_rely_on_it_do",),
    ),
    Mutation(
        "a timed list serves after its end",
        "authority/book.py",
        "        if index and _ends(track[index - 1]) > at:\n",
        "        if index:\n",
        (f"{VALIDITY}::test_when_a_timed_list_lapses_the_certificates_that_rely_on_it_do",),
    ),
    Mutation(
        "an older plain list replaces a newer one",
        "authority/book.py",
        "        if held is not None and _sequence(held) >= body.sequence and held.digest != statement.digest:\n",
        "        if False:\n",
        (f"{VALIDITY}::test_a_plain_list_with_a_lower_number_is_not_taken",),
    ),
    Mutation(
        "timed lists may overlap",
        "authority/book.py",
        '            raise VerificationError("the list overlaps one that was accepted before", '
        'code="STATEMENT_OVERLAP")\n',
        "            pass\n",
        (f"{VALIDITY}::test_timed_lists_do_not_overlap_and_a_successor_counts_from_its_start",),
    ),
    # -- one series of lists, and revocation that lasts
    Mutation(
        "a list by hand forgets what was revoked",
        "authority/series.py",
        "            certificates |= carried\n",
        "",
        (f"{REVOCATION}::test_each_revocation_takes_force_at_once_whatever_was_signed_ahead",),
    ),
    Mutation(
        "a later list dates a revocation anew",
        "authority/series.py",
        "tuple(self.since.get(identity, stamp_of(at)) for identity in sorted(certificates))",
        "tuple(stamp_of(at) for _ in certificates)",
        (f"{REVOCATION}::test_each_list_repeats_what_was_revoked_and_since_when",),
    ),
    Mutation(
        "a plain list forgets what ended",
        "authority/series.py",
        " if interval is not None else self.certificates | self.since.keys()\n",
        "\n",
        (f"{REVOCATION}::test_a_plain_list_goes_on_naming_what_ended",),
    ),
    Mutation(
        "two processes that revoke at once forget what the other revoked",
        "home/series.py",
        "        with locked(self.path):\n            records",
        "        if self.path:\n            records",
        (f"{REVOCATION}::test_two_processes_revoke_at_once_and_nothing_acknowledged_is_lost",),
    ),
    Mutation(
        "a revocation by hand does not reach the log",
        "domain/lists.py",
        "                publish_statement(notices, signer, statement.raw, at=at)\n",
        "                pass\n",
        (f"{REVOCATION}::test_a_revocation_by_hand_reaches_other_homes",),
    ),
    Mutation(
        "a timed list signed ahead outvotes a revocation",
        "authority/book.py",
        "        if plain is None or not isinstance(plain.body, ListStatement) "
        "or plain.body.sequence < served.sequence:\n",
        "        if True:\n",
        (f"{REVOCATION}::test_each_revocation_takes_force_at_once_whatever_was_signed_ahead",),
    ),
    Mutation(
        "a restored register signs numbers that were taken",
        "access_control/series.py",
        "    elif number > last or (number == last and records.lists.get(kind, last) != known.raw):\n",
        "    elif False:\n",
        (f"{REVOCATION}::test_a_restored_register_notices_it_and_takes_over_what_its_lists_say",),
    ),
    Mutation(
        "a register does not take over the lists that were made by hand before it",
        "access_control/series.py",
        "    if last == 0:\n        _take_over(register, records, kind, at=at)\n",
        "    if last == 0:\n        pass\n",
        (f"{REVOCATION}::test_lists_by_hand_before_there_is_a_register_are_taken_over",),
    ),
    Mutation(
        "domains sign plain lists by default, which silence keeps alive",
        "access_control/settings.py",
        "(TestKind.CRL,)\n    rhythm: Rhythm | None = DEFAULT_RHYTHM\n",
        "(TestKind.CRL,)\n    rhythm: Rhythm | None = None\n",
        (f"{REVOCATION}::test_domains_sign_timed_lists_unless_they_say_otherwise",),
    ),
    Mutation(
        "a home does not renew the lists of its own keys",
        "domain/following.py",
        "        self._own_lists.keep(at=moment)\n",
        "",
        (f"{REVOCATION}::test_a_revocation_that_is_kept_from_a_reader_ends_with_the_printed_window",),
    ),
    Mutation(
        "a right that was revoked by itself is issued anew",
        "access_control/issue.py",
        "        ended = tuple(item for item in entitlements if right_digest(item.right) in barred)\n",
        "        ended = ()\n",
        (f"{REVOCATION}::test_a_right_that_was_revoked_by_itself_is_not_issued_anew",),
    ),
    Mutation(
        "an appointment outlives its certificate",
        "access_control/withdraw.py",
        "            if (appointment := appointment_in(known.raw)) is not None:\n",
        "            if False:\n",
        (f"{REVOCATION}::test_an_appointment_is_in_the_register_and_ends_with_its_revocation",),
    ),
    Mutation(
        "an old file of statements is believed under a running process",
        "domain/statements.py",
        "        if self._mark != mark:\n",
        "        if False:\n",
        (f"{REVOCATION}::test_an_old_file_of_statements_brings_nothing_back",),
    ),
    Mutation(
        "a right given again is the certificate that was revoked",
        "domain/grants.py",
        "    while certificate.certificate_id in dead:",
        "    while False:",
        (f"{REVOCATION}::test_a_right_given_again_is_another_certificate",),
    ),
    Mutation(
        "Python revokes what the service issued beside the register",
        "domain/grants.py",
        "    if folder.config is not None and in_register(folder, text):\n",
        "    if False:\n",
        (f"{REVOCATION}::test_python_revokes_through_the_register_what_the_service_issued",),
    ),
    Mutation(
        "a list is renewed for longer than the one before",
        "domain/lists.py",
        "        length = min(length, rhythm.period)\n",
        "        length = rhythm.period\n",
        (f"{REVOCATION}::test_a_list_is_renewed_for_no_longer_than_the_one_before",),
    ),
    Mutation(
        "whoever writes an address into a certificate sends a home there",
        "domain/fetched.py",
        'hosts=frozenset((self._home.config.fetch or "").split())',
        "hosts=frozenset((parts.netloc,))",
        (f"{FETCHED}::test_only_hosts_that_the_home_allows_are_asked",),
    ),
    Mutation(
        "lists are not fetched from the addresses in certificates",
        "domain/following.py",
        "        self.fetcher.follow(self._folder.current_pool(), at=moment)\n",
        "",
        (f"{FETCHED}::test_each_kind_is_fetched_from_its_address_and_a_revocation_with_it[crl]",),
    ),
    Mutation(
        "nobody is asked to confirm a right for one decision",
        "domain/fetched.py",
        "        if not wanted:\n",
        "        if True:\n",
        (f"{FETCHED}::test_each_kind_is_fetched_from_its_address_and_a_revocation_with_it[one-time]",),
    ),
    Mutation(
        "a plan that rests on an answer lasts like any other",
        "authority/case.py",
        "        untils += [answered for identity in chain if identity in self._nonces]\n",
        "",
        (f"{FETCHED}::test_a_plan_that_rests_on_an_answer_is_over_when_the_question_is",),
    ),
    Mutation(
        "a service renews a certificate for whoever asks",
        "access_control/issue.py",
        "        if subject_key(old.body) != who.key.key_id:\n",
        "        if False:\n",
        (f"{FETCHED}::test_nobody_gets_the_certificate_of_somebody_else_renewed",),
    ),
    Mutation(
        "a right given by hand is irrevocable by default",
        "domain/grants.py",
        "        tests=(OnlineTest(TestKind.CRL, issuer, ()),) if tests is None else tests,",
        "        tests=tests or (),",
        (f"{REVOCATION}::test_a_right_given_by_hand_obeys_its_issuers_lists_and_the_window_is_told",),
    ),
    Mutation(
        "a one-time answer serves twice",
        "authority/verifier.py",
        "            self.statements.use(case.nonces(item.certificate_id for item in grant.certificates), "
        "until=challenge.until)\n",
        "            pass\n",
        (f"{VALIDITY}::test_a_one_time_answer_serves_one_decision",),
    ),
    Mutation(
        "the delegation bit is ignored in decisions",
        "authority/tuples.py",
        "        body.issuer_id, subject_node(body.subject), body.delegate, tag, body.period, body.conditions,\n",
        "        body.issuer_id, subject_node(body.subject), True, tag, body.period, body.conditions,\n",
        (f"{RIGHTS}::test_a_client_cannot_pass_its_right_on", f"{RIGHTS}::test_figure_2_8_of_the_thesis"),
    ),
    Mutation(
        "the delegation bit is ignored in the reduction",
        "authority/tuples.py",
        "    if not first.delegate:\n",
        "    if False:\n",
        (f"{CERTIFICATES}::test_each_condition_of_reduction_has_its_own_error",),
    ),
    Mutation(
        "a chain need not hang together",
        "authority/tuples.py",
        "    if first.subject != second.issuer:\n",
        "    if False:\n",
        (f"{CERTIFICATES}::test_each_condition_of_reduction_has_its_own_error",),
    ),
    Mutation(
        "the intersection of two rights is wider than either",
        "authority/tags.py",
        "        return exact if permits(other, exact.to_sexp(), budget) else NOTHING\n",
        "        return exact\n",
        (f"{CERTIFICATES}::test_each_condition_of_reduction_has_its_own_error", RIGHTS),
    ),
    Mutation(
        "a threshold counts one member twice",
        "authority/thresholds.py",
        "        for key in sorted(willing(node) - used):\n",
        "        for key in sorted(willing(node)):\n",
        (f"{CERTIFICATES}::test_a_member_under_two_names_counts_once",),
    ),
    Mutation(
        "a threshold is content with one member",
        "authority/tuples.py",
        "    return ThresholdNode(principal.k, tuple(principal_node(member) for member in principal.members))\n",
        "    return ThresholdNode(1, tuple(principal_node(member) for member in principal.members))\n",
        (f"{CERTIFICATES}::test_a_threshold_needs_different_members",),
    ),
    Mutation(
        "name certificates are not looked at before they resolve",
        "authority/graph.py",
        "        return [n for n in namings if self._graph.may_lead(n.subject) and self._graph.usable(n.source)]\n",
        "        return list(namings)\n",
        (f"{CERTIFICATES}::test_linked_names_resolve_in_their_own_namespaces",),
    ),
    Mutation(
        "anybody is a root",
        "authority/request.py",
        "            return (Root(subject=self.owner),)\n",
        "            return (Root(subject=self.owner), *configured)\n",
        (f"{CERTIFICATES}::test_a_configured_root_says_nothing_of_types",),
    ),
    # -- types
    Mutation(
        "the signature of a type is not verified",
        "events/definition.py",
        "    verify_signature(Kind.EVENT_TYPE, unverified.signed_bytes(), unverified.signature, unverified.signer)\n",
        "",
        ("test_definitions.py", "test_refusals.py::test_a_definition_that_the_registry_altered_is_not_used"),
    ),
    Mutation(
        "installing is not demanded by a home",
        "domain/types.py",
        "verify_with_registry(registry, item, verifier=verifier, at=at, network=home.network)",
        "verify_with_registry(registry, item, verifier=verifier, at=at, network=None)",
        ("test_refusals.py::test_a_type_without_an_install_chain_is_not_served",),
    ),
    Mutation(
        "a manager may change more than its part",
        "authority/types.py",
        "        beyond = changes.beyond(frozenset(held))\n",
        "        beyond = ()\n",
        ("test_types.py::test_partial_manager_stays_within_its_part",),
    ),
    Mutation(
        "a uid may change its meaning",
        "events/attributes.py",
        "            if types.setdefault(item.uid, item.type) is not item.type:\n",
        "            if types.setdefault(item.uid, item.type) is None:\n",
        ("test_type_command.py::test_a_uid_keeps_its_meaning_over_all_versions",),
    ),
    Mutation(
        "a removed uid comes back as something else",
        "events/changes.py",
        "        if names and item.name not in names:\n",
        "        if False:\n",
        ("test_types.py::test_removed_uid_does_not_come_back_as_something_else",),
    ),
    # -- sessions
    Mutation(
        "connecting is not demanded",
        "kernel/sessions.py",
        "        if self.network is None:\n            return None\n        owner, name",
        "        if True:\n            return None\n        owner, name",
        ("test_refusals.py::test_a_right_on_a_type_is_no_use_without_the_right_to_connect",),
    ),
    Mutation(
        "a filter over a closed attribute is taken",
        "kernel/delivery.py",
        "        if not any(clause.opens(uid) for clause in held):\n",
        "        if False:\n",
        ("test_refusals.py::test_a_filter_over_a_closed_attribute_is_refused",),
    ),
    Mutation(
        "conditions are not asked",
        "kernel/sessions.py",
        "        if not clause.conditions:\n            return clause\n",
        "        if True:\n            return replace(clause, conditions=())\n",
        ("test_conditions.py",),
    ),
    # -- policy
    Mutation(
        "a role is activated without its conditions",
        "policy/engine.py",
        "        if not supports:\n",
        "        if False:\n",
        ("test_roles.py::test_a_role_needs_all_premises_of_its_rule",),
    ),
    Mutation(
        "a role stays when its condition falls",
        "policy/engine.py",
        "        return Withdrawal(held=bool(gone), fallen=self._withdraw(gone))\n",
        "        return Withdrawal(held=bool(gone), fallen=())\n",
        ("test_policy_command.py::test_each_of_three_losses_ends_the_access_and_a_new_start_gives_a_new_certificate",),
    ),
    # -- flow
    Mutation(
        "secrecy is lost on the way",
        "labels/label.py",
        "    return kept_secret and vouched_for\n",
        "    return vouched_for\n",
        ("test_labels.py::test_flow",),
    ),
    # -- sealing
    Mutation(
        "the signature of a parcel is not verified",
        "encryption/parcel.py",
        "    verify_signature(Kind.PARCEL, _signed_body(parcel.header, parcel.blocks), parcel.signature, "
        "parcel.signer)\n",
        "",
        ("test_flips.py",),
    ),
    Mutation(
        "a block is not bound to its place",
        "encryption/parcel.py",
        '    return encode((b"block", encoded, label))\n',
        '    return b"block"\n',
        ("test_parcels.py::test_a_block_moved_elsewhere_does_not_open",),
    ),
    Mutation(
        "every attribute is sealed under one key",
        "encryption/parcel.py",
        "    epoch_key = key_of(label)\n",
        "    epoch_key = next(key for name in header.labels if (key := key_of(name)) is not None)\n",
        ("test_parcels.py::test_the_key_of_one_attribute_opens_that_attribute",),
    ),
    Mutation(
        "the key of an event is not chosen by its stamp",
        "encryption/epochs.py",
        "    epoch = epoch_of(epochs, stamp)\n",
        "    epoch = epochs[0]\n",
        ("test_epochs.py",),
    ),
    Mutation(
        "an evicted member keeps its place in the tree",
        "encryption/trees.py",
        "        leavers = frozenset(leaves)\n",
        "        leavers = frozenset[bytes]()\n",
        ("test_key_trees.py::test_neither_older_nor_newer_events_open",),
    ),
    # -- rows (these start Spark)
    Mutation(
        "closed cells are shown",
        "kernel/delivery.py",
        "take_visible([column for _, column in there], self._any(openers), picked)",
        "take_visible([column for _, column in there], np.ones(self._batch.num_rows, dtype=np.bool_), picked)",
        (f"{STREAM}::test_each_reader_sees_its_own_part_and_the_place_is_forced",),
    ),
    Mutation(
        "the constraint of a clause is ignored on delivery",
        "kernel/delivery.py",
        "            known = mask_of(self._batch, constraints)\n",
        "            known = mask_of(self._batch, ())\n",
        (f"{STREAM}::test_each_reader_sees_its_own_part_and_the_place_is_forced",),
    ),
    Mutation(
        "columns are found by position and not by uid",
        "kernel/delivery.py",
        "    found = [column_of(batch, item.uid) for item in event_type.attributes]\n",
        "    found = [batch.column(n) if n < batch.num_columns else None for n in range(len(event_type.attributes))]\n",
        (f"{VERSIONS}::test_each_version_sees_every_event_in_its_own_shape",),
    ),
    Mutation(
        "a forced value is not forced",
        "kernel/publication.py",
        "                column = forced[name]\n",
        "                column = transit.column(name)\n",
        (f"{STREAM}::test_each_reader_sees_its_own_part_and_the_place_is_forced",),
    ),
    Mutation(
        "what a publisher may not set is not nulled",
        "kernel/publication.py",
        "                column = pa.nulls(size, column.type)\n",
        "                column = transit.column(name)\n",
        (f"{STREAM}::test_what_a_publisher_may_not_set_becomes_null_and_ill_typed_rows_are_refused",),
    ),
    Mutation(
        "a publication that breaks a demand is sent",
        "kernel/publication.py",
        "        met = mask_of(result, tuple(drops))\n",
        "        met = mask_of(result, ())\n",
        (f"{VERSIONS}::test_what_breaks_a_demand_is_dropped_and_a_flooder_is_held_to_its_rate_and_revoked",),
    ),
    # -- the law of speech
    Mutation(
        "speech_rows: a link narrows by rows of closed attributes",
        "authority/speech.py",
        "        if not permits(uids, uid, budget) and (asked is None or intersect(asked, wanted, budget) != asked):\n",
        "        if False:\n",
        (f"{SPEECH}::test_a_right_that_narrows_by_what_is_closed_starts_no_read",),
    ),
    Mutation(
        "speech_conditions: a condition looks at closed attributes",
        "authority/condition_attributes.py",
        "    if _EVENT not in condition:\n",
        "    if True:\n",
        (f"{SPEECH}::test_a_right_that_narrows_by_what_is_closed_starts_no_read",),
    ),
    Mutation(
        "speech_forced: a link forces values that its issuer may not set",
        "authority/derive.py",
        "self.tag, link.tag, conditions=link.conditions, known=self.conditions, budget=question.budget,\n"
        "                versions=question.versions,\n",
        "_intersect(self.tag, link.tag, None), link.tag\n",
        (f"{SPEECH}::test_no_right_forces_a_value_that_its_issuer_may_not_set",),
    ),
    Mutation(
        "speech_versions: all attributes of one version are those of every version",
        "authority/known_versions.py",
        "        if permits(version, _EVERY):\n",
        "        if True:\n",
        (f"{ON_VERSIONS}::test_all_of_a_version_chooses_no_rows_by_what_another_version_has",),
    ),
    Mutation(
        "own_version: a broker publishes every version on a right to one",
        "domain/plans.py",
        "        requests = requests_for(Action.PUBLISH, definition)\n",
        "        requests = requests_for(Action.PUBLISH, definition, any_version=True)\n",
        (f"{ON_VERSIONS}::test_a_broker_publishes_no_version_that_it_has_no_right_to",),
    ),
    Mutation(
        "origin_version: an origin sets every attribute on a right to one version",
        "kernel/clauses.py",
        "            cells = replace(part, uids=versions.opened(part.version, part.uids))\n",
        "            cells = part\n",
        (f"{ON_VERSIONS}::test_a_reader_takes_from_a_broker_only_what_its_version_has",),
    ),
    Mutation(
        "a right on some rows brings the keys of whole columns",
        "kernel/group_admission.py",
        "            if cells.served:\n",
        "            if False:\n",
        (f"{HOLDERS}::test_a_right_on_some_rows_brings_no_key",),
    ),
    Mutation(
        "a link below says that a demand set above is enforced",
        "authority/tags.py",
        "    return rows(merged.items(), enforced=merged.keys() - distrusted)\n",
        "    return rows(merged.items(), enforced=a.enforced | b.enforced)\n",
        (f"{HOLDERS}::test_a_domain_that_is_trusted_to_enforce_gets_keys",),
    ),
    Mutation(
        "whoever may pass a right on is a domain",
        "kernel/broker_places.py",
        "        if standing is None:\n",
        "        standing = standing or ()\n        if False:\n",
        (f"{HOLDERS}::test_who_is_no_domain_has_no_brokers",),
    ),
    Mutation(
        "the rows of an origin's right are not looked at",
        "kernel/origin_right.py",
        "    masks = [_met(batch, clause, hidden) for clause in clauses]\n",
        "    masks = [np.ones(count, dtype=np.bool_) for clause in clauses]\n",
        (f"{HOLDERS}::test_readers_hold_an_origin_to_the_rows_of_its_right",),
    ),
    Mutation(
        "a broker publishes beyond its own right",
        "kernel/publish.py",
        "            if plan.own is not None:\n",
        "            if False:\n",
        (f"{HOLDERS}::test_a_broker_publishes_nothing_that_readers_would_refuse",),
    ),
    Mutation(
        "a rate counts nothing",
        "kernel/publication.py",
        "        granted = 0 if guard is None else guard.grant(len(mine), reservation=name, at=at)\n",
        "        granted = len(mine)\n",
        (f"{VERSIONS}::test_what_breaks_a_demand_is_dropped_and_a_flooder_is_held_to_its_rate_and_revoked",),
    ),
    Mutation(
        "altered evidence of an origin's right is taken",
        "log/directory.py",
        "            if hashlib.sha256(data).digest() != digest:\n",
        "            if False:\n",
        (f"{STREAM}::test_events_whose_origin_is_not_proven_are_not_delivered",),
    ),
    Mutation(
        "the origin of events is not judged",
        "kernel/deliver.py",
        "        return self.origins.get(origin, ())\n",
        "        return self.origins.get(origin)\n",
        (f"{STREAM}::test_events_whose_origin_is_not_proven_are_not_delivered",),
    ),
    # -- time
    Mutation(
        "a plan is worked by after its end",
        "kernel/plan_term.py",
        "        if now >= self.until + self.skew:\n",
        "        if False:\n",
        (f"{TIME}::test_a_frame_delivers_nothing_after_the_right_behind_it_ended",),
    ),
    Mutation(
        "a plan has no greatest age",
        "kernel/plan_term.py",
        "        until = min([made + age, *(end for end in ends if end is not None)])\n",
        "        until = min([made + timedelta(days=99), *(end for end in ends if end is not None)])\n",
        (f"{TIME}::test_a_plan_has_a_greatest_age",),
    ),
    Mutation(
        "a worker does not look at revocations that were heard",
        "kernel/plan_term.py",
        "                book.check(test, identity, at=at)\n",
        "                pass\n",
        (f"{TIME}::test_a_revocation_ends_plans_that_were_made_before",),
    ),
    Mutation(
        "the reader's right does not end its plan",
        "kernel/sessions.py",
        "        found = [clause.until for clause in clauses]\n",
        "        found = []\n",
        (f"{TIME}::test_a_frame_delivers_nothing_after_the_right_behind_it_ended",),
    ),
    Mutation(
        "an origin is judged now and not at the stamp",
        "domain/origins.py",
        "timedelta(milliseconds=min(stamp, _LATEST))",
        "(datetime.now(UTC) - _EPOCH)",
        (f"{TIME}::test_what_a_broker_published_stays_readable_when_its_certificate_expires",),
    ),
    Mutation(
        "a revocation of an origin counts backwards",
        "authority/hindsight.py",
        " and body.moments()[certificate] <= stamp_of(at):\n",
        ":\n",
        (f"{TIME}::test_a_revoked_broker_is_refused_from_that_moment_on_and_not_backwards",),
    ),
    Mutation(
        "a revocation of an origin counts for nothing",
        "authority/hindsight.py",
        "        if withdrawn:\n",
        "        if False:\n",
        (f"{TIME}::test_a_revoked_broker_is_refused_from_that_moment_on_and_not_backwards",),
    ),
    Mutation(
        "lists do not come along with a commit",
        "domain/plans.py",
        "        return (*found.values(), *lists_behind(tests, known.verifier.statements, at=at)), own\n",
        "        return tuple(found.values()), own\n",
        (f"{TIME}::test_a_reader_that_never_held_the_list_judges_by_the_one_that_came_along",),
    ),
    Mutation(
        "conditions of a broker's own right are not asked",
        "domain/plans.py",
        "        own = known.sessions.guarded(left, broker, Action.PUBLISH, definition.name.name, pool, at=at)\n",
        "        own = tuple(replace(clause, conditions=()) for clause in left)\n",
        (f"{TIME}::test_conditions_of_a_broker_are_asked_where_it_publishes",),
    ),
    Mutation(
        "a rate of a broker's own right is not drawn",
        "kernel/origin_right.py",
        " if guard.rates and len(rows) else len(rows)\n",
        " if False else len(rows)\n",
        (f"{TIME}::test_a_rate_of_a_broker_is_drawn_where_it_publishes",),
    ),
    Mutation(
        "ids of events show positions",
        "kernel/parcels.py",
        "        found.append(one.hexdigest()[:32])\n",
        '        found.append(f"{name.hex()}-{row}")\n',
        (f"{TIME}::test_ids_of_events_tell_nothing_about_rows_that_are_hidden",),
    ),
    # -- lanes
    Mutation(
        "an object of a lane that its owner did not sign is accepted",
        "log/lane_objects.py",
        "    verify_signature(kind, content, signature, owner)\n",
        "",
        (f"{LANES}::test_a_record_with_a_forged_signature_is_as_if_it_were_not_there",),
    ),
    Mutation(
        "a gap in a lane is no alarm",
        "log/lane.py",
        "        if alarm is None and len(records) < limit:\n",
        "        if False:\n",
        (f"{LANES}::test_missing_evidence_and_missing_commits_wait_and_lose_nothing",),
    ),
    Mutation(
        "missing evidence is a denial",
        "domain/origins.py",
        '            return Judged(doubt="EVIDENCE_MISSING")\n',
        "            return Judged()\n",
        (f"{LANES}::test_missing_evidence_and_missing_commits_wait_and_lose_nothing",),
    ),
    Mutation(
        "a batch read does not say what waits",
        "domain/sight.py",
        "        parked=dict(sorted(codes.items())),\n",
        "",
        (f"{LANES}::test_missing_evidence_and_missing_commits_wait_and_lose_nothing",),
    ),
    Mutation(
        "folders that are no lanes take the places of lanes",
        "log/store.py",
        "                    and (shape is None or shape.fullmatch(entry.name) is not None)\n",
        "",
        (f"{LANES}::test_no_number_of_strangers_hides_a_lane",),
    ),
    Mutation(
        "a disk that fails for a moment proves a denial",
        "domain/origins.py",
        "            return Judged(doubt=error.code)  # a disk that fails for a moment proves nothing\n",
        "            return Judged()\n",
        (f"{LANES}::test_evidence_that_cannot_be_read_for_a_moment_is_a_doubt",),
    ),
    Mutation(
        "an origin keeps no evidence to put again",
        "log/own_lanes.py",
        "        self._keep_evidence(bytes.fromhex(evidence))\n",
        "",
        (f"{LANES}::test_missing_evidence_and_missing_commits_wait_and_lose_nothing",),
    ),
    Mutation(
        "heads of event lanes are not said again",
        "domain/own_notices.py",
        "        put, signers = self._keep_events(at), dict[KeyId, KeySigner]()\n",
        "        put, signers = 0, dict[KeyId, KeySigner]()\n",
        (f"{LANES}::test_missing_evidence_and_missing_commits_wait_and_lose_nothing",),
    ),
    Mutation(
        "strangers take the places of lanes that count",
        "log/lane_search.py",
        "        if judge is None or len(few) <= MAX_LANES + len(known):\n",
        "        if True:\n",
        (f"{LANES}::test_no_number_of_strangers_hides_a_lane",),
    ),
    Mutation(
        "a certificate that is missing at home is a denial",
        "domain/grounds.py",
        '        return "CERTIFICATE_MISSING" if any(_gone(self._home, ground, pool, at)) else ""\n',
        '        return ""\n',
        (f"{LANES}::test_damage_at_the_readers_own_home_parks_and_loses_nothing",),
    ),
    Mutation(
        "a subscription that cannot be judged is passed over",
        "domain/delivery.py",
        "[(after, planned.doubted())]",
        "[]",
        (f"{LANES}::test_damage_at_the_readers_own_home_parks_and_loses_nothing",),
    ),
    Mutation(
        "an origin that falls silent is no alarm",
        "domain/stretches.py",
        "    if head.due >= now or head.due <= head.asserted:\n",
        "    if True:\n",
        (f"{LANES}::test_an_origin_that_falls_silent_is_an_alarm",),
    ),
    Mutation(
        "a segment is opened before its description is compared",
        "log/segments.py",
        "                _check_shape(parquet, file)\n                # A parcel is a row group",
        "                # A parcel is a row group",
        (f"{LANES}::test_odd_files_stop_hang_and_fill_nobody",),
    ),
    Mutation(
        "a commit may be dated back behind the lane",
        "log/commits.py",
        '        return replace(found, wrong="STAMP_BEHIND")\n',
        "        return found\n",
        (f"{LANES}::test_what_is_dated_back_behind_the_lane_is_refused",),
    ),
    Mutation(
        "a home from the past signs on",
        "log/lane_writer.py",
        "        if ahead:\n",
        "        if False:\n",
        (f"{LANES}::test_a_home_from_a_backup_signs_nothing_until_it_took_over",),
    ),
    Mutation(
        "a clock that jumped ahead stamps",
        "home/home.py",
        '            check_pace(self.path / "pace", at)\n',
        "",
        (f"{LANES}::test_a_clock_that_ran_ahead_acknowledges_nothing_that_is_lost",),
    ),
    Mutation(
        "a publication is counted twice",
        "spark/engine.py",
        "        if known is not None and not known.query:\n",
        "        if False:\n",
        (f"{STREAM}::test_a_publication_counts_once_under_its_name",),
    ),
    # -- the audit
    Mutation(
        "a publication leaves no audit",
        "domain/publication.py",
        "    intended.end(OK, events=done.events, rows=rows)\n",
        "",
        (f"{STREAM}::test_the_audit_says_who_published_and_who_saw",),
    ),
    Mutation(
        "a read leaves no intent in the audit",
        "log/audit/journal.py",
        "        return self._append([draft], at=intent.at, settle=True)\n",
        '        return 1 if intent.code == "READ" else self._append([draft], at=intent.at)\n',
        (f"{AUDIT}::test_one_row_is_enough_for_a_trace",),
    ),
    Mutation(
        "what fails has no result in the audit",
        "domain/operations.py",
        "                self.end(code_of(error))\n",
        "                pass\n",
        (f"{AUDIT}::test_what_is_published_or_fails_has_its_result",),
    ),
    Mutation(
        "an operation whose process is gone runs for ever",
        "log/audit/processes.py",
        "            return _began(int(parts[3])) != parts[4]\n",
        "            return False\n",
        (f"{AUDIT}::test_a_reader_that_dies_half_way_leaves_its_intent",),
    ),
    Mutation(
        "a refusal is not in the audit",
        "domain/operations.py",
        "        if tell:\n",
        "        if False:\n",
        (f"{AUDIT}::test_refusals_are_in_the_audit",),
    ),
    Mutation(
        "the signature of an entry of the audit is not verified",
        "log/audit/check.py",
        "    if not entry.check(key):\n",
        "    if False:\n",
        (f"{AUDIT}::test_what_is_done_to_the_audit_is_found",),
    ),
    Mutation(
        "an entry of the audit need not continue the one before it",
        "log/audit/check.py",
        "    elif entry.previous != digest:\n",
        "    elif False:\n",
        (f"{AUDIT}::test_what_is_done_to_the_audit_is_found",),
    ),
    Mutation(
        "entries of the audit may be missing",
        "log/audit/check.py",
        "    if entry.number > number + 1:\n",
        "    if False:\n",
        (f"{AUDIT}::test_what_is_done_to_the_audit_is_found",),
    ),
    Mutation(
        "the end of the audit may be cut off",
        "log/audit/check.py",
        "    elif remembered.number > found.head[0]:\n",
        "    elif False:\n",
        (f"{AUDIT}::test_what_is_done_to_the_audit_is_found",),
    ),
    Mutation(
        "a loss is forgotten when the audit goes on",
        "log/audit/journal.py",
        "            number, digest = since, head.digest\n",
        "            wrong.clear()\n",
        (f"{AUDIT}::test_what_is_done_to_the_audit_is_found",),
    ),
    Mutation(
        "a torn line ends the audit",
        "log/audit/journal.py",
        "        if good < len(data):\n",
        "        if False:\n",
        (f"{AUDIT}::test_a_line_that_a_crash_tore_is_put_aside_and_told",),
    ),
    Mutation(
        "others may read the audit",
        "log/audit/files.py",
        "PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700\n",
        "PRIVATE_FILE, PRIVATE_FOLDER = 0o644, 0o755\n",
        (f"{AUDIT}::test_the_audit_is_its_owners_alone",),
    ),
    Mutation(
        "the audit holds the values of filters",
        "domain/operations.py",
        """{' ?' if item.values else ''}\"\n""",
        """ {item.values}\"\n""",
        (f"{STREAM}::test_the_audit_says_who_published_and_who_saw",),
    ),
    Mutation(
        "a decision has no budget",
        "authority/budget.py",
        "        if self.steps < self._floor:\n",
        "        if False:\n",
        (f"{BUDGET}::test_the_parts_of_a_decision_share_one_budget",),
    ),
    Mutation(
        "each question of a decision has a budget of its own",
        "authority/verifier.py",
        "self.budget(pool) if budget is None else budget",
        "self.budget(pool)",
        (f"{BUDGET}::test_the_parts_of_a_decision_share_one_budget",),
    ),
    Mutation(
        "signatures are checked after the search",
        "authority/case.py",
        "                known = self.signed(identity)\n",
        "                known = True\n",
        (f"{BUDGET}::test_evidence_that_no_root_leads_to_costs_its_reading",),
    ),
    Mutation(
        "a head has no deadline",
        "services/http/connections.py",
        "        self._deadline = self.loop.call_later(self.head_seconds, self.drop)\n\n",
        "\n",
        (f"{UP}::test_a_connection_that_says_nothing_is_ended",),
    ),
    Mutation(
        "a full service makes no room",
        "services/http/connections.py",
        "        victim.drop()\n",
        "        self.drop()\n",
        (f"{UP}::test_clients_of_every_kind_are_survived",),
    ),
    Mutation(
        "a member takes a name that means something",
        "principals/principal.py",
        '    return unicodedata.normalize("NFKC", name).casefold().replace("_", "-") in RESERVED_NAMES\n',
        "    return False\n",
        ("test_x509.py::test_a_common_name_becomes_no_name_that_means_something",),
    ),
    # -- what is kept: definitions, formats, secrets, acknowledged changes
    Mutation(
        "a definition that speaks for nobody counts",
        "authority/types.py",
        "    grants = list(case.prove_manage(signed, MAX_LINEAGE))\n",
        "    grants: list[Grant] = []\n",
        ("test_one_definition.py::test_a_forged_definition_beside_the_genuine_one_is_enforced_by_nobody",),
    ),
    Mutation(
        "of two definitions that contradict each other both count",
        "domain/types.py",
        "            yield item, verified if len(meanings) == 1 else None\n",
        "            yield item, verified\n",
        (
            "test_one_definition.py::test_the_definition_that_was_accepted_first_counts_and_another_is_refused_and_reported",
        ),
    ),
    Mutation(
        "a definition that was accepted first does not bind",
        "home/types.py",
        "if meanings[item.definition.name] in (None, item.definition.meaning))",
        "if item.definition.name in meanings)",
        (
            "test_one_definition.py::test_the_definition_that_was_accepted_first_counts_and_another_is_refused_and_reported",
        ),
    ),
    Mutation(
        "who may only rename swaps the names of two attributes",
        "events/changes.py",
        "        taken=_taken(old, new, earlier),\n",
        "",
        ("test_one_definition.py::test_who_may_only_rename_gives_no_attribute_the_name_of_another",),
    ),
    Mutation(
        "a home of an older format is accepted silently",
        "home/formats.py",
        "    if number < HOME_FORMAT:\n",
        "    if number < 0:\n",
        ("test_formats.py::test_a_golden_home_is_refused_by_name_migrated_once_and_then_works",),
    ),
    Mutation(
        "a home of a newer format is accepted silently",
        "home/formats.py",
        "    if number > HOME_FORMAT:\n",
        "    if number < 0:\n",
        ("test_formats.py::test_what_a_newer_maia_wrote_is_refused_by_name_and_left_alone",),
    ),
    Mutation(
        "a passphrase stays in the environment of the Java machine",
        "spark/session.py",
        '_SECRETS = ("MAIA_PASSPHRASE", "MAIA_DATABASE_URL")\n',
        "_SECRETS = ()\n",
        ("test_secrets.py::test_the_java_machine_of_a_notebook_gets_no_secret",),
    ),
    Mutation(
        "the secret of a cluster stands in a command line",
        "spark/session.py",
        "    secret = wanted.pop(_SECRET, secrets.token_hex(32))\n",
        "    secret = wanted.get(_SECRET, secrets.token_hex(32))\n",
        ("test_secrets.py::test_the_java_machine_of_a_notebook_gets_no_secret",),
    ),
    Mutation(
        "what went into a journal that was taken away is acknowledged",
        "database/engine.py",
        "    if files is not None and files != _Files.of(files.path):\n",
        "    if files is not None and files.path == Path():\n",
        ("test_durable.py::test_a_service_whose_journal_was_taken_away_acknowledges_nothing_that_is_lost",),
    ),
    # -- what others write about somebody costs them nothing
    Mutation(
        "who holds most connections shuts others out",
        "services/http/connections.py",
        "key=lambda item: (-max(0, of_peer[item.peer] - share), item.served, item.since)",
        "key=lambda item: (item.served, item.since)",
        (f"{UP}::test_who_holds_most_connections_makes_room_for_newcomers",),
    ),
    Mutation(
        "a session's words count more than what its context was started with",
        "spark/session.py",
        "    started = spark.sparkContext.getConf()\n",
        "    started = spark.conf\n",
        ("test_spark_sessions.py::test_a_running_session_is_judged_by_what_it_was_started_with",),
    ),
    Mutation(
        "a branch of chains that takes too long ends the whole decision",
        "authority/derive.py",
        "            self.question.overruns.append(error)\n            return []\n",
        "            raise\n",
        ("test_one_bad_chain.py::test_a_thicket_of_chains_takes_nothing_from_who_did_not_ask_for_it",),
    ),
    Mutation(
        "a malformed right ends all others of its holder",
        "kernel/clauses.py",
        'code="RIGHT_NOT_CELLS")\n            continue\n',
        'code="RIGHT_NOT_CELLS")\n            raise bad\n',
        ("test_one_bad_chain.py::test_a_bad_right_takes_nothing_from_who_did_not_ask_for_it",),
    ),
    Mutation(
        "rights are dear by their sum",
        "kernel/clauses.py",
        "            room -= cost\n",
        "",
        ("test_one_bad_chain.py::test_all_rights_of_a_principal_together_have_one_share_of_patterns",),
    ),
    Mutation(
        "a flood of rights comes before what others gave",
        "kernel/clauses.py",
        "    for clause in fairly(ordered, lambda clause: (*clause.chain, (clause.cells, clause.conditions))):\n",
        "    for clause in ordered:\n",
        ("test_one_bad_chain.py::test_a_bad_right_takes_nothing_from_who_did_not_ask_for_it",),
    ),
    Mutation(
        "the law of speech is not drawn from the budget",
        "authority/speech.py",
        "        if not permits(uids, uid, budget) and",
        "        if not permits(uids, uid) and",
        ("test_one_bad_chain.py::test_the_law_of_speech_draws_from_the_budget",),
    ),
    Mutation(
        "anybody's word is an emergency",
        "home/providers/emergency.py",
        "if change.at <= at and change.by in self.by]",
        "if change.at <= at]",
        ("test_conditions.py::test_an_emergency_opens_what_waits_for_it_and_only_those_who_may_declare_it",),
    ),
    # -- what readers take no broker's word for
    Mutation(
        "an origin sets cells that its right does not hold",
        "kernel/origin_right.py",
        "        holders = [mask for clause, mask in zip(clauses, masks, strict=True) if _sets(clause, uid, kind)]\n",
        "        holders = list(masks)\n",
        (f"{BROKERS}::test_a_cell_that_its_origin_may_not_set_is_null",),
    ),
    Mutation(
        "a parcel of another type counts",
        "kernel/deliver.py",
        "        if header.type_id != self.type_id and header.type_id not in self.aliases | self.children.keys():\n",
        "        if False:\n",
        (f"{BROKERS}::test_a_parcel_of_another_type_is_refused",),
    ),
    Mutation(
        "a parcel that is sealed worse than its owner wants counts",
        "kernel/parcels.py",
        "    if header.mode not in modes:\n",
        "    if False:\n",
        (f"{BROKERS}::test_a_parcel_that_is_sealed_worse_than_its_owner_wants_is_refused",),
    ),
    Mutation(
        "a stamp from the future counts",
        "kernel/parcels.py",
        "    if header.stamp > arrives + tolerance.skew:\n",
        "    if False:\n",
        (f"{BROKERS}::test_a_stamp_from_the_future_waits",),
    ),
    Mutation(
        "a parcel that is refused leaves no audit",
        "domain/log_parts.py",
        '            self.rows += [self._row("refuse", code, count) for code, count in sorted(self.refused.items())]\n',
        "",
        (f"{BROKERS}::test_a_parcel_of_another_type_is_refused",),
    ),
    # -- statements and rekey messages
    Mutation(
        "the signature of a statement is not verified",
        "authority/statements.py",
        "    verify_signature(Kind.STATEMENT, body, statement.signature, statement.signing_key)\n",
        "",
        (f"{VALIDITY}::test_a_list_in_the_name_of_another_is_refused",),
    ),
    Mutation(
        "anybody signs a statement",
        "authority/statements.py",
        "    if statement.signing_key.key_id != statement.body.signer.key_id:\n",
        "    if False:\n",
        (f"{VALIDITY}::test_a_list_in_the_name_of_another_is_refused",),
    ),
    Mutation(
        "the signature of a rekey message is not verified",
        "encryption/rekeys.py",
        "    verify_signature(Kind.REKEY, message.rekey.encoded(), message.signature, message.signer)\n",
        "",
        (f"{TREES}::test_a_message_that_the_manager_did_not_sign_moves_nobody",),
    ),
    Mutation(
        "anybody changes the key of a group",
        "encryption/rekeys.py",
        "    if message.signer != manager:\n",
        "    if False:\n",
        (f"{TREES}::test_a_message_that_the_manager_did_not_sign_moves_nobody",),
    ),
    Mutation(
        "anybody asks a key manager in another's name",
        "encryption/tree_requests.py",
        "    verify_signature(Kind.REQUEST, body, signature, sender)\n",
        "",
        (f"{TREES}::test_requests_answers_and_welcomes_bear_the_signature_of_whom_they_name",),
    ),
    Mutation(
        "what was asked of one key manager is asked of all",
        "encryption/tree_requests.py",
        "    if request.manager != manager:\n",
        "    if False:\n",
        (f"{TREES}::test_requests_answers_and_welcomes_bear_the_signature_of_whom_they_name",),
    ),
    Mutation(
        "the signature of a key manager's answer is not verified",
        "encryption/tree_answers.py",
        "            verify_signature(Kind.REKEY, body, signature, manager)\n",
        "",
        (f"{TREES}::test_requests_answers_and_welcomes_bear_the_signature_of_whom_they_name",),
    ),
    Mutation(
        "the signature of a welcome is not verified",
        "encryption/welcomes.py",
        "    verify_signature(Kind.REKEY, welcome.body(), welcome.signature, manager)\n",
        "",
        (f"{TREES}::test_requests_answers_and_welcomes_bear_the_signature_of_whom_they_name",),
    ),
    # -- conditions, demands and time
    Mutation(
        "the conditions of connecting are not looked at",
        "kernel/sessions.py",
        "        if not grant.conditions:\n            return grant.ends\n",
        "        if grant:\n            return grant.ends\n",
        ("test_conditions.py::test_a_condition_on_connecting_is_asked_like_any_other",),
    ),
    Mutation(
        "a condition on the event hides no row",
        "kernel/delivery.py",
        "                known[known] = guard.mask(rows)\n",
        "                pass\n",
        ("test_event_conditions.py",),
    ),
    Mutation(
        "a condition on the event stops no publication",
        "kernel/publication.py",
        "        holds = fits if guard is None or not fits.any() else fits & guard.mask(result, at=at)\n",
        "        holds = fits\n",
        ("test_event_conditions.py",),
    ),
    Mutation(
        "a type is served after its credentials ended",
        "authority/types.py",
        "        return all(grant.holds_at(at) for grant in self.grants)\n",
        "        return True\n",
        ("test_refusals.py::test_a_home_serves_a_type_as_long_as_its_credentials_last",),
    ),
    Mutation(
        "a client's filter sees cells that are closed in the row",
        "kernel/delivery.py",
        "            admitted &= self._any(compiled.openers[uid])[rows]\n",
        "            pass\n",
        (f"{STREAM}::test_a_filter_sees_the_cells_that_are_open_in_the_row",),
    ),
    Mutation(
        "what is to be dropped is forced",
        "kernel/publication.py",
        "        forcing = clause.on_violation is OnViolation.FORCE\n",
        "        forcing = True\n",
        (f"{WRITES}::test_a_right_says_what_becomes_of_a_publication_that_breaks_it",),
    ),
    Mutation(
        "a publication that is to be rejected as a whole leaves in part",
        "kernel/publication.py",
        "        if unmet.any():\n",
        "        if False:\n",
        (f"{WRITES}::test_a_right_says_what_becomes_of_a_publication_that_breaks_it",),
    ),
    Mutation(
        "a row that a publisher was refused leaves no audit",
        "domain/publication.py",
        '    rows += [row(kind="refuse", code=code, events=count) for code, count in sorted(codes.items())]\n',
        "",
        (f"{WRITES}::test_a_right_says_what_becomes_of_a_publication_that_breaks_it",),
    ),
    Mutation(
        "a stream that is refused leaves no audit",
        "spark/reader.py",
        "                note_refused(self.domain, refused, self.asked.as_)\n",
        "",
        (f"{STREAM}::test_a_subscriber_that_was_away_gets_what_it_missed_once_and_nothing_after_its_end",),
    ),
    # -- what leaves memory, and what lengths tell
    Mutation(
        "a type's padding is forgotten",
        "domain/plans.py",
        "            padding=event_type.options.padding,\n",
        "",
        ("test_padding.py::test_files_of_the_log_do_not_tell_null_from_a_letter",),
    ),
    Mutation(
        "columns are sealed without padding",
        "encryption/columns.py",
        "    fill = -(_HEAD + stored) % padding if padding else 0\n",
        "    fill = 0\n",
        ("test_padding.py::test_lengths_do_not_tell_null_from_a_letter",),
    ),
    Mutation(
        "a session that spills in the clear is taken",
        "spark/session.py",
        "    _check(_missing(found, trusted=trusted, meaning=False))\n",
        "",
        ("test_spark_sessions.py::test_a_session_that_spills_in_the_clear_is_refused",),
    ),
    Mutation(
        "a task of a session that spills in the clear runs",
        "spark/session.py",
        "    _check(_missing(found, trusted=trusted, meaning=True))\n",
        "",
        ("test_spark_sessions.py::test_a_session_that_spills_in_the_clear_is_refused",),
    ),
    # -- notices
    Mutation(
        "a head about any place says that nothing follows, and a gap is no alarm: a cursor is a number",
        "domain/memberships.py",
        "    code = _code(found)\n",
        '    code = ""\n',
        (f"{NOTICES}::test_what_hides_an_eviction_is_an_alarm_and_the_sender_seals_nothing",),
    ),
    Mutation(
        "keys whose manager is silent seal all the same",
        "domain/heard.py",
        "now <= heard.due + home.config.silence * 1000",
        "True",
        (f"{NOTICES}::test_what_hides_an_eviction_is_an_alarm_and_the_sender_seals_nothing",),
    ),
    Mutation(
        "junk under the next number stops the key manager",
        "log/lane_writer.py",
        "            break  # unfit, so nobody's\n",
        "            raise\n",
        (f"{NOTICES}::test_junk_stops_neither_the_manager_nor_who_follows_it",),
    ),
    Mutation(
        "a restored key manager begins epochs that the log has",
        "key_manager/log.py",
        "        if self.is_ahead(group, place):\n",
        "        if False:\n",
        (f"{NOTICES}::test_a_restored_manager_notices_it_whatever_is_replayed",),
    ),
    Mutation(
        "an old statement file revives what was withdrawn",
        "domain/statements.py",
        "        if self._mark != mark:\n",
        "        if False:\n",
        (f"{NOTICES}::test_an_old_statement_file_revives_nothing",),
    ),
    Mutation(
        "a partner fills a home",
        "domain/shares.py",
        "        if len(self.kept) >= most or octets > MAX_SHARE_OCTETS:\n",
        "        if False:\n",
        (f"{NOTICES}::test_a_partner_fills_its_own_share_of_a_home_and_no_other",),
    ),
)


def find(mutation: Mutation, source: Path) -> str:
    """Read the file of a mutation; say what is wrong with its text, or nothing.

    >>> find(Mutation("none", "no/such.py", "a", "b", ()), Path("."))
    'there is no `no/such.py`'
    """
    path = source / "maia" / mutation.file
    if not path.is_file():
        return f"there is no `{mutation.file}`"
    count = path.read_text("utf-8").count(mutation.old)
    return "" if count == 1 else f"the text stands {count} times in `{mutation.file}`"


def run(tests: tuple[str, ...], source: Path, *, timeout: int) -> subprocess.CompletedProcess[str]:
    """Run acceptance tests against a copy of the sources."""
    # A test that runs out of time has noticed nothing, so the time is ours to watch.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "--timeout",
        "0",
        "-o",
        f"cache_dir={source}/cache",
    ]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "ci"}
    return subprocess.run(
        [*command, *(f"{TESTS}/{test}" for test in tests)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip


def judge(mutation: Mutation) -> str:
    """Apply a mutation to a copy and run its tests; return what is wrong, or nothing when they noticed."""
    with tempfile.TemporaryDirectory(prefix="maia-mutation-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        wrong = find(mutation, source)
        if wrong:
            return wrong
        path = source / "maia" / mutation.file
        path.write_text(path.read_text("utf-8").replace(mutation.old, mutation.new), "utf-8")
        compile(path.read_text("utf-8"), str(path), "exec")
        try:
            ran = run(mutation.tests, source, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return f"the tests took more than {TIMEOUT} s"
    if ran.returncode == 1 and re.search(r"^\d+ failed", ran.stdout, re.MULTILINE):
        return ""  # an error before the test began would have noticed nothing
    if ran.returncode == 0:
        return f"nobody noticed: {', '.join(mutation.tests)}"
    return f"the tests could not run:\n{ran.stdout[-2000:]}{ran.stderr[-1000:]}"


def choose(options: argparse.Namespace) -> list[Mutation]:
    """Take all mutations, those of some words, or a sample."""
    chosen = [item for item in MUTATIONS if options.only.lower() in item.rule.lower()]
    if options.sample and options.sample < len(chosen):
        chosen = sorted(random.Random(options.seed).sample(chosen, options.sample), key=MUTATIONS.index)
    return chosen


def main(arguments: list[str] | None = None) -> int:
    """Run the mutations; exit 1 when one of them was not noticed or could not be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="take N at random")
    parser.add_argument("--seed", default="0", help="which sample")
    parser.add_argument("--only", default="", metavar="WORDS", help="those whose rule has these words")
    parser.add_argument("--check", action="store_true", help="look whether every text stands where it should")
    options = parser.parse_args(arguments)
    failed = 0
    chosen = choose(options)
    for mutation in chosen:
        wrong = find(mutation, ROOT / "src") if options.check else judge(mutation)
        failed += bool(wrong)
        word = "WRONG  " if wrong else "found  " if options.check else "noticed"
        print(f"{word} {mutation.rule}{f': {wrong}' if wrong else ''}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} mutations {'can be made' if options.check else 'were noticed'}")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
