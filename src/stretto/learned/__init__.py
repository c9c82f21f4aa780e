"""Policies that learn: one package per family, which loads and acts without optimisers."""
