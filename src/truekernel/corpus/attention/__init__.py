"""Problems and programs of the family attention."""
