"""AES in EAX mode, the cipher of the thesis, to be measured beside Maia's own; nothing of the product seals with it.

EAX (Bellare, Rogaway and Wagner, 2004) is counter mode and three MACs (OMAC1, which is CMAC):

    N' = OMAC(0 ‖ nonce)    H' = OMAC(1 ‖ header)    C = CTR from N'    tag = N' ⊕ H' ⊕ OMAC(2 ‖ C)

The author of the thesis thought of attaching N' to the event, so that a reader need not compute it for each attribute
(row 21.12). `open_attached` does that, to be measured. It is not secure: whoever adds the same bits to N' and to the
tag gives the reader another plaintext under a tag that fits; see decision 0034.
"""

from __future__ import annotations

import hmac

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC

from maia.errors import SealError

TAG = 16


class Eax:
    """AES-EAX under one key.

    >>> cipher = Eax(bytes(16))
    >>> sealed, tag = cipher.seal(b"nonce", b"header", bytes(4))
    >>> len(sealed), len(tag), cipher.open(b"nonce", b"header", sealed, tag) == bytes(4)
    (4, 16, True)
    """

    def __init__(self, key: bytes) -> None:
        """Use a key of 16, 24 or 32 octets."""
        self._cipher = algorithms.AES(key)

    def seal(self, nonce: bytes, header: bytes, plaintext: bytes) -> tuple[bytes, bytes]:
        """Encrypt, and give the ciphertext, as long as the plaintext, and the tag."""
        start = self.nonce_mac(nonce)
        sealed = self._counter(start, plaintext)
        return sealed, self._tag(start, header, sealed)

    def open(self, nonce: bytes, header: bytes, sealed: bytes, tag: bytes) -> bytes:
        """Check the tag and decrypt.

        Raises:
            SealError: The tag is not that of nonce, header and ciphertext.
        """
        return self.open_attached(self.nonce_mac(nonce), header, sealed, tag)

    def nonce_mac(self, nonce: bytes) -> bytes:
        """Give N': where the counter begins, and what the thesis thought of attaching."""
        return self._omac(0, nonce)

    def open_attached(self, start: bytes, header: bytes, sealed: bytes, tag: bytes) -> bytes:
        """Decrypt with an N' that somebody attached; the nonce itself has no part in it.

        Raises:
            SealError: The tag is not that of N', header and ciphertext.
        """
        if not hmac.compare_digest(self._tag(start, header, sealed), tag):
            raise SealError("the block cannot be opened")
        return self._counter(start, sealed)

    def _tag(self, start: bytes, header: bytes, sealed: bytes) -> bytes:
        parts = (start, self._omac(1, header), self._omac(2, sealed))
        return bytes(a ^ b ^ c for a, b, c in zip(*parts, strict=True))

    def _omac(self, kind: int, data: bytes) -> bytes:
        mac = CMAC(self._cipher)
        mac.update(kind.to_bytes(TAG, "big") + data)
        return mac.finalize()

    def _counter(self, start: bytes, data: bytes) -> bytes:
        stream = Cipher(self._cipher, modes.CTR(start)).encryptor()
        return stream.update(data) + stream.finalize()
