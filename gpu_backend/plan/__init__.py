"""What to do, decided before doing it: frozen plans, their builders, and the interface that executors keep."""
