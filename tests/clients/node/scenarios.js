// What applications do with node-postgres, one function a scenario; every line printed is compared by node_test.py.
// Usage: node scenarios.js HOST PORT DATABASE USER PASSWORD SCENARIO LOAD
'use strict';
const { Client, Pool, types } = require('pg');
const Cursor = require('pg-cursor');
const copy = require('pg-copy-streams');
const { pipeline } = require('stream/promises');
const { Readable, Writable } = require('stream');

const [host, port, database, user, password, name, loadText] = process.argv.slice(2);
const load = Number(loadText);
const address = { host, port: Number(port), database, user, password, ssl: false, connectionTimeoutMillis: 20000 };

function say(...things) {
  console.log(things.map((t) => (typeof t === 'string' ? t : JSON.stringify(t, (k, v) => (typeof v === 'bigint' ? `${v}n` : v)))).join(' | '));
}

async function connected(body, more = {}) {
  const client = new Client({ ...address, ...more });
  await client.connect();
  try {
    await body(client);
  } finally {
    await client.end();
  }
}

function shape(result) {
  return [result.command, result.rowCount, result.fields && result.fields.map((f) => [f.name, f.dataTypeID < 16384 ? f.dataTypeID : 'own', f.format]), result.rows];
}

async function failing(promise) {
  try {
    await promise;
    say('no error');
  } catch (e) {
    say('error', e.severity, e.code, e.message, e.detail, (e.hint || '').startsWith('This router') ? undefined : e.hint, e.position, e.table, e.constraint, e.routine);
  }
}

