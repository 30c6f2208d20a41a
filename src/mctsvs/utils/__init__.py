"""What every layer shares: validation of input, options, saved state, plug-ins, BLAS threads, text for people."""
