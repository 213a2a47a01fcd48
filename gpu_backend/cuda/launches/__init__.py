"""Launch builders: from settings, sizes and weights to the launches of one operation. Pure; no driver.

One module an operation of `gpu_backend.ops`. A builder says in its docstring which regions its launches read and
write, and returns a `gpu_backend.cuda.schedule.Built`; `lowering` joins what the operations of `op_table` return.
"""
