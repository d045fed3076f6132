-- What moves need on a shard (docs/life_of_a_move.md).

-- The fence's triggers call this; their WHEN clause says which rows.
CREATE FUNCTION refuse_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'kintsugi: shardlet moved'
    USING ERRCODE = '40001', DETAIL = format('Job %s has moved rows of table %s.%s to another shard.', TG_ARGV[0],
                                             TG_TABLE_SCHEMA, TG_TABLE_NAME),
          HINT = 'Retry the transaction.';
END $$;

-- A router in careful mode asks this after an answer and before it passes it on: whether a map of that epoch is all that
-- there is to know about this shard. No while a fence stands whose move is not decided yet.
CREATE FUNCTION holds(known bigint) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = kintsugi AS $$
  SELECT epoch <= known AND NOT EXISTS (SELECT FROM fence) FROM identity
$$;
DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO PUBLIC', current_schema()); END $$;
