"""What a command reads: options, instants, files, passphrases, principals, rights, events; nothing here decides."""
