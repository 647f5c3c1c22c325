"""Recording of a training run as a log, by hand or around a Flower strategy."""
