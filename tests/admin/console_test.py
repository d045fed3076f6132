#!/usr/bin/python3
"""The console in a real Chromium, before a running router: a person signs in, looks, looks up, explains, splits a
shardlet and moves one, and the rows are where the page says. argv[1] is the program; argv[2], if given, the folder
for the pictures."""
import contextlib
import os
import pathlib
import sys
import threading
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PICTURES = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from chromium import Page  # noqa: E402
from house import House, psycopg  # noqa: E402

house = page = None
stop = threading.Event()


def setUpModule():
    global house, page
    house = House(PROGRAM, shards=4)
    page = Page()


def fill():
    """The shards, maps and rows that the story is about, and somebody who reads them."""
    with house.sql() as admin:
        for n in (1, 2, 3):
            admin.execute(f"CREATE SHARD s{n} DSN '{house.dsn(n)}'")
        admin.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
        bounds = ["MINVALUE", "1000", "2000", "3000", "MAXVALUE"]
        for i, name in enumerate(("alpha", "beta", "gamma", "delta")):
            admin.execute(f"CREATE SHARDLET {name} OF tenants FOR VALUES FROM ({bounds[i]}) TO ({bounds[i + 1]}) "
                          f"ON SHARD s{1 + i % 2}")
        admin.execute("CREATE SHARD MAP regions BY LIST (text)")
        admin.execute("CREATE SHARDLET europe OF regions FOR VALUES IN ('de', 'fr') ON SHARD s3")
        admin.execute("CREATE SHARD MAP users BY HASH (uuid) SHARDLETS 64 ON SHARDS (s1, s2, s3)")
        admin.execute("CREATE SHARD MAP visits BY HASH (bigint) SHARDLETS 2000 ON SHARDS (s1, s2, s3)")
        admin.execute("CREATE TABLE orders (tenant_id bigint NOT NULL, id bigint, note text, PRIMARY KEY (tenant_id, id)) "
                      "SHARD BY tenants (tenant_id)")
        admin.execute("CREATE TABLE plans (name text PRIMARY KEY) REPLICATED")
        for k in (500, 1200, 1700, 2500, 3500):
            admin.execute(f"INSERT INTO orders SELECT {k}, g, 'x' FROM generate_series(1, 200) g")
        admin.execute("SELECT count(*), 'a secret' FROM orders, (SELECT pg_sleep(1.1)) s WHERE tenant_id = 500")
    threading.Thread(target=traffic, daemon=True).start()


def traffic():
    with contextlib.suppress(psycopg.OperationalError), house.sql() as connection:  # the router goes away in the end
        n = 0
        while not stop.wait(0.01):
            n += 1
            connection.execute(f"SELECT note FROM orders WHERE tenant_id = {(500, 1200, 1700, 2500, 3500)[n % 5]} AND id = 1")


def tearDownModule():
    stop.set()
    if page:
        page.close()
    house.close()


def picture(name):
    if PICTURES:
        os.makedirs(PICTURES, exist_ok=True)
        page.picture(os.path.join(PICTURES, name + ".png"))


