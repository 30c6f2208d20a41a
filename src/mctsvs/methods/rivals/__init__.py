"""Methods of other authors that are no product of selector and solver, each with the parts that only it needs."""
