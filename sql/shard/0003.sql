-- What commits over several shards need (docs/decisions/0050-fan-out-and-two-phase.md). A client's own role makes the
-- decision row inside its transaction; it can neither say that somebody else made it nor read or take back others'.
ALTER TABLE txn_decision ADD COLUMN owner name NOT NULL DEFAULT current_user,      -- who decided
                         ADD COLUMN participants text NOT NULL DEFAULT '';         -- ids of the shards that prepared: "2,9"
GRANT INSERT (gid, participants) ON txn_decision TO PUBLIC;
