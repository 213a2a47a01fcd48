"""The history strip."""