class Console(unittest.TestCase):
    # The tests are one story, told in the order of their names.

    def looks(self, what, at=None):
        """Pictures of what is to be seen now (and of what `at` selects), on a desk and on a phone, dark and light: nothing is wider than the window (wide
        tables scroll by themselves), and text stands out from what it is on."""
        for name, width, height, scheme, phone in (("light", 1280, 900, "light", False), ("dark", 1280, 900, "dark", False),
                                                   ("phone", 390, 844, "light", True), ("phone-dark", 390, 844, "dark", True)):
            page.size(width, height, phone)
            page.colours(scheme)
            page.run("scrollTo(0, 0)")
            page.run("new Promise(done => setTimeout(done, 300))")
            picture(f"{what}{name}")
            self.assertLessEqual(page.run("document.documentElement.scrollWidth"), width, name)
            contrast = page.run("""(() => {
              const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
                return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
              const pairs = [['body', 'body'], ['h2 small', 'section'], ['button.go', 'button.go'], ['.good', 'section'], ['p.none', 'section']];
              return pairs.filter(([a, b]) => document.querySelector(a)).map(([a, b]) => { const x = light(getComputedStyle(document.querySelector(a)).color), y = light(getComputedStyle(document.querySelector(b)).backgroundColor);
                return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); }); })()""")
            self.assertGreater(min(contrast), 4.5, (name, contrast))
            page.run("scrollTo(0, document.body.scrollHeight)")
            picture(f"{what}{name}-below")
            if at:
                page.run(f"document.querySelector('{at}').scrollIntoView({{ block: 'center' }})")
                picture(f"{what}{name}-there")
        page.size(1280, 900)
        page.colours("light")
        page.run("scrollTo(0, 0)")

    def test_0_before_there_is_a_shard(self):
        """A router whose store is empty says what to do first, and offers nothing that cannot be done."""
        page.go(f"http://127.0.0.1:{house.admin_port}/")
        page.wait("document.querySelector('dialog[open] #token')")
        page.click("#token")
        page.type(house.token)
        page.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        page.wait("document.querySelector('[aria-labelledby=h-routers] tbody tr')")
        text = page.run("document.querySelector('main').innerText")
        for words in ("CREATE SHARD", "CREATE SHARD MAP tenants BY RANGE (bigint)", "nothing is moving", "none took long", "alive"):
            self.assertIn(words, text)
        for wrong in ("undefined", "NaN", "null", "Infinity"):
            self.assertNotIn(wrong, text)
        self.assertTrue(page.run("document.querySelector('#h-jobs button').disabled"))  # Rebalance: there is nothing to
        self.assertTrue(page.run("document.querySelector('#key').matches(':disabled')"))
        self.looks("empty-")
        page.run("[...document.querySelectorAll('header button')].find(b => b.textContent === 'Sign out').click()")
        page.wait("document.querySelector('dialog[open] #token')")
        fill()

    def test_1_signing_in(self):
        page.go(f"http://127.0.0.1:{house.admin_port}/")
        page.wait("document.querySelector('dialog[open] #token')")
        page.click("#token")
        page.type("not the token at all")
        page.click("dialog .go")
        page.wait("document.querySelector('dialog .bad')")
        self.assertNotIn("alpha", page.run("document.body.innerText"))
        page.run("document.querySelector('#token').select()")
        page.click("#token")
        page.run("document.querySelector('#token').select()")
        page.type(house.token)
        page.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        page.wait("document.querySelector('[data-shardlet=alpha]')")
        page.wait("document.querySelectorAll('.shard').length === 3")
        # The token is neither in the page nor in the address.
        self.assertNotIn(house.token, page.run("document.documentElement.outerHTML"))
        self.assertNotIn(house.token, page.run("location.href"))

    def test_2_what_there_is_to_see(self):
        page.wait("document.querySelectorAll('svg.spark').length === 2")
        text = page.run("document.body.innerText")
        for word in ("Statements", "Shards", "Shard maps", "tenants", "regions", "users", "s1", "s2", "s3", "Jobs", "Slow statements",
                     "Routers", "alive", "public.orders", "on every shard", "Audit trail", "CREATE SHARD s1", "ready", "map store reachable"):
            self.assertIn(word, text)
        page.wait("document.body.innerText.includes('pg_sleep(?)')")
        self.assertNotIn("a secret", page.run("document.body.innerText"))
        self.assertEqual(page.run("document.querySelectorAll('[aria-label=users] button').length"), 64)
        # Each shard has its colour, in bars and in cards alike.
        colours = page.run("[...new Set([...document.querySelectorAll('[aria-label=tenants] button')].map(b => getComputedStyle(b).backgroundColor))].length")
        self.assertEqual(colours, 2)
        page.wait("Number(document.querySelector('.figures b').textContent) > 1")

    def test_3_pictures_in_dark_light_and_on_a_phone(self):
        self.looks("")

    def test_4_looking_up_and_explaining_by_keyboard(self):
        page.run("document.activeElement.blur()")
        page.key("/", code="Slash", text="/", windowsVirtualKeyCode=191)
        self.assertEqual(page.run("document.activeElement.id"), "key")
        page.run("const s = document.querySelector('[aria-label=map]'); s.value = 'tenants'; s.dispatchEvent(new Event('change'))")
        page.type("1500")
        page.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        page.wait("document.querySelector('#found').textContent.includes('shardlet beta')")
        page.run("document.activeElement.blur()")
        page.key("e", code="KeyE", text="e", windowsVirtualKeyCode=69)
        self.assertEqual(page.run("document.activeElement.id"), "statement")
        page.type("SELECT * FROM orders WHERE tenant_id = 1500")
        page.key("Enter", code="Enter", windowsVirtualKeyCode=13, modifiers=2)
        page.wait("document.querySelector('#route pre') && document.querySelector('#route pre').textContent.includes('s2')")
        picture("explain")
        # Through a bar with the arrows.
        page.run("document.querySelector('[data-shardlet=alpha]').focus()")
        page.key("ArrowRight", windowsVirtualKeyCode=39)
        self.assertEqual(page.run("document.activeElement.dataset.shardlet"), "beta")

    def test_5_splitting_with_the_plan_shown_first(self):
        page.click("[data-shardlet=beta]")
        page.wait("document.querySelector('dialog[open] .plan')")
        page.run("[...document.querySelectorAll('dialog [role=tab]')].find(b => b.textContent === 'Split').click()")
        page.click("#at")
        page.type("1500")
        page.wait("document.querySelector('.plan').textContent.includes('1000 … 1500 stays on s2')")
        self.assertIn("1500 … 2000 becomes a shardlet of its own", page.run("document.querySelector('.plan').textContent"))
        picture("plan")
        with house.sql() as admin:
            before = admin.execute("SHOW SHARDLETS OF tenants").fetchall()
            self.assertEqual(len(before), 4)  # nothing has happened yet
            page.click("#start")
            page.wait("document.querySelectorAll('[aria-label=tenants] button').length === 5")
            self.assertEqual(len(admin.execute("SHOW SHARDLETS OF tenants").fetchall()), 5)

    def test_6_moving(self):
        name = page.run("[...document.querySelectorAll('[aria-label=tenants] button')].find(b => b.title.includes('1500 … 2000')).dataset.shardlet")
        page.click(f"[data-shardlet={name}]")
        page.wait("document.querySelector('dialog[open] #to')")
        page.run("const t = document.querySelector('#to'); t.value = 's3'; t.dispatchEvent(new Event('change'))")
        page.wait("document.querySelector('.plan').textContent.includes('from s2 to s3')")
        page.click("#start")
        page.wait(f"document.querySelector('[data-shardlet={name}]').title.includes('on s3')", 60)
        page.wait("[...document.querySelectorAll('#content table .good')].some(e => e.textContent === 'done')", 60)
        picture("moved")
        with house.shard(3) as shard:
            self.assertEqual(shard.execute("SELECT count(*), min(tenant_id) FROM orders").fetchone(), (200, 1700))
        with house.sql() as admin:
            self.assertEqual(admin.execute("SELECT count(*) FROM orders WHERE tenant_id = 1700").fetchone(), (200,))

    def test_7_a_job_is_cancelled(self):
        with house.shard(1) as shard:
            # Another transaction holds the table: the move has to wait.
            shard.autocommit = False
            shard.execute("LOCK TABLE orders IN ROW EXCLUSIVE MODE")
            page.click("[data-shardlet=gamma]")
            page.wait("document.querySelector('dialog[open] #to')")
            page.click("#start")
            # Of this job: the one before may be shown as running for a moment longer than it runs.
            cancel = (
                "[...document.querySelectorAll('table tr')].filter(r => r.textContent.includes('gamma to s2'))"
                ".flatMap(r => [...r.querySelectorAll('button')]).find(b => b.textContent === 'Cancel')"
            )
            page.wait(cancel)
            page.run(cancel + ".click()")
            page.wait("document.body.innerText.includes('canceled')", 40)
            shard.rollback()
        self.assertIn("on s1", page.run("document.querySelector('[data-shardlet=gamma]').title"))

    def test_7a_a_job_while_it_runs(self):
        """Slowly, so that there is time to look: how far it is, in its row and in the bar of its map."""
        with house.sql() as admin:
            for k in range(4000, 4020):
                admin.execute(f"INSERT INTO orders SELECT {k}, g, repeat('x', 400) FROM generate_series(1, 1000) g")
            job = admin.execute("MOVE SHARDLET delta TO SHARD s1 WITH (max_rate = '100kB/s')").fetchone()[0]
            row = f"[...document.querySelectorAll('[aria-labelledby=h-jobs] tbody tr')].find(r => r.querySelector('[aria-label=\"job {job} in full\"]'))"
            bar = f"{row}?.querySelector('progress')"
            page.wait(f"{bar} && {bar}.value > 0 && {bar}.value < {bar}.max", 40)
            self.assertIn("copying", page.run(f"{row}.textContent"))
            page.wait(f"{row}.textContent.includes('s left')", 20)
            self.assertTrue(page.run("document.querySelector('[data-shardlet=delta]').classList.contains('moving')"))
            before = page.run(f"{bar}.value")
            page.wait(f"{bar}.value > {before}", 20)  # it goes on by itself
            # Also for whoever wants no motion, and in a picture.
            self.assertNotEqual(page.run("getComputedStyle(document.querySelector('[data-shardlet=delta]')).boxShadow"), "none")
            self.assertEqual(page.run("getComputedStyle(document.querySelector('[data-shardlet=alpha]')).boxShadow"), "none")
            self.looks("running-", "#h-jobs")
            page.run(f"{row}.querySelector('button.link').click()")
            page.wait("document.querySelector('dialog[open] .story tbody tr')")
            self.assertIn("copying", page.run("document.querySelector('dialog[open]').textContent"))
            picture("running-story")
            page.key("Escape", code="Escape", windowsVirtualKeyCode=27)
            page.wait("!document.querySelector('dialog[open]')")
            page.run(f"[...{row}.querySelectorAll('button')].find(b => b.textContent === 'Cancel').click()")
            page.wait(f"{row}.textContent.includes('canceled')", 40)
            self.assertFalse(page.run("document.querySelector('[data-shardlet=delta]').classList.contains('moving')"))
            admin.execute("DELETE FROM orders WHERE tenant_id >= 4000")

    def test_7b_what_cannot_start_and_what_fails_says_why(self):
        with house.shard(3) as shard:
            shard.execute("INSERT INTO orders VALUES (3600, 1, 'in the way')")
            page.click("[data-shardlet=delta]")
            page.wait("document.querySelector('dialog[open] #to')")
            page.run("{ const t = document.querySelector('#to'); t.value = 's3'; t.dispatchEvent(new Event('change')) }")
            page.click("#start")
            page.wait("document.querySelector('.problem')?.textContent.includes('the move cannot start')", 20)
            page.run("document.querySelector('.problem button').click()")
            shard.execute("DELETE FROM orders WHERE tenant_id = 3600")
        # A new shard that has a table of that name, but another.
        with house.shard(4) as shard, house.sql() as admin:
            shard.execute("CREATE TABLE orders (something text)")
            admin.execute(f"CREATE SHARD s4 DSN '{house.dsn(4)}'")
            row = "[...document.querySelectorAll('[aria-labelledby=h-jobs] tbody tr')].find(r => r.textContent.includes('provision'))"
            page.wait(f"{row}?.textContent.includes('failed') && {row}.textContent.includes('orders')", 40)
            page.run(row + ".querySelector('button.link').click()")
            page.wait("document.querySelector('dialog[open] .story tbody tr')")
            self.assertIn("orders", page.run("document.querySelector('dialog[open] .plan').textContent"))
            picture("failed")
            page.key("Escape", code="Escape", windowsVirtualKeyCode=27)
            page.wait("!document.querySelector('dialog[open]')")
            shard.execute("DROP TABLE orders")
            page.run(row + ".querySelectorAll('button')[1].click()")  # Again
            page.wait("[...document.querySelectorAll('.shard')].find(s => s.textContent.includes('s4'))?.textContent.includes('online')", 40)

    def test_7c_two_thousand_shardlets_in_one_bar(self):
        bar = "document.querySelector('[aria-label=visits]')"
        for width in (1280, 390):
            page.size(width, 900, width < 400)
            page.wait(f"{bar}.lastElementChild.getBoundingClientRect().right <= {bar}.getBoundingClientRect().right + 1")
            self.assertGreater(page.run(f"{bar}.firstElementChild.getBoundingClientRect().width"), 2)
            counted = page.run(f"[...{bar}.children].reduce((n, b) => n + Number(b.title.split(' ')[0]), 0)")
            self.assertEqual(counted, 2000)
        page.size(1280, 900)
        # By keyboard: along the bar, into a piece of it, along that, and into a shardlet.
        page.run(bar + ".firstElementChild.focus()")
        page.key("End", windowsVirtualKeyCode=35)
        page.key("ArrowLeft", windowsVirtualKeyCode=37)
        page.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        page.wait("document.querySelector('[aria-label=visits] + .bar [data-shardlet]')")
        picture("many")
        page.run("document.querySelector('[aria-label=visits] + .bar [data-shardlet]').focus()")
        page.key("ArrowRight", windowsVirtualKeyCode=39)
        name = page.run("document.activeElement.dataset.shardlet")
        page.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        page.wait(f"document.querySelector('dialog[open] h2')?.textContent === '{name}'")
        page.key("Escape", code="Escape", windowsVirtualKeyCode=27)
        page.wait("!document.querySelector('dialog[open]')")
        self.assertEqual(page.run("document.activeElement.dataset.shardlet"), name)
        # A key that is looked up leads to its shardlet as well.
        page.run("{ const s = document.querySelector('[aria-label=map]'); s.value = 'visits'; s.dispatchEvent(new Event('change')) }")
        page.click("#key")
        page.run("document.querySelector('#key').select()")
        page.type("4711")
        page.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        page.wait("document.querySelector('#found button.link') && document.querySelector('#found').textContent.includes('visits_')")
        page.click("#found button.link")
        page.wait("document.querySelector('dialog[open] h2')?.textContent.startsWith('visits_')")
        page.key("Escape", code="Escape", windowsVirtualKeyCode=27)
        page.wait("!document.querySelector('dialog[open]')")

    def test_7d_keys_are_shown_and_taken_as_they_are(self):
        with house.sql() as admin:
            # Keys beyond what JavaScript can count exactly, and keys with commas.
            admin.execute("CREATE SHARD MAP ids BY RANGE (bigint)")
            admin.execute("CREATE SHARDLET low_ids OF ids FOR VALUES FROM (MINVALUE) TO (9007199254740993) ON SHARD s1")
            admin.execute("CREATE SHARDLET high_ids OF ids FOR VALUES FROM (9007199254740993) TO (MAXVALUE) ON SHARD s2")
            admin.execute("CREATE SHARD MAP people BY RANGE (text)")
            admin.execute("CREATE SHARDLET a_to_m OF people FOR VALUES FROM (MINVALUE) TO ('M, N') ON SHARD s1")
            admin.execute("CREATE SHARDLET n_to_z OF people FOR VALUES FROM ('M, N') TO (MAXVALUE) ON SHARD s2")
        page.wait("document.querySelector('[data-shardlet=high_ids]') && document.querySelector('[data-shardlet=n_to_z]')")
        self.assertIn("9007199254740993 … MAXVALUE", page.run("document.querySelector('[data-shardlet=high_ids]').title"))

        def look_up(name, key):
            page.run(f"{{ const s = document.querySelector('[aria-label=map]'); s.value = '{name}'; s.dispatchEvent(new Event('change')) }}")
            page.click("#key")
            page.run("document.querySelector('#key').select()")
            page.type(key)
            page.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")

        look_up("people", "M, Nadia")
        page.wait("document.querySelector('#found').textContent.includes('n_to_z')")
        look_up("people", "M")
        page.wait("document.querySelector('#found').textContent.includes('a_to_m')")
        look_up("ids", "9007199254740992")
        page.wait("document.querySelector('#found').textContent.includes('low_ids')")
        page.click("[data-shardlet=n_to_z]")
        page.wait("document.querySelector('dialog[open] .plan')")
        page.run("[...document.querySelectorAll('dialog [role=tab]')].find(b => b.textContent === 'Split').click()")
        page.click("#at")
        page.type("Smith, John")
        page.wait("document.querySelector('.plan').textContent.includes('M, N … Smith, John stays on s2')")
        page.click("#start")
        page.wait("document.querySelectorAll('[aria-label=people] button').length === 3")
        with house.sql() as admin:
            self.assertIn("'Smith, John'", [row[2] for row in admin.execute("SHOW SHARDLETS OF people").fetchall()])

    def test_7e_the_load_of_a_shard_is_there_also_when_its_shardlets_are_not_drawn(self):
        """Of a map with more shardlets than the page asks for."""
        with house.sql() as admin:
            admin.execute("CREATE SHARD MAP crowd BY HASH (bigint) SHARDLETS 12000 ON SHARDS (s3)")
            admin.execute("CREATE TABLE crowded (id bigint PRIMARY KEY) SHARD BY crowd (id)")
            last = 0  # a key whose shardlet is not among the first five thousand
            while int(house.cli_json("lookup", "crowd", str(last))["shardlet"].split("_")[1]) < 10000:
                last += 1
            for _ in range(3000):
                admin.execute(f"SELECT id FROM crowded WHERE id = {last}")
        page.wait("document.querySelector('[aria-label=crowd]')", 40)
        load = "Number([...document.querySelectorAll('.shard')].find(s => s.textContent.startsWith('s3')).querySelector('.facts b').textContent.split(' ')[0])"
        page.wait(f"{load} > 1", 40)
        page.go("about:blank")  # or it would ask for shardlets of a map that is just going
        with house.sql() as admin:
            admin.execute("DROP TABLE crowded")
            admin.execute("DROP SHARD MAP crowd")
        page.go(f"http://127.0.0.1:{house.admin_port}/")
        page.wait("document.querySelector('[data-shardlet=alpha]')")

    def test_8_a_viewer_may_look_and_not_touch(self):
        token = house.rest("POST", "/v1/users", {"name": "looker", "role": "viewer"}).json["token"]
        page.run("sessionStorage.removeItem('token')")
        page.go(f"http://127.0.0.1:{house.admin_port}/#token={token}")
        page.run("location.reload()")
        page.wait("document.querySelector('[data-shardlet=alpha]')")
        page.click("[data-shardlet=alpha]")
        page.click("#start")
        page.wait("document.querySelector('.problem') && document.querySelector('.problem').textContent.includes('operator')")
        self.assertIn("on s1", page.run("document.querySelector('[data-shardlet=alpha]').title"))

    def test_8b_a_router_that_is_gone_and_comes_back(self):
        page.run("document.querySelector('.problem button').click()")  # what the viewer was told
        house.stop()
        page.wait("document.querySelector('.problem') && document.querySelector('.problem').textContent.includes('does not answer')", 20)
        self.assertTrue(page.run("document.querySelector('main').classList.contains('stale')"))
        picture("gone")
        house.start()
        page.wait("!document.querySelector('.problem') && !document.querySelector('main').classList.contains('stale')", 20)

    def test_9_nothing_went_wrong_in_the_page(self):
        allowed = ("401", "403", "409", "/favicon", "ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "status of 503")
        self.assertEqual([c for c in page.complaints() if not any(a in c for a in allowed)], [])
        # It asks nobody but the router.
        self.assertEqual(page.run("performance.getEntriesByType('resource').filter(e => !e.name.startsWith(location.origin)).length"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
