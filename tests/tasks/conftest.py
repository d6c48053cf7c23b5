"""The host's index is made once, as for the tests of the harness."""

from tests.harness.conftest import _index_once  # noqa: F401
