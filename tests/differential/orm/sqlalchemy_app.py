"""An application on SQLAlchemy: its tables belong to tenants, who live on several shards; it prints what it sees.

Usage: sqlalchemy_app.py PORT PASSWORD [SETTING]     SETTING: a value for kintsugi.shard_new_tables
"""

import sys

import sqlalchemy as sa
from sqlalchemy.orm import Session, aliased, declarative_base, joinedload, relationship, selectinload

port, password, *setting = sys.argv[1:]
engine = sa.create_engine(
    sa.engine.URL.create("postgresql+psycopg2", "app", password, "127.0.0.1", int(port), "app"),
    connect_args={"options": f"-c kintsugi.shard_new_tables={setting[0]}"} if setting else {})
Base = declarative_base()
func = sa.func


class Post(Base):
    __tablename__ = "posts"
    tenant_id = sa.Column(sa.BigInteger, primary_key=True)
    id = sa.Column(sa.BigInteger, sa.Identity(), primary_key=True)
    title = sa.Column(sa.String(40), nullable=False, index=True)
    made = sa.Column(sa.DateTime(timezone=True), server_default=func.now())
    tags = sa.Column(sa.ARRAY(sa.Text))
    doc = sa.Column(sa.JSON)
    kind = sa.Column(sa.Enum("essay", "note", name="post_kind"))
    price = sa.Column(sa.Numeric(12, 3))
    notes = relationship("Note", back_populates="post")
    __table_args__ = (sa.UniqueConstraint("tenant_id", "title"), sa.CheckConstraint("price >= 0", name="price_is_one"))


class Note(Base):
    __tablename__ = "notes"
    tenant_id = sa.Column(sa.BigInteger, primary_key=True)
    id = sa.Column(sa.BigInteger, sa.Identity(), primary_key=True)
    post_id = sa.Column(sa.BigInteger)
    weight = sa.Column(sa.Float)
    post = relationship("Post", back_populates="notes")
    __table_args__ = (sa.ForeignKeyConstraint(["tenant_id", "post_id"], ["posts.tenant_id", "posts.id"], ondelete="CASCADE"),)


class Plan(Base):  # without a tenant: it stays on the home shard
    __tablename__ = "plans"
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.Text, unique=True)


def fill():
    with Session(engine) as session:
        session.add_all([Plan(name="free"), Plan(name="team")])
        session.add_all([Post(tenant_id=t * 150, title=f"n{i}", tags=["a", "b"], doc={"i": i}, kind=("essay", "note")[i % 2], price=i)
                         for t in range(1, 21) for i in range(5)])
        session.commit()
        for post in session.execute(sa.select(Post)).scalars():
            post.notes = [Note(tenant_id=post.tenant_id, weight=int(post.price) + 1.5),
                          Note(tenant_id=post.tenant_id, weight=int(post.price) + 2.5)]
        session.commit()


def show(name, statement, ordered=False):
    with Session(engine) as session:
        rows = [repr(tuple(row)) for row in session.execute(statement).all()]
    print(name, len(rows), *(rows if ordered else sorted(rows)), sep="\n  ")


