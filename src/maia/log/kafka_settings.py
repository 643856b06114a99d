"""Who we are in Kafka, and how we speak to it: by variables of the environment, never by a file of the home.

Kafka itself names no variables. These are the client's own settings in capitals behind ``KAFKA_``. Rules kept here:

- without a word TLS is spoken;
- a variable that is not in the table sets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

_SAID = {
    "KAFKA_SECURITY_PROTOCOL": "security.protocol",
    "KAFKA_SASL_MECHANISM": "sasl.mechanism",
    "KAFKA_SASL_USERNAME": "sasl.username",
    "KAFKA_SASL_PASSWORD": "sasl.password",
    "KAFKA_SSL_CA_LOCATION": "ssl.ca.location",
    "KAFKA_SSL_CERTIFICATE_LOCATION": "ssl.certificate.location",
    "KAFKA_SSL_KEY_LOCATION": "ssl.key.location",
    "KAFKA_SSL_KEY_PASSWORD": "ssl.key.password",
}


def client_settings(told: Mapping[str, str]) -> dict[str, str]:
    """Give the client's settings by what the environment says.

    Examples:
        >>> client_settings({"KAFKA_OPTS": "-Xmx1g"})
        {'security.protocol': 'SSL'}
        >>> client_settings({"KAFKA_SASL_USERNAME": "met"})["security.protocol"]
        'SASL_SSL'
    """
    settings = {setting: told[name] for name, setting in _SAID.items() if told.get(name)}
    # SECURITY: nobody speaks without TLS who did not say so.
    settings.setdefault("security.protocol", "SASL_SSL" if "sasl.username" in settings else "SSL")
    if "sasl.username" in settings:
        settings.setdefault("sasl.mechanism", "SCRAM-SHA-512")
    return settings
