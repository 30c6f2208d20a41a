"""Methods that are more than one model: selector x solver x fill-in (`subspace`), and what is no such product."""
