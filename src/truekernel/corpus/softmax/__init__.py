"""Problems and programs of the family softmax."""
