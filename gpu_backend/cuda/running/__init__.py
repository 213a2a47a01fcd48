"""Schedules bound to memory and run; layers observed; kernels checked against plain ones."""
