"""The auditor's side: truth, metrics, intervals, verdict. Attack code never imports it.

Called, it is the whole audit: `from fedre_audit import audit; audit(form="entangled")` (see fedre_audit/door.py).
"""

import sys

from fedre_audit.door import CallableModule

sys.modules[__name__].__class__ = CallableModule
