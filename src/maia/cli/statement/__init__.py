"""`maia statement`: what signers say about the validity of certificates."""
