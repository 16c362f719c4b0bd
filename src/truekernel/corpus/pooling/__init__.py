"""Problems and programs of the family pooling."""
