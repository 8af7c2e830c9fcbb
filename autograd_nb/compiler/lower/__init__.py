"""Memory planned, records written, the driver that walks them."""
