// Kintsugi's own statements. Their words become tokens only when the statement begins as one of these.
parser grammar OwnStatements;

ownStatement
  : K_CREATE obj=W_SHARD ine=ifNotExists? n=ownName W_DSN str=SCONST
  | K_CREATE W_SHARD obj=W_MAP ine=ifNotExists? n=ownName K_BY kind=(K_RANGE | W_LIST | W_HASH) LPAREN types+=typeName (COMMA types+=typeName)* RPAREN
      (W_SHARDLETS num=ICONST)? (K_ON W_SHARDS LPAREN shards=ownNameList RPAREN)?
  | K_CREATE obj=W_SHARDLET ine=ifNotExists? n=ownName K_OF m=ownName K_FOR K_VALUES
      (K_FROM low=keyTuple K_TO high=keyTuple | K_IN lparen vals+=keyValue (COMMA vals+=keyValue)* RPAREN) K_ON W_SHARD sh=ownName
  | al=K_ALTER obj=W_SHARD n=ownName K_SET W_DSN str=SCONST
  | al=K_ALTER obj=W_SHARDLET n=ownName (ren=K_RENAME K_TO nn=ownName | K_SET (st=W_OFFLINE | st=W_ONLINE | st=K_READ K_ONLY))
  | dr=K_DROP obj=W_SHARD ie=ifExists? n=ownName
  | dr=K_DROP W_SHARD obj=W_MAP ie=ifExists? n=ownName
  | dr=K_DROP obj=W_SHARDLET ie=ifExists? n=ownName
  | job=W_SPLIT W_SHARDLET n=ownName (K_AT low=keyTuple)? (K_INTO LPAREN into=ownNameList RPAREN)? (K_MOVE mv=ownName K_TO W_SHARD sh=ownName)? wi=ownOptions?
  | job=K_MERGE W_SHARDLETS n=ownName COMMA n2=ownName (K_INTO nn=ownName)? (K_ON W_SHARD sh=ownName)? wi=ownOptions?
  | job=K_MOVE W_SHARDLET n=ownName K_TO W_SHARD sh=ownName wi=ownOptions?
  | job=W_REBALANCE (W_SHARD W_MAP m=ownName)? wi=ownOptions?
  | job=W_DRAIN W_SHARD n=ownName wi=ownOptions?
  | ctl=(W_CANCEL | W_RESUME) W_JOB id=jobId
  | show=K_SHOW (what=W_SHARDS | W_SHARD what=W_MAPS | what=W_SHARDLETS (K_OF m=ownName)? | W_SHARDED what=K_TABLES | what=W_JOBS
                | what=W_JOB id=jobId | what=W_ROUTERS | what=W_POOLS | what=W_STATS)
  ;

jobId: t=(ICONST | FCONST | SCONST);

ownNameList: n+=ownName (COMMA n+=ownName)*;

keyTuple: LPAREN v+=keyValue (COMMA v+=keyValue)* RPAREN;

keyValue
  : w=(K_MINVALUE | K_MAXVALUE | K_TRUE | K_FALSE | K_NULL)
  | sign=(PLUS | MINUS)? num=(ICONST | FCONST)
  | str=SCONST
  | ty=simpleType str=SCONST
  | LPAREN v+=keyValue (COMMA v+=keyValue)* RPAREN
  ;

ownOptions: K_WITH LPAREN o+=ownOption (COMMA o+=ownOption)* RPAREN;

// One without a value is true, as in PostgreSQL's own lists.
ownOption: n=ownName (EQ (v=copyValue | w=ownName))?;
