"""Methods: decisions over the unit cube, by name in `registry`, with `base.Engine` as their base class."""
