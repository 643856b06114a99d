"""The coalition wants to be taken for somebody whose key it does not have."""

from __future__ import annotations

import os

from stage import PEOPLE, Fixed

from maia.domain.possession import client_key, prove_client
from maia.errors import MaiaError
from maia.principals import check_nonce_proof, prove_by_nonce


def impersonate(fixed: Fixed, how: str) -> bool:
    """Try to pass for a client; tell whether it worked."""
    home, challenge, nonce = fixed.homes["m"], os.urandom(32), os.urandom(32)
    here, there = PEOPLE["mb"].public_key.key_id, PEOPLE["sb"].public_key.key_id
    reader = PEOPLE["reader"].public_key
    try:
        match how:
            case "wrong-key":
                return prove_client(home, "reader", PEOPLE["h"]).key == reader
            case "replay":
                proof = prove_by_nonce(PEOPLE["reader"], audience=here, challenge=os.urandom(32), own_nonce=nonce)
                return check_nonce_proof(proof, audience=here, challenge=challenge).key == reader
            case "other-audience":
                proof = prove_by_nonce(PEOPLE["reader"], audience=there, challenge=challenge, own_nonce=nonce)
                return check_nonce_proof(proof, audience=here, challenge=challenge).key == reader
            case "broker":
                return client_key(home, home.config.broker) is not None
            case _:
                home.add_public_key("innocent", PEOPLE["mb"].public_key)
                return client_key(home, "innocent") is not None
    except MaiaError:
        return False
