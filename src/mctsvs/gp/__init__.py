"""An exact Gaussian process for subspaces: numpy and LAPACK only, analytic gradients throughout."""
