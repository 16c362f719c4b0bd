"""Problems and programs of the family arg_reduction."""
