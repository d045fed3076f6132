"""What applications send (applications.sql), over 3 shards beside one plain PostgreSQL: differential_test.py says how."""

import os
import sys

os.environ.setdefault("KINTSUGI_BODIES", "applications.sql")
os.environ.setdefault("KINTSUGI_SHARDS", "3")

from differential_test import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
