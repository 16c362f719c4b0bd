"""Problems and programs of the family reduction."""
