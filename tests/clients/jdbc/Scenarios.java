// What applications do with the JDBC driver, one method a scenario; every line printed is compared by jdbc_test.py.
// Usage: java Scenarios HOST PORT DATABASE USER PASSWORD SCENARIO LOAD
import java.io.*;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.PGStatement;
import org.postgresql.copy.*;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

public class Scenarios {
  static String base, user, password;
  static double load;

  interface Action {
    void run() throws Exception;
  }

  static void say(Object... things) {
    StringJoiner line = new StringJoiner(" | ");
    for (Object thing : things) line.add(thing instanceof byte[] ? Arrays.toString((byte[]) thing) : String.valueOf(thing));
    System.out.println(line);
  }

  static Connection connect(String... options) throws SQLException {
    StringBuilder url = new StringBuilder(base);
    for (String option : options) url.append('&').append(option);
    return DriverManager.getConnection(url.toString(), user, password);
  }

  static void failing(Action action) throws Exception {
    try {
      action.run();
      say("no error");
    } catch (BatchUpdateException error) {
      say("batch error", error.getSQLState(), Arrays.toString(error.getUpdateCounts()), error.getMessage().split("\n")[0]);
    } catch (PSQLException error) {
      ServerErrorMessage m = error.getServerErrorMessage();
      if (m == null) say("driver error", error.getSQLState(), error.getMessage());
      else say("error", m.getSeverity(), m.getSQLState(), m.getMessage(), m.getDetail(), m.getHint(), m.getPosition(),
               m.getTable(), m.getConstraint());
    }
  }

  static void rows(ResultSet r) throws SQLException {
    rows(r, Integer.MAX_VALUE);
  }

  static void rows(ResultSet r, int columns) throws SQLException {
    ResultSetMetaData m = r.getMetaData();
    StringJoiner head = new StringJoiner(", ");
    for (int i = 1; i <= m.getColumnCount(); i++)
      head.add(m.getColumnLabel(i) + " " + m.getColumnTypeName(i) + " " + m.getPrecision(i) + "," + m.getScale(i));
    say(head);
    while (r.next()) {
      StringJoiner line = new StringJoiner(", ");
      for (int i = 1; i <= Math.min(columns, m.getColumnCount()); i++) {
        Object value = r.getObject(i);
        line.add(value == null ? "null" : (value instanceof byte[] ? Arrays.toString((byte[]) value) : value + "")
                 + ":" + (value == null ? "" : value.getClass().getSimpleName()));
      }
      say(line);
    }
  }

