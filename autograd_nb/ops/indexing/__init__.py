"""Reading and writing by index, masks, sorting, and tables of embeddings."""
