"""Problems and programs of the family scan."""
