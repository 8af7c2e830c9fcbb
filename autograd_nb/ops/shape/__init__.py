"""Views, other shapes, parts and joins."""
