"""Problems and programs of the family convolution."""
