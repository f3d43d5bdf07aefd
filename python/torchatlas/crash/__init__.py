"""When a forward fails: what clashed, where it came from, what would help, and what lies beyond the failure."""

from torchatlas.crash.explanation import Argument, Explanation, explain_all
from torchatlas.crash.past import Past
from torchatlas.crash.report import report
from torchatlas.crash.search import look_past

__all__ = ["Argument", "Explanation", "Past", "explain_all", "look_past", "report"]
