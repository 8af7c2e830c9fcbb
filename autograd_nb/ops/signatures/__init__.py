"""What functions and methods of the ops take and give: the stubs of all ops, and what writes them."""
