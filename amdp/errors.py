"""Every exception that amdp raises on purpose.

AmdpError
├── InvalidInput (ValueError)        names the array, the index, the value, the rule; `field` is the argument
│   └── EmptyConfidenceSet           a row of a box holds no distribution
├── OracleError
│   ├── UnsupportedDomain            refused at bind
│   ├── Unsolved                     stopped without a policy; carries the plans
│   └── CertificateRejected          answered, and the check disproved it
├── MissingDependency (ImportError)  names the package to install
└── SpecError (ValueError)           carries the key's path in the file
"""


class AmdpError(Exception):
    """The root: catch it to catch everything below."""

    field: str | None = None  # the argument or option to blame, where that is known


class InvalidInput(AmdpError, ValueError):
    """An argument breaks a rule; the message names the place, the value and the rule.

    With a `field` the text is `field = detail`, and `detail` is the value and the rule.
    """

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__(f"{field} = {detail}" if field else detail)
        self.detail, self.field = detail, field


class EmptyConfidenceSet(InvalidInput):
    """A row of lower and upper bounds leaves no probability distribution."""


class OracleError(AmdpError):
    """An oracle could not answer, or answered wrongly."""


class UnsupportedDomain(OracleError):
    """The oracle does not solve this kind of domain; raised when it is bound."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class Unsolved(OracleError):
    """The solver stopped without a policy; `plans` holds what it left behind."""

    def __init__(self, message: str, plans: object = None) -> None:
        super().__init__(message)
        self.plans = plans


class CertificateRejected(OracleError):
    """The oracle answered, and evaluating its answer disproved it."""


class MissingDependency(AmdpError, ImportError):
    """An optional package is not installed; `remedy`, the end of the text, is the command that installs it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.remedy = remedy


class SpecError(AmdpError, ValueError):
    """A file's key is missing, unknown or wrong; `path` says which."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
