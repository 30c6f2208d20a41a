"""Studies: runs that are kept in a file, survive whatever happens to their process, and use many workers."""

from mctsvs.study.errors import StudyError
from mctsvs.study.study import Study

__all__ = ["Study", "StudyError"]
