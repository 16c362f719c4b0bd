"""Problems and programs of the family normalisation."""
