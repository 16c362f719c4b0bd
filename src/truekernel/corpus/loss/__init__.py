"""Problems and programs of the family loss."""
