"""Programs that the tests of the store run as processes of their own; what each prints is what it found."""
