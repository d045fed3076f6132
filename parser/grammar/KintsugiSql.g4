// Kintsugi's SQL: PostgreSQL 15's, and the statements that look after shards and shard maps. Written by us after
// PostgreSQL's documentation; tests/parser holds it against PostgreSQL's own parser.
// Every element the reader of the tree (parser/build_*.cc) wants bears a label: no parse tree is kept beside them.
parser grammar KintsugiSql;

import SqlKeywords, SqlExpressions, SqlQueries, SqlDefinitions, SqlUtilities, OwnStatements;

statementOnly: s=statement EOF;

statement
  : b=preparable
  | tra=transactionStatement
  | decl=declareCursor
  | fet=fetchStatement
  | clo=closeStatement
  | prep=prepareStatement
  | exe=executeStatement
  | dea=deallocateStatement
  | setS=setStatement
  | res=resetStatement
  | sho=showStatement
  | disc=discardStatement
  | loc=lockStatement
  | noti=notifyStatement
  | cop=copyStatement
  | expl=explainStatement
  | vac=vacuumStatement
  | clu=clusterStatement
  | rei=reindexStatement
  | refr=refreshStatement
  | cal=callStatement
  | doS=doStatement
  | chk=checkpointStatement
  | loa=loadStatement
  | ct=createTable
  | cta=createTableAs
  | alt=alterTable
  | ci=createIndex
  | cv=createView
  | cs=createSequence
  | csch=createSchema
  | ctyp=createType
  | cf=createFunction
  | dro=dropStatement
  | tru=truncate
  | gra=grantStatement
  | com=commentStatement
  | own=ownStatement
  | head=headStatement
  ;