const scenarios = {
  async queries_and_types() {
    await connected(async (c) => {
      say(shape(await c.query("SELECT 1::int2 a, 2 b, 3::int8 c, 1.5::float8 d, 12.30::numeric e, true f, 'é' g, '\\x00ff'::bytea h, "
        + "'2024-02-29'::date i, '2024-02-29 12:00+00'::timestamptz j, '{\"a\":1}'::jsonb k, ARRAY[1,NULL] l, NULL m, '1 day'::interval n, point(1,2) o")));
      say(shape(await c.query('SELECT $1::int a, $2::text b, $3::timestamptz c, $4::jsonb d, $5::bytea e, $6::text[] f, $7 g',
        [1, "it's", new Date(0), { x: [1] }, Buffer.from([0, 1]), ['a', null, 'b,c'], null])));
      say(shape(await c.query({ text: 'SELECT $1::int8 AS x', values: ['9007199254740993'], rowMode: 'array' })));
      say(shape(await c.query({ text: 'SELECT $1::int4 AS x, now() IS NOT NULL AS y', values: [5], binary: true })));
      for (const text of ['CREATE TABLE t (i int PRIMARY KEY, s text)', "INSERT INTO t SELECT i, 's' FROM generate_series(1, 4) i RETURNING i",
        'UPDATE t SET s = upper(s)', 'DELETE FROM t WHERE i > 3', 'SELECT * FROM t ORDER BY i', '', 'BEGIN', 'COMMIT'])
        say(text, shape(await c.query(text)));
      const many = await c.query("SELECT 1 AS a; INSERT INTO t VALUES (9, 'x'); SELECT 'b' AS b");
      say(many.map(shape));
    });
  },

  async named_statements() {
    await connected(async (c) => {
      for (let i = 0; i < 5; i++) {
        say((await c.query({ name: 'named', text: 'SELECT $1::int + 1 AS n', values: [i] })).rows);
        say((await c.query({ name: 'other', text: 'SELECT $1::text || $2::text AS t', values: ['a', String(i)] })).rows);
      }
      await failing(c.query({ name: 'named', text: 'SELECT 2', values: [] }));
      await failing(c.query({ name: 'bad', text: 'SELECT oops', values: [] }));
      await failing(c.query({ name: 'named', text: 'SELECT $1::int + 1 AS n', values: ['x'] }));
      say((await c.query({ name: 'named', text: 'SELECT $1::int + 1 AS n', values: [41] })).rows);
      await c.query('CREATE TABLE d (a int); INSERT INTO d VALUES (1)');
      const all = { name: 'all', text: 'SELECT * FROM d', values: [] };
      say((await c.query(all)).rows);
      await c.query("ALTER TABLE d ADD b text DEFAULT 'new'");
      await failing(c.query(all));
      say((await c.query('SELECT * FROM d')).rows);
    });
  },

  async errors_and_transactions() {
    await connected(async (c) => {
      await c.query('CREATE TABLE e (i int CONSTRAINT positive CHECK (i > 0) PRIMARY KEY)');
      for (const [text, values] of [['SELEC'], ['SELECT * FROM nowhere'], ['SELECT $1::int', ['x']], ['INSERT INTO e VALUES ($1)', [-1]],
        ['SELECT 1 / $1::int', [0]], ['SELECT $1, $2', [1]], ["SELECT 'x"]]) {
        await failing(c.query(text, values));
        say((await c.query('SELECT 1 AS alive')).rows);
      }
      await c.query('BEGIN');
      await c.query('INSERT INTO e VALUES ($1)', [1]);
      await failing(c.query('INSERT INTO e VALUES ($1)', [1]));
      await failing(c.query('SELECT 1'));
      say((await c.query('COMMIT')).command);
      await c.query('BEGIN ISOLATION LEVEL SERIALIZABLE');
      await c.query('INSERT INTO e VALUES ($1)', [2]);
      await c.query('SAVEPOINT s');
      await failing(c.query('INSERT INTO e VALUES (0)'));
      await c.query('ROLLBACK TO s');
      say((await c.query('COMMIT')).command, (await c.query('SELECT * FROM e')).rows);
    });
  },

  async queued_queries() {
    await connected(async (c) => {
      const all = [];
      for (let i = 0; i < 50; i++) all.push(i % 10 === 7 ? c.query('SELECT 1 / 0') : c.query('SELECT $1::int AS i', [i]));
      const settled = await Promise.allSettled(all);
      say(settled.map((s) => (s.status === 'fulfilled' ? s.value.rows[0].i : s.reason.code)));
    });
  },

  async cursors() {
    await connected(async (c) => {
      const cursor = c.query(new Cursor('SELECT i FROM generate_series(1, $1::int) i', [25]));
      for (let rows = await cursor.read(10); rows.length; rows = await cursor.read(10)) say(rows.map((r) => r.i));
      await cursor.close();
      const early = c.query(new Cursor('SELECT i FROM generate_series(1, 1000000) i'));
      say(await early.read(3));
      await early.close();
      say((await c.query('SELECT 1 AS after')).rows);
      const bad = c.query(new Cursor('SELECT 10 / (3 - i) AS q FROM generate_series(1, 5) i'));
      say(await bad.read(1));
      await failing(bad.read(10));
      await bad.close().catch(() => {});
      say((await c.query('SELECT 2 AS after')).rows);
    });
  },

  async copying() {
    await connected(async (c) => {
      await c.query('CREATE TABLE c (i int, t text)');
      const count = Math.max(50, Math.floor(20000 * load));
      function* lines() {
        for (let i = 0; i < count; i++) yield `${i}\trow ${i}\n`;
      }
      const into = c.query(copy.from('COPY c FROM STDIN'));
      await pipeline(Readable.from(lines()), into);
      say(into.rowCount === count);
      let bytes = 0;
      const out = c.query(copy.to('COPY (SELECT * FROM c ORDER BY i LIMIT 100) TO STDOUT'));
      await pipeline(out, new Writable({ write(chunk, _, done) { bytes += chunk.length; done(); } }));
      say(bytes, out.rowCount);
      await failing(pipeline(Readable.from(['x\ty\n']), c.query(copy.from('COPY c FROM STDIN'))));
      await failing(pipeline(c.query(copy.to('COPY nowhere TO STDOUT')), new Writable({ write(_, __, done) { done(); } })));
      say((await c.query('SELECT count(*)::int = $1 AS same FROM c', [count])).rows);
    });
  },

  async notifications_and_notices() {
    await connected(async (a) => {
      await connected(async (b) => {
        const heard = [];
        let enough;
        const all = new Promise((resolve) => { enough = resolve; });
        a.on('notification', (n) => { heard.push([n.channel, n.payload]); if (heard.length === 3) enough(); });
        a.on('notice', (n) => say('notice', n.severity, n.message));
        await a.query('LISTEN node');
        for (let i = 0; i < 3; i++) await b.query('SELECT pg_notify($1, $2)', ['node', `n${i}`]);
        await all;
        say(heard);
        await a.query("DO $$ BEGIN RAISE WARNING 'careful'; END $$");
        await a.query('UNLISTEN *');
      });
    });
  },

  async pool_of_clients() {
    const pool = new Pool({ ...address, max: 6, application_name: 'node pool' });
    await pool.query('CREATE TABLE p (i int)');
    const results = await Promise.all(Array.from({ length: Math.max(20, Math.floor(200 * load)) }, async (_, i) => {
      const c = await pool.connect();
      try {
        await c.query('BEGIN');
        await c.query("SELECT set_config('my.id', $1, true)", [String(i)]);
        await c.query('INSERT INTO p VALUES ($1)', [i]);
        const seen = (await c.query("SELECT current_setting('my.id') AS id, current_setting('application_name') AS a")).rows[0];
        await c.query(i % 4 ? 'COMMIT' : 'ROLLBACK');
        return seen.id === String(i) && seen.a === 'node pool';
      } finally {
        c.release();
      }
    }));
    say(results.every((ok) => ok), (await pool.query('SELECT count(*)::int = $1 AS same FROM p', [results.filter((_, i) => i % 4).length])).rows);
    await pool.end();
  },

  async settings_of_the_connection() {
    await connected(async (c) => {
      for (let i = 0; i < 2; i++)
        say((await c.query("SELECT current_setting('application_name') a, current_setting('statement_timeout') s, "
          + "current_setting('idle_in_transaction_session_timeout') t, current_setting('work_mem') w")).rows);
      await c.query("SET work_mem = '5MB'");
      say((await c.query('SHOW work_mem')).rows);
      await failing(c.query('SELECT pg_sleep(60)'));
    }, { application_name: 'node app', statement_timeout: 1500, idle_in_transaction_session_timeout: 60000, options: '-c work_mem=3MB' });
    for (const more of [{ password: 'wrong' }, { user: 'nobody' }, { database: 'nowhere' }])
      await failing(connected(async () => {}, more).catch((e) => { delete e.routine; throw e; }));
  },

  async large_values() {
    await connected(async (c) => {
      const text = 'é'.repeat(Math.floor(2000000 * load)), raw = Buffer.alloc(Math.floor(3000000 * load), 7);
      const r = (await c.query('SELECT length($1) AS n, $2::bytea AS raw, $1 AS t', [text, raw])).rows[0];
      say(r.n, raw.equals(r.raw), r.t === text);
      say((await c.query(`SELECT count(*)::int AS n FROM (VALUES ${Array.from({ length: 5000 }, (_, i) => `(${i})`).join(',')}) v`)).rows);
      let sum = 0;
      for (const row of (await c.query(`SELECT i, repeat('x', 50) FROM generate_series(1, ${Math.floor(50000 * load)}) i`)).rows) sum += row.i;
      say(sum);
    });
  },
};

scenarios[name]().then(() => process.exit(0), (e) => { console.log('scenario failed', e); process.exit(1); });
