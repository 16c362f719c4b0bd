"""Problems and programs of the family activation."""
