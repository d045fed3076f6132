-- A mark that travels with the changes of a move: written on the source, it is on the target when everything that was
-- committed before it is.
CREATE TABLE marker (
  job text NOT NULL,
  mark text NOT NULL,
  PRIMARY KEY (job, mark)
);
