"""Several candidates for one problem, for whoever must choose: what each is, how far their outputs lie apart, how fast they are, and which to take."""
