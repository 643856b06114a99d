"""Parcels, keyrings and epochs: how values travel so that only key holders read them."""

from maia.encryption.cache import CachedParcel, from_wire, open_cached, strip, to_wire
from maia.encryption.columns import Compression, decode_column, encode_column
from maia.encryption.epochs import EpochId, Tolerance, epoch_of, select_epoch
from maia.encryption.header import MAX_COUNT, WHOLE_EVENT, ParcelHeader, parse_header
from maia.encryption.keyring import (
    DEFAULT_CAP,
    KeyGroupId,
    KeyProvider,
    Keyring,
    current_epoch,
    groups_of,
    keyring_secret,
    open_keyring,
    seal_keyring,
)
from maia.encryption.members import TreeMember
from maia.encryption.parcel import (
    Parcel,
    VerifiedParcel,
    open_parcel,
    parse_parcel,
    seal,
    sign_parcel,
    verify_parcel,
)
from maia.encryption.refreshing import (
    ChangeKind,
    GroupChange,
    GroupState,
    Refresh,
    RefreshCause,
    next_refresh,
    plan_refreshes,
    step_group,
)
from maia.encryption.rekeys import Rekey, RekeyMessage, VerifiedRekey, WrappedKey, parse_rekey, sign_rekey, verify_rekey
from maia.encryption.tree_keys import TreeNode, WrapKind
from maia.encryption.trees import KeyTree
from maia.encryption.values import MAX_VALUE, foreign_values
from maia.encryption.welcomes import EpochKey, Welcome, make_welcome, open_welcome, parse_welcome

__all__ = [
    "DEFAULT_CAP",
    "MAX_COUNT",
    "MAX_VALUE",
    "WHOLE_EVENT",
    "CachedParcel",
    "ChangeKind",
    "Compression",
    "EpochId",
    "EpochKey",
    "GroupChange",
    "GroupState",
    "KeyGroupId",
    "KeyProvider",
    "KeyTree",
    "Keyring",
    "Parcel",
    "ParcelHeader",
    "Refresh",
    "RefreshCause",
    "Rekey",
    "RekeyMessage",
    "Tolerance",
    "TreeMember",
    "TreeNode",
    "VerifiedParcel",
    "VerifiedRekey",
    "Welcome",
    "WrapKind",
    "WrappedKey",
    "current_epoch",
    "decode_column",
    "encode_column",
    "epoch_of",
    "foreign_values",
    "from_wire",
    "groups_of",
    "keyring_secret",
    "make_welcome",
    "next_refresh",
    "open_cached",
    "open_keyring",
    "open_parcel",
    "open_welcome",
    "parse_header",
    "parse_parcel",
    "parse_rekey",
    "parse_welcome",
    "plan_refreshes",
    "seal",
    "seal_keyring",
    "select_epoch",
    "sign_parcel",
    "sign_rekey",
    "step_group",
    "strip",
    "to_wire",
    "verify_parcel",
    "verify_rekey",
]