  static String one(Connection c, String sql) throws SQLException {
    try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
      return r.next() ? r.getString(1) : "no row";
    }
  }

  static final String TYPED =
      "SELECT 1::int2 a, 2 b, 3::int8 c, 1.5::float4 d, 2.5::float8 e, 12.3400::numeric(10,4) f, true g, 'x'::text h, "
      + "'v'::varchar(7) i, '\\x00ff'::bytea j, DATE '2024-02-29' k, TIMESTAMP '2024-02-29 12:34:56.789' l, "
      + "TIMESTAMPTZ '2024-02-29 12:34:56+02' m, TIME '12:34' n, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid o, "
      + "ARRAY[1,2] p, NULL::int q, '{\"a\":1}'::jsonb r, INTERVAL '1 day 2 s' s";

  static void typesAndMetadata() throws Exception {
    for (String option : new String[] {"binaryTransfer=true", "binaryTransfer=false", "preferQueryMode=simple"}) {
      try (Connection c = connect(option, "prepareThreshold=1"); PreparedStatement s = c.prepareStatement(TYPED)) {
        for (int i = 0; i < 3; i++) rows(s.executeQuery());
      }
    }
  }

  static void serverPreparedAfterFiveRuns() throws Exception {
    try (Connection c = connect(); PreparedStatement s = c.prepareStatement("SELECT ?::int + 1 AS n, ?::text AS t")) {
      for (int i = 0; i < 12; i++) {
        s.setInt(1, i);
        s.setString(2, i % 3 == 0 ? null : "t" + i);
        try (ResultSet r = s.executeQuery()) {
          r.next();
          say(i, s.unwrap(PGStatement.class).isUseServerPrepare(), r.getInt(1), r.getString(2));
        }
      }
      s.setObject(1, "77", Types.OTHER);
      s.setString(2, "another type");
      rows(s.executeQuery());
      for (int i = 0; i < 300; i++)  // more texts than the driver keeps
        try (PreparedStatement p = c.prepareStatement("SELECT " + i + " + ?")) {
          p.unwrap(PGStatement.class).setPrepareThreshold(1);
          p.setInt(1, i);
          ResultSet r = p.executeQuery();
          r.next();
          if (r.getInt(1) != 2 * i) say("wrong", i, r.getInt(1));
        }
    }
  }

  static void cachedPlanAfterDdl() throws Exception {
    try (Connection c = connect("prepareThreshold=1", "autosave=conservative"); Connection other = connect();
         Statement ddl = other.createStatement()) {
      ddl.execute("CREATE TABLE d (a int); INSERT INTO d VALUES (1)");
      PreparedStatement s = c.prepareStatement("SELECT * FROM d");
      for (int i = 0; i < 3; i++) rows(s.executeQuery());
      ddl.execute("ALTER TABLE d ADD b text DEFAULT 'new'");
      for (int i = 0; i < 3; i++) rows(s.executeQuery());
      c.setAutoCommit(false);
      rows(s.executeQuery());
      c.commit();
      ddl.execute("ALTER TABLE d ADD c int");
      for (int i = 0; i < 2; i++) rows(s.executeQuery());
      c.commit();
    }
  }

  static void fetchSize() throws Exception {
    try (Connection c = connect()) {
      c.setAutoCommit(false);
      for (int size : new int[] {0, 1, 7, 100}) {
        PreparedStatement s = c.prepareStatement("SELECT i, repeat('x', 10) FROM generate_series(1, ?) i");
        s.setInt(1, 100);
        s.setFetchSize(size);
        long sum = 0;
        try (ResultSet r = s.executeQuery()) {
          while (r.next()) sum += r.getInt(1);
        }
        say(size, sum);
      }
      Statement a = c.createStatement(), b = c.createStatement();
      a.setFetchSize(3);
      b.setFetchSize(2);
      ResultSet ra = a.executeQuery("SELECT generate_series(1, 10)"), rb = b.executeQuery("SELECT generate_series(11, 20)");
      while (ra.next() && rb.next()) say(ra.getInt(1), rb.getInt(1));
      ra.close();
      a.setMaxRows(4);
      rows(a.executeQuery("SELECT generate_series(1, 10) AS limited"));
      failing(() -> {
        ResultSet r = a.executeQuery("SELECT 10 / (2 - i) FROM generate_series(0, 5) i");
        while (r.next()) say(r.getInt(1));
      });
      c.rollback();
      c.setAutoCommit(true);
      Statement s = c.createStatement();
      s.setFetchSize(3);
      rows(s.executeQuery("SELECT generate_series(1, 5) AS autocommitted"));
      Statement scroll = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
      ResultSet r = scroll.executeQuery("SELECT generate_series(1, 5)");
      r.last();
      say(r.getRow());
      r.absolute(2);
      say(r.getInt(1));
    }
  }

  static void batches() throws Exception {
    for (String option : new String[] {"reWriteBatchedInserts=false", "reWriteBatchedInserts=true", "preferQueryMode=simple"}) {
      try (Connection c = connect(option); Statement ddl = c.createStatement()) {
        ddl.execute("DROP TABLE IF EXISTS b; CREATE TABLE b (id serial, i int UNIQUE, t text)");
        PreparedStatement s = c.prepareStatement("INSERT INTO b (i, t) VALUES (?, ?)");
        int count = Math.max(20, (int) (1000 * load));
        for (int i = 0; i < count; i++) {
          s.setInt(1, i);
          s.setString(2, "row " + i);
          s.addBatch();
        }
        say(option, s.executeBatch().length == count, one(c, "SELECT count(*) = " + count + " FROM b"));
        for (int i : new int[] {5001, 5002, 3, 5003}) {
          s.setInt(1, i);
          s.setString(2, "again");
          s.addBatch();
        }
        failing(s::executeBatch);
        say(one(c, "SELECT count(*) FROM b WHERE i > 5000"));
        c.setAutoCommit(false);
        PreparedStatement keys = c.prepareStatement("INSERT INTO b (i) VALUES (?)", Statement.RETURN_GENERATED_KEYS);
        for (int i = 6000; i < 6005; i++) {
          keys.setInt(1, i);
          keys.addBatch();
        }
        keys.executeBatch();
        ResultSet r = keys.getGeneratedKeys();
        int n = 0;
        while (r.next()) n++;
        say("keys", n);
        Statement mixed = c.createStatement();
        mixed.addBatch("UPDATE b SET t = 'm' WHERE i < 3");
        mixed.addBatch("DELETE FROM b WHERE i = 6000");
        mixed.addBatch("INSERT INTO b (i) VALUES (7000), (7001)");
        say(Arrays.toString(mixed.executeBatch()));
        c.rollback();
        say(one(c, "SELECT count(*) FROM b WHERE i >= 6000"));
        c.commit();
      }
    }
  }

  static void autosave() throws Exception {
    for (String option : new String[] {"autosave=never", "autosave=always", "autosave=conservative"}) {
      try (Connection c = connect(option); Statement s = c.createStatement()) {
        s.execute("DROP TABLE IF EXISTS a; CREATE TABLE a (i int PRIMARY KEY)");
        c.setAutoCommit(false);
        s.execute("INSERT INTO a VALUES (1)");
        failing(() -> s.execute("INSERT INTO a VALUES (1)"));
        failing(() -> s.execute("INSERT INTO a VALUES (2)"));
        failing(c::commit);
        c.rollback();
        say(option, one(c, "SELECT count(*) FROM a"));
        Savepoint p = c.setSavepoint("named");
        s.execute("INSERT INTO a VALUES (5)");
        failing(() -> s.execute("SELECT 1 / 0"));
        c.rollback(p);
        s.execute("INSERT INTO a VALUES (6)");
        c.commit();
        say(one(c, "SELECT string_agg(i::text, ',' ORDER BY i) FROM a"));
        c.commit();
      }
    }
  }

  static void copyManager() throws Exception {
    try (Connection c = connect(); Statement s = c.createStatement()) {
      s.execute("CREATE TABLE c (i int, t text)");
      CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
      StringBuilder text = new StringBuilder();
      int count = Math.max(50, (int) (20000 * load));
      for (int i = 0; i < count; i++) text.append(i).append("\trow ").append(i).append('\n');
      say(copy.copyIn("COPY c FROM STDIN", new StringReader(text.toString())) == count);
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      say(copy.copyOut("COPY (SELECT * FROM c WHERE i < 5 ORDER BY i) TO STDOUT (FORMAT csv)", out), out.toString());
      failing(() -> copy.copyIn("COPY c FROM STDIN", new StringReader("1\tx\ty\n")));
      failing(() -> copy.copyIn("COPY nowhere FROM STDIN", new StringReader("")));
      CopyIn in = copy.copyIn("COPY c FROM STDIN");
      byte[] line = "9\tnine\n".getBytes(StandardCharsets.UTF_8);
      in.writeToCopy(line, 0, line.length);
      in.cancelCopy();
      say(in.isActive(), one(c, "SELECT count(*) = " + count + " FROM c"));
      say(one(c, "SELECT 1"));
    }
  }

  static void transactionsAndIsolation() throws Exception {
    try (Connection c = connect(); Connection d = connect(); Statement s = c.createStatement()) {
      s.execute("CREATE TABLE t (i int); INSERT INTO t VALUES (1)");
      for (int level : new int[] {2, 4, 8}) {
        c.setTransactionIsolation(level);
        c.setAutoCommit(false);
        say(level, one(c, "SHOW transaction_isolation"), one(c, "SELECT count(*) FROM t"));
        d.createStatement().execute("INSERT INTO t VALUES (2)");
        say(one(c, "SELECT count(*) FROM t"), one(d, "SHOW transaction_isolation"));
        c.commit();
        c.setAutoCommit(true);
      }
      c.setReadOnly(true);
      failing(() -> s.execute("INSERT INTO t VALUES (1)"));
      c.setAutoCommit(false);
      failing(() -> s.execute("INSERT INTO t VALUES (1)"));
      c.rollback();
      c.setReadOnly(false);
      s.execute("INSERT INTO t VALUES (1)");
      say(one(d, "SHOW transaction_read_only"), c.getTransactionIsolation(), c.isValid(5), d.isValid(5));
      c.commit();
    }
  }

  static void databaseMetaData() throws Exception {
    try (Connection c = connect(); Statement s = c.createStatement()) {
      s.execute("CREATE TABLE parent (a int, b text, PRIMARY KEY (a, b)); CREATE TABLE child (id bigserial PRIMARY KEY, a int, "
                + "b text, x numeric(8,2) DEFAULT 1 NOT NULL, FOREIGN KEY (a, b) REFERENCES parent ON DELETE CASCADE); "
                + "CREATE INDEX child_x ON child (x DESC); CREATE VIEW v AS SELECT 1 AS one; "
                + "CREATE FUNCTION f(i int, OUT o text) LANGUAGE sql AS 'SELECT i::text'");
      DatabaseMetaData m = c.getMetaData();
      say(m.getDatabaseProductName(), m.getDatabaseProductVersion(), m.getURL().replaceAll("\\d{4,5}", "PORT"), m.getUserName(),
          m.getDefaultTransactionIsolation(), m.getMaxConnections(), m.getMaxColumnNameLength());
      rows(m.getTables(null, "public", "%", null));
      rows(m.getColumns(null, "public", "%", "%"));
      rows(m.getPrimaryKeys(null, "public", "parent"));
      rows(m.getImportedKeys(null, "public", "child"));
      rows(m.getIndexInfo(null, "public", "child", false, false));
      rows(m.getFunctionColumns(null, "public", "f", "%"), 16);
      rows(m.getSchemas(null, "public"));
      rows(m.getBestRowIdentifier(null, "public", "child", 0, false));
      say(c.getCatalog(), c.getSchema());
      c.setSchema("pg_catalog");
      say(c.getSchema(), one(c, "SHOW search_path"));
      PreparedStatement p = c.prepareStatement("SELECT a, b FROM public.parent WHERE a = ? AND b = ?");
      ParameterMetaData pm = p.getParameterMetaData();
      say(pm.getParameterCount(), pm.getParameterTypeName(1), pm.getParameterTypeName(2));
      say(p.getMetaData().getColumnName(2), p.getMetaData().getTableName(2), p.getMetaData().isNullable(1));
    }
  }

  static void errorsAndNotices() throws Exception {
    try (Connection c = connect(); Statement s = c.createStatement()) {
      s.execute("CREATE TABLE e (i int CONSTRAINT positive CHECK (i > 0))");
      for (String sql : new String[] {"SELEC", "SELECT * FROM nowhere", "INSERT INTO e VALUES (-1)", "SELECT 1 / 0", "SELECT 'x"}) {
        failing(() -> s.execute(sql));
        failing(() -> c.prepareStatement(sql).execute());
      }
      failing(() -> {
        PreparedStatement p = c.prepareStatement("SELECT ?::int");
        p.setString(1, "not a number");
        p.executeQuery();
      });
      s.execute("DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; END $$");
      for (SQLWarning w = s.getWarnings(); w != null; w = w.getNextWarning()) say(w.getSQLState(), w.getMessage());
      say(s.execute("SELECT 1; UPDATE e SET i = 2; SELECT 'x', 'y'"));
      do {
        if (s.getResultSet() != null) rows(s.getResultSet());
        else say("count", s.getUpdateCount());
      } while (s.getMoreResults() || s.getUpdateCount() != -1);
      s.execute("CREATE FUNCTION g(a int) RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE r refcursor; BEGIN "
                + "OPEN r FOR SELECT generate_series(1, a); RETURN r; END $$");
      c.setAutoCommit(false);
      CallableStatement call = c.prepareCall("{? = call g(?)}");
      call.registerOutParameter(1, Types.OTHER);
      call.setInt(2, 3);
      call.execute();
      rows((ResultSet) call.getObject(1));
      c.commit();
    }
  }

  static void cancelAndTimeout() throws Exception {
    try (Connection c = connect(); Connection witness = connect()) {
      Statement s = c.createStatement();
      s.setQueryTimeout(1);
      failing(() -> s.execute("SELECT pg_sleep(30)"));
      s.setQueryTimeout(0);
      for (int i = 0; i < 3; i++) {
        final String mark = "victim " + i;
        Thread t = new Thread(() -> {
          try {
            while (!one(witness, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
                        + "AND query LIKE '%" + mark + "%'").equals("1")) Thread.sleep(10);
            s.cancel();
          } catch (Exception error) {
            say("cancel failed", error.getMessage());
          }
        });
        t.start();
        failing(() -> s.execute("SELECT pg_sleep(30) /* " + mark + " */"));
        t.join();
        say(one(c, "SELECT 1"));
      }
    }
  }

  static void listening() throws Exception {
    try (Connection a = connect(); Connection b = connect()) {
      a.createStatement().execute("LISTEN jdbc");
      b.createStatement().execute("NOTIFY jdbc, 'hello'");
      int heard = 0;
      while (heard == 0) {
        PGNotification[] all = a.unwrap(PGConnection.class).getNotifications(20000);
        for (PGNotification n : all == null ? new PGNotification[0] : all) {
          say(n.getName(), n.getParameter());
          heard++;
        }
      }
      a.createStatement().execute("UNLISTEN *");
    }
  }

  static void connectionProperties() throws Exception {
    try (Connection c = connect("ApplicationName=jdbc%20app", "currentSchema=one,public", "options=-c%20work_mem%3D3MB",
                                "assumeMinServerVersion=15")) {
      for (int i = 0; i < 2; i++)
        say(one(c, "SHOW application_name"), one(c, "SHOW search_path"), one(c, "SHOW work_mem"), one(c, "SHOW TimeZone"),
            one(c, "SHOW extra_float_digits"), one(c, "SHOW DateStyle"));
      c.setClientInfo("ApplicationName", "changed");
      say(one(c, "SHOW application_name"), c.getClientInfo("ApplicationName"));
      c.setNetworkTimeout(Runnable::run, 20000);
      say(c.getNetworkTimeout(), one(c, "SELECT 1"));
      Properties more = new Properties();
      say(c.unwrap(PGConnection.class).getParameterStatuses());
    }
  }

  static void largeParameters() throws Exception {
    try (Connection c = connect("prepareThreshold=2"); PreparedStatement s = c.prepareStatement("SELECT length(?), md5(?::bytea), ?::bytea")) {
      byte[] raw = new byte[Math.max(10000, (int) (3000000 * load))];
      new Random(1).nextBytes(raw);
      for (int i = 0; i < 4; i++) {
        s.setString(1, "y".repeat(raw.length));
        s.setBytes(2, raw);
        s.setBinaryStream(3, new ByteArrayInputStream(raw), raw.length);
        ResultSet r = s.executeQuery();
        r.next();
        say(r.getInt(1), r.getString(2), Arrays.equals(raw, r.getBytes(3)));
      }
      PreparedStatement big = c.prepareStatement("SELECT sum(x) FROM unnest(?::numeric[]) x");
      BigDecimal[] values = new BigDecimal[1000];
      for (int i = 0; i < values.length; i++) values[i] = new BigDecimal(i + ".25");
      big.setArray(1, c.createArrayOf("numeric", values));
      rows(big.executeQuery());
    }
  }

  public static void main(String[] a) throws Exception {
    base = "jdbc:postgresql://" + a[0] + ":" + a[1] + "/" + a[2] + "?sslmode=disable&gssEncMode=disable&connectTimeout=20&loginTimeout=30";
    user = a[3];
    password = a[4];
    load = Double.parseDouble(a[6]);
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    Locale.setDefault(Locale.ENGLISH);
    Scenarios.class.getDeclaredMethod(a[5]).invoke(null);
  }
}
