"""Values of the Hudi storage format: frozen, picklable, free of I/O."""
