// Transactions, cursors, prepared statements, settings, COPY and the statements that keep a database well.
parser grammar SqlUtilities;

transactionStatement
  : w=K_ABORT work? ch=chain?
  | w=K_ROLLBACK work? (ch=chain | K_TO K_SAVEPOINT? n=colId)?
  | w=K_ROLLBACK prep=K_PREPARED id=SCONST
  | w=(K_COMMIT | K_END) work? ch=chain?
  | w=K_COMMIT prep=K_PREPARED id=SCONST
  | w=K_BEGIN work? m=transactionModes?
  | w=K_START K_TRANSACTION m=transactionModes?
  | w=K_SAVEPOINT n=colId
  | w=K_RELEASE K_SAVEPOINT? n=colId
  | w=K_PREPARE prep=K_TRANSACTION id=SCONST
  ;

work: K_WORK | K_TRANSACTION;

chain: K_AND no=K_NO? K_CHAIN;

transactionModes: m+=transactionMode (COMMA? m+=transactionMode)*;

transactionMode
  : K_ISOLATION K_LEVEL iso=isolation
  | K_READ (ro=K_ONLY | rw=K_WRITE)
  | no=K_NOT? def=K_DEFERRABLE
  ;

isolation: K_READ t=(K_UNCOMMITTED | K_COMMITTED) | t=K_REPEATABLE K_READ | t=K_SERIALIZABLE;

declareCursor
  : K_DECLARE n=colId o+=cursorOption* K_CURSOR (hold=(K_WITH | K_WITHOUT) K_HOLD)? K_FOR q=query
  ;

cursorOption: no=K_NO? sc=K_SCROLL | bin=K_BINARY | K_ASENSITIVE | K_INSENSITIVE;

fetchStatement: w=(K_FETCH | K_MOVE) d=fetchDirection;

fetchDirection
  : (K_FROM | K_IN)? n=colId
  | dir=(K_NEXT | K_PRIOR | K_FIRST | K_LAST | K_FORWARD | K_BACKWARD) (K_FROM | K_IN)? n=colId
  | dir=(K_ABSOLUTE | K_RELATIVE) num=signedInteger (K_FROM | K_IN)? n=colId
  | num=signedInteger (K_FROM | K_IN)? n=colId
  | all=K_ALL (K_FROM | K_IN)? n=colId
  | dir=(K_FORWARD | K_BACKWARD) (num=signedInteger | all=K_ALL) (K_FROM | K_IN)? n=colId
  ;

signedInteger: sign=(PLUS | MINUS)? num=ICONST;

closeStatement: K_CLOSE (n=colId | all=K_ALL);

prepareStatement: K_PREPARE n=colId (LPAREN types+=typeName (COMMA types+=typeName)* RPAREN)? K_AS b=preparable;

executeStatement: K_EXECUTE n=colId (lparen items=exprList RPAREN)?;

deallocateStatement: K_DEALLOCATE K_PREPARE? (n=colId | all=K_ALL);

setStatement
  : K_SET (scope=(K_LOCAL | K_SESSION))? r=setRest
  | K_SET scope=K_CONSTRAINTS (K_ALL | anyNameList) (K_DEFERRED | K_IMMEDIATE)
  ;

setRest
  : w=K_TRANSACTION m=transactionModes
  | w=K_TRANSACTION snap=K_SNAPSHOT str=SCONST
  | w=K_SESSION K_CHARACTERISTICS K_AS K_TRANSACTION m=transactionModes
  | w=K_SESSION K_AUTHORIZATION (v=settingValue | K_DEFAULT)
  | w=K_TIME K_ZONE z=zoneValue
  | w=(K_CATALOG | K_SCHEMA) str=SCONST
  | w=K_NAMES (str=SCONST | K_DEFAULT)?
  | w=K_ROLE v=settingValue
  | w=K_XML K_OPTION (K_DOCUMENT | K_CONTENT)
  | n=settingName (K_TO | EQ) (def=K_DEFAULT | vals+=settingValue (COMMA vals+=settingValue)*)
  | n=settingName K_FROM cur=K_CURRENT
  ;

