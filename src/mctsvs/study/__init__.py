"""Studies: runs that are kept in a file, survive whatever happens to their process, and use many workers."""

from mctsvs.study.study import Study
from mctsvs.utils.validation import StudyError

__all__ = ["Study", "StudyError"]
