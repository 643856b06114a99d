"""`maia revoke`: take back a certificate, a role or a membership."""
