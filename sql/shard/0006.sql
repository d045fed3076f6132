-- What a store that is made anew from its shards could not know else: which of them is the home shard, and the state of each.
-- Empty: not said yet, by a program that did not know of it.
ALTER TABLE identity ADD COLUMN home boolean, ADD COLUMN state text;
