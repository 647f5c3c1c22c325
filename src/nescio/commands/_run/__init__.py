"""The course of `nescio serve`: its options for operation, its configuration file, its reloads."""
