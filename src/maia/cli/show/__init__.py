"""What a command shows: output and exit codes, and how certificates, rights, proofs and principals look."""
