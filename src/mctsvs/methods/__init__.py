"""Methods: decisions over the unit cube, by name in `registry`, with `base.HistoryEngine` as their base class."""
