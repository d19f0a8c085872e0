"""Private helpers: files, locks, caches, progress, compiled loops. No multiple-instance learning in them."""
