"""Data in the shape of TPC-H, from a seed: the same tables, keys and kinds of values, of our own making.

`tables(scale)` gives the name of each table and its rows as lines of COPY's text format. Scale 1 would be 6 million lines of
orders; everything but nation and region grows with it.
"""

import datetime
import random

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2),
    ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
]
COLOURS = ("almond antique azure beige black blue brown chiffon coral cream cyan dim forest frosted green honeydew "
           "indian ivory khaki lace lavender lemon lime linen magenta maroon mint misty navy olive orchid pale peach pink "
           "plum powder puff purple red rose royal saddle salmon sandy sienna sky slate smoke snow steel tan thistle tomato "
           "turquoise violet wheat white yellow").split()
TYPES = [f"{a} {b} {c}" for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
         for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
         for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")]
CONTAINERS = [f"{a} {b}" for a in ("SM", "LG", "MED", "JUMBO", "WRAP")
              for b in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
WORDS = "carefully quick final ironic special regular silent bold pending express requests deposits packages accounts foxes".split()

FIRST = datetime.date(1992, 1, 1)
LAST_ORDER = 2405  # days
TODAY = datetime.date(1995, 6, 17)

SCHEMA = """
CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152)) REPLICATED;
CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey int NOT NULL, n_comment varchar(152)) REPLICATED;
CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL, s_nationkey int NOT NULL, s_phone char(15) NOT NULL, s_acctbal decimal(15,2) NOT NULL, s_comment varchar(101) NOT NULL) REPLICATED;
CREATE TABLE part (p_partkey int PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size int NOT NULL, p_container char(10) NOT NULL, p_retailprice decimal(15,2) NOT NULL, p_comment varchar(23) NOT NULL) SHARD BY parts (p_partkey);
CREATE TABLE partsupp (ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL, ps_supplycost decimal(15,2) NOT NULL, ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)) SHARD BY parts (ps_partkey);
CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL, c_nationkey int NOT NULL, c_phone char(15) NOT NULL, c_acctbal decimal(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL) SHARD BY customers (c_custkey);
CREATE TABLE orders (o_orderkey int PRIMARY KEY, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL, o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, o_shippriority int NOT NULL, o_comment varchar(79) NOT NULL) SHARD BY orders (o_orderkey);
CREATE TABLE lineitem (l_orderkey int NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL, l_quantity decimal(15,2) NOT NULL, l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL, l_tax decimal(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)) SHARD BY orders (l_orderkey);
CREATE INDEX lineitem_part ON lineitem (l_partkey, l_suppkey);
CREATE INDEX orders_customer ON orders (o_custkey);
"""


def money(cents):
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"


class Maker:
    def __init__(self, scale, seed):
        self.random = random.Random(seed)
        self.suppliers = max(20, int(10_000 * scale))
        self.parts = max(200, int(200_000 * scale))
        self.customers = max(150, int(150_000 * scale))
        self.orders = self.customers * 10

    def text(self, least, most):
        words = self.random.choices(WORDS, k=self.random.randint(least, most))
        return " ".join(words)

    def phone(self, nation):
        r = self.random
        return f"{nation + 10}-{r.randint(100, 999)}-{r.randint(100, 999)}-{r.randint(1000, 9999)}"

    def price(self, part):
        return 90_000 + part // 10 % 20_001 + 100 * (part % 1000)

    def supplier_of(self, part, nth):
        step = self.suppliers // 4 + (part - 1) // self.suppliers
        return (part + nth * step) % self.suppliers + 1

    def region(self):
        for number, name in enumerate(REGIONS):
            yield f"{number}\t{name}\t{self.text(3, 6)}"

    def nation(self):
        for number, (name, region) in enumerate(NATIONS):
            yield f"{number}\t{name}\t{region}\t{self.text(3, 6)}"

    def supplier(self):
        r = self.random
        for key in range(1, self.suppliers + 1):
            nation = r.randrange(25)
            comment = self.text(4, 7)
            if r.random() < 0.02:
                comment = f"{self.text(1, 2)} Customer {r.choice(WORDS)} {r.choice(['Complaints', 'Recommends'])}"
            yield (f"{key}\tSupplier#{key:09}\t{self.text(2, 3)}\t{nation}\t{self.phone(nation)}\t"
                   f"{money(r.randint(-99_999, 999_999))}\t{comment}")

    def part(self):
        r = self.random
        for key in range(1, self.parts + 1):
            maker = r.randint(1, 5)
            yield (f"{key}\t{' '.join(r.sample(COLOURS, 5))}\tManufacturer#{maker}\tBrand#{maker}{r.randint(1, 5)}\t"
                   f"{r.choice(TYPES)}\t{r.randint(1, 50)}\t{r.choice(CONTAINERS)}\t{money(self.price(key))}\t"
                   f"{self.text(1, 2)}")

    def partsupp(self):
        r = self.random
        for part in range(1, self.parts + 1):
            for nth in range(4):
                yield (f"{part}\t{self.supplier_of(part, nth)}\t{r.randint(1, 9999)}\t{money(r.randint(100, 100_000))}\t"
                       f"{self.text(6, 12)}")

    def customer(self):
        r = self.random
        for key in range(1, self.customers + 1):
            nation = r.randrange(25)
            yield (f"{key}\tCustomer#{key:09}\t{self.text(2, 3)}\t{nation}\t{self.phone(nation)}\t"
                   f"{money(r.randint(-99_999, 999_999))}\t{r.choice(SEGMENTS)}\t{self.text(4, 9)}")

    def orders_and_lines(self):
        """Two lists of lines."""
        r = self.random
        days = [FIRST + datetime.timedelta(n) for n in range(LAST_ORDER + 400)]
        shown = [day.isoformat() for day in days]
        today = (TODAY - FIRST).days
        orders, lines = [], []
        for number in range(1, self.orders + 1):
            key = (number - 1) // 8 * 32 + (number - 1) % 8 + 1
            customer = r.randint(1, self.customers)
            if customer % 3 == 0:
                customer = max(1, customer - 1)  # a third of the customers has no orders
            ordered = r.randint(0, LAST_ORDER)
            total, open_lines, count = 0, 0, r.randint(1, 7)
            for line in range(1, count + 1):
                part = r.randint(1, self.parts)
                quantity = r.randint(1, 50)
                price = quantity * self.price(part)
                discount, tax = r.randint(0, 10), r.randint(0, 8)
                ship = ordered + r.randint(1, 121)
                commit = ordered + r.randint(30, 90)
                receipt = ship + r.randint(1, 30)
                flag = r.choice("RA") if receipt <= today else "N"
                status = "O" if ship > today else "F"
                open_lines += status == "O"
                total += price * (100 - discount) * (100 + tax) // 10_000
                lines.append(
                    f"{key}\t{part}\t{self.supplier_of(part, r.randrange(4))}\t{line}\t{quantity}\t{money(price)}\t"
                    f"0.{discount:02}\t0.{tax:02}\t{flag}\t{status}\t{shown[ship]}\t{shown[commit]}\t{shown[receipt]}\t"
                    f"{r.choice(INSTRUCTIONS)}\t{r.choice(MODES)}\t{r.choice(WORDS)} {r.choice(WORDS)}")
            status = "F" if open_lines == 0 else "O" if open_lines == count else "P"
            orders.append(f"{key}\t{customer}\t{status}\t{money(total)}\t{shown[ordered]}\t{r.choice(PRIORITIES)}\t"
                          f"Clerk#{r.randint(1, 1000):09}\t0\t{self.text(3, 8)}")
        return orders, lines


def tables(scale, seed=1):
    maker = Maker(scale, seed)
    for name in ("region", "nation", "supplier", "part", "partsupp", "customer"):
        yield name, list(getattr(maker, name)())
    orders, lines = maker.orders_and_lines()
    yield "orders", orders
    yield "lineitem", lines
