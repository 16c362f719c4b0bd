"""Problems and programs of the family matmul."""