settingName: n+=colId (DOT n+=colId)*;

settingValue: word=(K_TRUE | K_FALSE | K_ON) | nw=nonReservedWord | str=SCONST | sign=(PLUS | MINUS)? num=(ICONST | FCONST);

zoneValue
  : str=SCONST
  | IDENT
  | iv=K_INTERVAL (LPAREN ICONST RPAREN SCONST | SCONST intervalFields?)
  | sign=(PLUS | MINUS)? num=(ICONST | FCONST)
  | def=K_DEFAULT
  | K_LOCAL
  ;

resetStatement: K_RESET r=resetRest;

resetRest: all=K_ALL | w=K_TIME K_ZONE | w=K_TRANSACTION K_ISOLATION K_LEVEL | w=K_SESSION K_AUTHORIZATION | n=settingName;

showStatement: K_SHOW (all=K_ALL | w=K_TIME K_ZONE | w=K_TRANSACTION K_ISOLATION K_LEVEL | w=K_SESSION K_AUTHORIZATION | n=settingName);

discardStatement: K_DISCARD w=(K_ALL | K_PLANS | K_SEQUENCES | K_TEMP | K_TEMPORARY);

lockStatement
  : K_LOCK K_TABLE? rels+=relationName (COMMA rels+=relationName)* (K_IN md=lockMode K_MODE)? wait=K_NOWAIT?
  ;

lockMode
  : K_ACCESS (K_SHARE | K_EXCLUSIVE)
  | K_ROW (K_SHARE | K_EXCLUSIVE)
  | K_SHARE (K_UPDATE K_EXCLUSIVE | K_ROW K_EXCLUSIVE)?
  | K_EXCLUSIVE
  ;

notifyStatement: w=K_NOTIFY n=colId (COMMA str=SCONST)? | w=K_LISTEN n=colId | w=K_UNLISTEN (n=colId | all=STAR);

copyStatement
  : K_COPY bin=K_BINARY? rel=anyName (LPAREN cols=nameList RPAREN)? dir=(K_FROM | K_TO) prog=K_PROGRAM? f=copyFile
    (K_USING? K_DELIMITERS delim=SCONST)? K_WITH? o=copyOptions wh=whereClause?
  | K_COPY (LPAREN | LPAREN_SELECT) b=preparable RPAREN dir=K_TO prog=K_PROGRAM? f=copyFile K_WITH? o=copyOptions
  | K_COPY ws=wrappedSubquery dir=K_TO prog=K_PROGRAM? f=copyFile K_WITH? o=copyOptions
  ;

copyFile: str=SCONST | w=(K_STDIN | K_STDOUT);

copyOptions: old+=copyOldOption* | LPAREN o+=copyOption (COMMA o+=copyOption)* RPAREN;

copyOldOption
  : n=(K_BINARY | K_FREEZE)
  | n=(K_DELIMITER | K_NULL | K_QUOTE | K_ESCAPE) K_AS? str=SCONST
  | n=(K_CSV | K_HEADER)
  | n=K_FORCE (quote=K_QUOTE (cols=nameList | star=STAR) | no=K_NOT K_NULL cols=nameList | K_NULL cols=nameList)
  | n=K_ENCODING str=SCONST
  ;

copyOption: n=colLabel (v=copyValue | star=STAR | LPAREN items+=copyListItem (COMMA items+=copyListItem)* RPAREN)?;

copyValue: word=(K_TRUE | K_FALSE | K_ON) | nw=nonReservedWord | str=SCONST | sign=(PLUS | MINUS)? num=(ICONST | FCONST);

copyListItem: v=copyValue;

explainStatement
  : K_EXPLAIN (o=explainOptions | an=(K_ANALYZE | K_ANALYSE)? verb=K_VERBOSE?) s=explainable
  ;

explainOptions: LPAREN o+=explainOption (COMMA o+=explainOption)* RPAREN;

