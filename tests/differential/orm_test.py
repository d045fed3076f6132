"""Applications on SQLAlchemy and Django see the same of one PostgreSQL and of three shards behind the router: what their
libraries ask of the catalogue at the start, the tables they make, and what they read and write.
"""

import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "admin"))
from house import House, PASSWORD, USER  # noqa: E402


class Applications(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.house = House(os.environ["KINTSUGI_PROGRAM"], shards=3)
        with cls.house.cluster.admin("postgres") as admin:
            admin.execute("DROP DATABASE IF EXISTS app")
            admin.execute(f"CREATE DATABASE app OWNER {USER}")
        with cls.house.sql() as db:
            for i in (1, 2, 3):
                db.execute(f"CREATE SHARD s{i} DSN '{cls.house.dsn(i)}'")
            db.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
            for name, low, high, shard in (("a", "MINVALUE", 1000, 1), ("b", 1000, 2000, 2), ("c", 2000, "MAXVALUE", 3)):
                db.execute(f"CREATE SHARDLET {name} OF tenants FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{shard}")

    @classmethod
    def tearDownClass(cls):
        cls.house.close()

    def run_on(self, port, app, *arguments):
        done = subprocess.run([sys.executable, "-B", str(HERE / "orm" / app), str(port), PASSWORD, *arguments], capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr[-6000:])
        return done.stdout.splitlines()

    def folder(self, name):
        path = pathlib.Path(self.house.root, name)
        path.mkdir()
        return str(path)

    def test_sqlalchemy(self):
        plain = self.run_on(self.house.cluster.port, "sqlalchemy_app.py")
        self.assertGreater(len(plain), 400)
        self.assertEqual(plain, self.run_on(self.house.port, "sqlalchemy_app.py", "tenants(tenant_id)"))

    def test_django(self):
        plain = self.run_on(self.house.cluster.port, "django_app.py", self.folder("plain"))
        self.assertGreater(len(plain), 80)
        self.assertEqual(plain, self.run_on(self.house.port, "django_app.py", self.folder("routed"), "SHARD BY tenants (tenant_id)"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
