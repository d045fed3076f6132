"""An application on Django: its own tables as its migrations make them, and one of tenants who live on several shards; it
prints what it sees.

Usage: django_app.py PORT PASSWORD FOLDER [CLAUSE]     CLAUSE: what CREATE TABLE says behind the columns of the tenants' table
"""

import os
import pathlib
import sys

port, password, folder, *clause = sys.argv[1:]
pathlib.Path(folder, "shop", "migrations").mkdir(parents=True)
pathlib.Path(folder, "shop", "__init__.py").touch()
pathlib.Path(folder, "shop", "migrations", "__init__.py").touch()
pathlib.Path(folder, "shop", "models.py").write_text('''
from django.contrib.auth.models import User
from django.db import models

class Tag(models.Model):
    label = models.SlugField()

class Thing(models.Model):
    name = models.CharField(max_length=30, unique=True)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, null=True)
    data = models.JSONField(default=dict)
    made = models.DateTimeField(auto_now_add=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    tags = models.ManyToManyField(Tag)
    class Meta:
        indexes = [models.Index(fields=["made"], name="thing_made")]
        constraints = [models.CheckConstraint(check=models.Q(price__gte=0), name="price_is_one")]

class Order(models.Model):
    tenant_id = models.BigIntegerField()
    id = models.BigIntegerField(primary_key=True)
    status = models.TextField()
    total = models.DecimalField(max_digits=8, decimal_places=2)
    made = models.DateTimeField()
    class Meta:
        managed = False
        db_table = "orders"
''')
sys.path.insert(0, folder)

import django  # noqa: E402
from django.conf import settings  # noqa: E402

settings.configure(
    SECRET_KEY="of a test", USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "shop"],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1", "PORT": port, "USER": "app",
                           "PASSWORD": password, "NAME": "app"}})
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
django.setup()

import datetime  # noqa: E402

from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, transaction  # noqa: E402
from django.db.models import Avg, Case, Count, F, Max, Q, Sum, Value, When, Window  # noqa: E402
from django.db.models.functions import Rank, TruncMonth  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from shop.models import Order, Tag, Thing  # noqa: E402


def own_tables():
    call_command("makemigrations", "shop", verbosity=0)
    call_command("migrate", verbosity=1)
    call_command("inspectdb", "shop_thing", "auth_user")
    bob = User.objects.create_user("bob", "bob@example.org", "secret")
    print(bob.check_password("secret"), bob.pk)
    Thing.objects.bulk_create([Thing(name=f"n{i}", owner=bob, price=i, data={"a": [i]}) for i in range(10)])
    tag = Tag.objects.create(label="red")
    for thing in Thing.objects.order_by("id")[:4]:
        thing.tags.add(tag)
    print(Thing.objects.filter(tags__label="red").count(), Thing.objects.aggregate(Avg("price"), Sum("price"), Count("id")))
    print(list(Thing.objects.filter(data__a__0__gt=7).order_by("id").values_list("name", flat=True)))
    with transaction.atomic():
        thing = Thing.objects.select_for_update().get(name="n1")
        thing.price = F("price") + 5
        thing.save()
        try:
            with transaction.atomic():
                Thing.objects.create(name="n2")
        except IntegrityError as error:
            print("refused", error.__cause__.pgcode)
    print(Thing.objects.get(name="n1").price, Thing.objects.get_or_create(name="zz")[1],
          Thing.objects.update_or_create(name="zz", defaults={"price": 3})[1])
    print(sum(1 for _ in Thing.objects.iterator(chunk_size=3)), Thing.objects.filter(name__iregex="N[12]").count())
    print(bob.delete())


def tenants():
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE orders (tenant_id bigint NOT NULL, id bigint NOT NULL, status text NOT NULL, total numeric(8,2) NOT NULL, "
                       f"made timestamptz NOT NULL, PRIMARY KEY (tenant_id, id)) {' '.join(clause)}")
    day = datetime.datetime(2026, 1, 5, tzinfo=datetime.timezone.utc)
    Order.objects.bulk_create([Order(tenant_id=t * 300, id=t * 100 + i, status=("open", "paid", "sent")[i % 3], total=i * 3,
                                     made=day + datetime.timedelta(days=9 * i)) for t in range(1, 11) for i in range(8)])
    orders = Order.objects
    print(orders.count(), orders.filter(tenant_id=900).count(), orders.filter(tenant_id__in=[300, 3000], status="open").count())
    print(orders.aggregate(Sum("total"), Avg("total"), Max("made")))
    print(list(orders.values("status").annotate(n=Count("id"), s=Sum("total")).order_by("status")))
    print(list(orders.annotate(month=TruncMonth("made")).values("month").annotate(n=Count("id")).order_by("month")))
    print(list(orders.order_by("-total", "tenant_id").values_list("tenant_id", "total")[3:9]))
    print(list(orders.annotate(r=Window(Rank(), partition_by=[F("status")], order_by=F("total").desc())).filter(tenant_id=600)
               .order_by("id").values_list("id", "r")))
    print(list(orders.filter(Q(status="paid") | Q(total__gt=18)).annotate(level=Case(When(total__gt=9, then=Value("high")), default=Value("low")))
               .values_list("level").annotate(n=Count("*")).order_by("level")))
    print(orders.filter(tenant_id=1200, id=401).update(status="void"), orders.filter(total__gt=15).update(total=F("total") - 1))
    with transaction.atomic():
        orders.filter(tenant_id=300).update(status="a")
        orders.filter(tenant_id=3000).update(status="b")
    try:
        with transaction.atomic():
            orders.all().delete()
            raise RuntimeError("taken back")
    except RuntimeError:
        pass
    print(sum(order.total for order in orders.iterator(chunk_size=7)), orders.exclude(status__in=["a", "b"]).count())
    print(orders.filter(tenant_id=600).delete(), orders.exists(), orders.order_by("tenant_id", "id").first().id, orders.latest("made").made)
    print(orders.bulk_create([Order(tenant_id=600, id=1, status="x", total=1, made=day), Order(tenant_id=300, id=100, status="x", total=1, made=day)],
                             ignore_conflicts=True) is not None, orders.count())
    print(sorted(connection.introspection.table_names()), connection.introspection.get_primary_key_column(connection.cursor(), "orders"))
    call_command("inspectdb", "orders")


own_tables()
tenants()
call_command("flush", interactive=False, verbosity=0)
call_command("migrate", "shop", "zero", verbosity=1)
call_command("check", databases=["default"])
