"""The version, in one place: the wheel, the documents and the pages read it from here."""

__version__ = "0.1.0"
