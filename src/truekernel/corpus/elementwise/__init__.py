"""Problems and programs of the family elementwise."""
