"""What the scripts of this folder share: a model cut into stages, and what runs, times and watches them."""
