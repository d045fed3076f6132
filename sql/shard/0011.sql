-- While a table that has rows comes into the map (shardmap/placing.h) its triggers call this for what the map would not
-- find again. Routers hold such a statement, and ask the map anew.
CREATE FUNCTION refuse_placing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'kintsugi: shardlet moved'
    USING ERRCODE = '40001', DETAIL = format('Table %s.%s is just being placed by ALTER TABLE ... SHARD BY or REPLICATED, '
                                             'and this is not the shard alone that is to have what is written.',
                                             TG_TABLE_SCHEMA, TG_TABLE_NAME),
          HINT = 'Retry the transaction.';
END $$;