def read():
    other = aliased(Post)
    sums = sa.select(Note.tenant_id, func.sum(Note.weight).label("sum")).group_by(Note.tenant_id).subquery()
    best = sa.select(Note.tenant_id.label("t"), func.max(Note.weight).label("m")).group_by(Note.tenant_id).cte("best")
    first = sa.select(Note.weight).where(Note.tenant_id == Post.tenant_id, Note.post_id == Post.id).order_by(Note.weight).limit(1).lateral("first")
    show("join", sa.select(Post.tenant_id, func.count(), func.avg(Note.weight)).join(Note).group_by(Post.tenant_id).order_by(Post.tenant_id), True)
    show("subquery", sa.select(Post.title, sums.c.sum).join(sums, sums.c.tenant_id == Post.tenant_id).where(Post.price > 3))
    show("exists", sa.select(Post.tenant_id, Post.title).where(sa.exists().where(
        Note.tenant_id == Post.tenant_id, Note.post_id == Post.id, Note.weight > 6)))
    show("not in", sa.select(Post.title).where(Post.price.notin_(sa.select(Note.weight))).distinct())
    show("self join", sa.select(func.count()).select_from(Post).join(other, other.title == Post.title))
    show("window", sa.select(Post.tenant_id, Post.title, func.row_number().over(partition_by=Post.kind, order_by=[Post.tenant_id, Post.title])))
    show("page", sa.select(Post.tenant_id, Post.title).order_by(Post.price.desc(), Post.tenant_id).limit(7).offset(5), True)
    show("union", sa.union(sa.select(Post.title), sa.select(sa.cast(Note.weight, sa.Text))))
    show("cte", sa.select(best.c.t, best.c.m).where(best.c.m > sa.select(func.avg(best.c.m)).scalar_subquery() - 1))
    show("lateral", sa.select(Post.tenant_id, Post.title, first.c.weight).select_from(Post).join(first, sa.true()))
    show("tuples", sa.select(Post.title).where(sa.tuple_(Post.tenant_id, Post.title).in_([(150, "n1"), (3000, "n4")])))
    show("json", sa.select(Post.doc["i"].as_string(), func.count()).group_by(Post.doc["i"].as_string()))
    show("arrays", sa.select(func.unnest(Post.tags), func.count()).group_by(sa.literal_column("1")))
    show("rollup", sa.select(Post.tenant_id, Post.kind, func.sum(Post.price)).group_by(func.rollup(Post.tenant_id, Post.kind)))
    show("filter", sa.select(sa.case((Post.price > 2, "high"), else_="low").label("level"), func.count().filter(Post.kind == "essay"))
         .group_by("level").having(func.count() > 3))
    with Session(engine) as session:
        for post in session.execute(sa.select(Post).options(selectinload(Post.notes)).order_by(Post.tenant_id, Post.title).limit(6)).scalars():
            print("loaded", post.title, post.doc, post.price, sorted(note.weight for note in post.notes))
        joined = session.execute(sa.select(Post).options(joinedload(Post.notes)).where(Post.price > 3)).unique().scalars().all()
        print("joined", len(joined), {len(post.notes) for post in joined})
        streamed = session.execute(sa.select(Post.title), execution_options={"stream_results": True, "max_row_buffer": 7})
        print("streamed", sum(1 for _ in streamed))


def write():
    with Session(engine) as session:
        for title, statement in (
                ("one tenant", sa.update(Post).where(Post.tenant_id == 450).values(price=Post.price + 1)),
                ("all tenants", sa.update(Post).where(Post.price > 3).values(price=Post.price * 2)),
                ("deleted", sa.delete(Note).where(Note.weight > 6)),
                ("by a subquery", sa.update(Post).where(Post.id.in_(
                    sa.select(Note.post_id).where(Note.tenant_id == Post.tenant_id, Note.weight < 2))).values(kind="note"))):
            print(title, session.execute(statement, execution_options={"synchronize_session": False}).rowcount)
        session.commit()
        post = session.execute(sa.select(Post).where(Post.tenant_id == 150, Post.title == "n1").with_for_update()).scalar_one()
        post.title = "renamed"
        session.flush()
        nested = session.begin_nested()
        try:
            session.add(Post(tenant_id=3000, title="n1", price=-1))
            session.flush()
        except sa.exc.IntegrityError as error:
            print("refused", error.orig.pgcode, error.orig.diag.constraint_name)
            nested.rollback()
        session.add(Post(tenant_id=3000, title="new", price=1))
        session.commit()
        print(session.execute(sa.select(Post.title).where(Post.tenant_id.in_([150, 3000])).order_by(Post.title)).scalars().all())
        session.execute(sa.update(Post).values(price=0), execution_options={"synchronize_session": False})
        session.rollback()
    show("at the end", sa.select(func.count(), func.sum(Post.price)))
    show("notes at the end", sa.select(func.count(), func.sum(Note.weight)))


def reflect():
    inspector = sa.inspect(engine)
    for table in sorted(inspector.get_table_names()):
        print("table", table, *((c["name"], str(c["type"]), c["nullable"], c["default"], "identity" in c) for c in inspector.get_columns(table)),
              inspector.get_pk_constraint(table), inspector.get_foreign_keys(table),
              sorted(inspector.get_indexes(table), key=repr), inspector.get_unique_constraints(table),
              inspector.get_check_constraints(table), sep="\n  ")
    print(inspector.get_view_names(), inspector.get_enums(), inspector.default_schema_name)
    found = sa.MetaData()
    found.reflect(engine)
    print(sorted(found.tables))


Base.metadata.create_all(engine)
fill()
read()
write()
reflect()
Base.metadata.drop_all(engine)
print([table for table in Base.metadata.tables if sa.inspect(engine).has_table(table)])