explainOption: (n=nonReservedWord | an=(K_ANALYZE | K_ANALYSE)) v=copyValue?;

explainable: b=preparable | dc=declareCursor | cta=createTableAs | cv=createView | rf=refreshStatement | x=executeStatement;

vacuumStatement
  : K_VACUUM (LPAREN o+=explainOption (COMMA o+=explainOption)* RPAREN | K_FULL? K_FREEZE? K_VERBOSE? (K_ANALYZE | K_ANALYSE)?)
    (rels+=vacuumRelation (COMMA rels+=vacuumRelation)*)?
  | an=(K_ANALYZE | K_ANALYSE) (LPAREN o+=explainOption (COMMA o+=explainOption)* RPAREN | K_VERBOSE?)
    (rels+=vacuumRelation (COMMA rels+=vacuumRelation)*)?
  ;

vacuumRelation: rel=relationName (LPAREN cols=nameList RPAREN)?;

clusterStatement
  : K_CLUSTER (K_VERBOSE? (rel=anyName (K_USING colId)?)? | LPAREN explainOption (COMMA explainOption)* RPAREN rel=anyName (K_USING colId)?
              | K_VERBOSE? colId K_ON rel=anyName)
  ;

reindexStatement
  : K_REINDEX (LPAREN explainOption (COMMA explainOption)* RPAREN)?
    w=(K_INDEX | K_TABLE | K_SCHEMA | K_SYSTEM | K_DATABASE) K_CONCURRENTLY? rel=anyName?
  ;

refreshStatement: K_REFRESH K_MATERIALIZED K_VIEW K_CONCURRENTLY? rel=anyName withData?;

callStatement: K_CALL call=callTarget;

callTarget: (n=colId (DOT attrs+=colLabel)* | fn=typeFuncKw) args=callArguments;

doStatement: K_DO doItem+;

doItem: SCONST | K_LANGUAGE nonReservedWord | K_LANGUAGE SCONST;

checkpointStatement: K_CHECKPOINT;

loadStatement: K_LOAD SCONST;

// The rest, known by how it begins.
headStatement
  : K_CREATE (K_OR K_REPLACE)?
    (K_ROLE | K_USER | K_GROUP | K_DATABASE | K_TABLESPACE | K_EXTENSION | K_CAST | K_OPERATOR | K_AGGREGATE | K_COLLATION
    | K_CONVERSION | K_STATISTICS | K_PUBLICATION | K_SUBSCRIPTION | K_SERVER | K_POLICY | K_RULE | K_TRIGGER | K_CONSTRAINT K_TRIGGER
    | K_EVENT K_TRIGGER | K_ACCESS K_METHOD | K_TEXT K_SEARCH | K_FOREIGN K_TABLE | K_FOREIGN K_DATA K_WRAPPER | K_TRANSFORM
    | K_TRUSTED? K_PROCEDURAL? K_LANGUAGE | K_ASSERTION) so=something
  | K_ALTER
    (K_ROLE | K_USER | K_GROUP | K_DATABASE | K_TABLESPACE | K_EXTENSION | K_OPERATOR | K_AGGREGATE | K_COLLATION | K_CONVERSION
    | K_STATISTICS | K_PUBLICATION | K_SUBSCRIPTION | K_SERVER | K_POLICY | K_RULE | K_TRIGGER | K_EVENT K_TRIGGER | K_TEXT K_SEARCH
    | K_FOREIGN K_DATA K_WRAPPER | K_PROCEDURAL? K_LANGUAGE | K_TYPE | K_DOMAIN | K_SCHEMA | K_FUNCTION | K_PROCEDURE | K_ROUTINE
    | K_SYSTEM | K_DEFAULT K_PRIVILEGES | K_LARGE K_OBJECT) so=something
  | K_IMPORT K_FOREIGN K_SCHEMA so=something
  | K_SECURITY K_LABEL so=something
  | K_REASSIGN K_OWNED so=something
  ;

something: ~OTHER+;
