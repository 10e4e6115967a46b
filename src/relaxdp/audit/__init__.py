"""Try to refute a claimed epsilon: attacks on transcripts, and exact checks of small mechanisms."""

from relaxdp.audit.auditor import AuditResult as AuditResult
from relaxdp.audit.auditor import audit as audit
from relaxdp.audit.exact_check import check_exactly as check_exactly
