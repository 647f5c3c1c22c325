"""`nescio bench infer`: one private layer, both phases, beside its floor and other programs."""
