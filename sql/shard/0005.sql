-- Rows that a move brings to this shard are nobody's to write until they are all here (docs/life_of_a_move.md). A job whose
-- rows are on their way stands here; that it is gone opens the guard without a lock on any table. So does the local map: a
-- shard that owns the shardlet guards nothing, also when a router that knows of no guard has brought it here.
CREATE TABLE arrival (
  job text PRIMARY KEY,
  since timestamptz NOT NULL DEFAULT now()
);
-- The guard's triggers call this; their WHEN clause says which rows. What replication brings does not fire them.
CREATE FUNCTION refuse_arriving() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = kintsugi, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM arrival WHERE job = TG_ARGV[0])
     AND NOT EXISTS (SELECT FROM owned WHERE map = TG_ARGV[1] AND name = TG_ARGV[2]) THEN
    RAISE EXCEPTION 'kintsugi: shardlet moved'
      USING ERRCODE = '40001', DETAIL = format('Job %s is bringing rows of table %s.%s to this shard; until they are all '
                                               'here they are written on the shard that they come from.',
                                               TG_ARGV[0], TG_TABLE_SCHEMA, TG_TABLE_NAME),
            HINT = 'Retry the transaction.';
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  RETURN NEW;
END $$;
