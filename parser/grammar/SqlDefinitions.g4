// DDL, as deep as the planner must understand it. What it need not read is taken as a run of tokens (`anything`).
parser grammar SqlDefinitions;

anything: ~OTHER*;

ifNotExists: K_IF K_NOT K_EXISTS;

ifExists: K_IF K_EXISTS;

persistence: (K_LOCAL | K_GLOBAL)? t=(K_TEMPORARY | K_TEMP) | t=K_UNLOGGED;

createTable
  : K_CREATE per=persistence? K_TABLE ine=ifNotExists? rel=anyName
    ( LPAREN (el+=tableElement (COMMA el+=tableElement)*)? RPAREN (K_INHERITS LPAREN inh=anyNameList RPAREN)?
    | K_OF ofType=anyName (LPAREN tel+=typedTableElement (COMMA tel+=typedTableElement)* RPAREN)?
    | K_PARTITION K_OF par=anyName (LPAREN tel+=typedTableElement (COMMA tel+=typedTableElement)* RPAREN)? bound=partitionBound
    )
    ps=partitionSpec? (K_USING am=colId)? wo=withOptions? oc=onCommit? (K_TABLESPACE ts=colId)? place=placement?
  ;

createTableAs
  : K_CREATE per=persistence? K_TABLE ine=ifNotExists? rel=anyName (LPAREN cols=nameList RPAREN)? (K_USING am=colId)?
    wo=withOptions? oc=onCommit? (K_TABLESPACE ts=colId)? K_AS (q=query | x=executeStatement) wd=withData?
  ;

withData: K_WITH no=K_NO? K_DATA;

// Kintsugi: where the rows of a table live.
placement: W_SHARD K_BY m=ownName LPAREN cols=nameList RPAREN | rep=W_REPLICATED;

withOptions: K_WITH o=optionList | (K_WITHOUT K_OIDS);

optionList: LPAREN o+=option (COMMA o+=option)* RPAREN;

option: n=colLabel (DOT sub=colLabel)? (EQ v=optionValue)?;

optionValue: ty=funcType | rk=colLabel | sign=(PLUS | MINUS)? num=(ICONST | FCONST) | str=SCONST | ope=operatorName;

onCommit: K_ON K_COMMIT (w=K_DROP | w=K_DELETE K_ROWS | w=K_PRESERVE K_ROWS);

partitionSpec: K_PARTITION K_BY kind=colId LPAREN p+=partitionElement (COMMA p+=partitionElement)* RPAREN;

partitionElement: (n=colId | wf=windowlessCall | LPAREN e=expr RPAREN) (K_COLLATE coll=anyName)? opc=anyName?;

partitionBound
  : K_FOR K_VALUES ( K_WITH LPAREN h+=hashBound (COMMA h+=hashBound)* RPAREN
                   | K_IN lparen items=exprList RPAREN
                   | K_FROM lparen low=exprList RPAREN K_TO lparen high=exprList RPAREN )
  | def=K_DEFAULT
  ;

hashBound: n=nonReservedWord num=ICONST;

tableElement: c=columnDefinition | k=tableConstraint | lk=likeClause;

typedTableElement: c=columnOptions | k=tableConstraint;

columnOptions: n=colId (K_WITH K_OPTIONS)? q+=columnConstraint*;

columnDefinition: n=colId ty=typeName (K_COMPRESSION (cm=colId | K_DEFAULT))? fo=foreignOptions? q+=columnConstraint*;

foreignOptions: K_OPTIONS LPAREN foreignOption (COMMA foreignOption)* RPAREN;

foreignOption: colLabel SCONST;

columnConstraint
  : (K_CONSTRAINT cn=colId)?
    ( no=K_NOT? w=K_NULL
    | w=K_UNIQUE (K_NULLS no=K_NOT? K_DISTINCT)? wo=withOptions? (K_USING K_INDEX K_TABLESPACE colId)?
    | w=K_PRIMARY K_KEY wo=withOptions? (K_USING K_INDEX K_TABLESPACE colId)?
    | w=K_CHECK lparen e=expr RPAREN (noinh=K_NO K_INHERIT)?
    | w=K_DEFAULT be=bexpr
    | w=K_GENERATED (always=K_ALWAYS | by=K_BY K_DEFAULT) K_AS
        (ident=K_IDENTITY (LPAREN so+=sequenceOption+ RPAREN)? | lparen e=expr RPAREN stored=K_STORED)
    | w=K_REFERENCES rt=anyName (LPAREN cols=nameList RPAREN)? km=keyMatch? ka+=keyAction*
    )
  | at=constraintAttribute
  | w=K_COLLATE coll=anyName
  ;

constraintAttribute: K_NOT? K_DEFERRABLE | K_INITIALLY (K_DEFERRED | K_IMMEDIATE);

keyMatch: K_MATCH (K_FULL | K_PARTIAL | K_SIMPLE);

keyAction: K_ON ev=(K_UPDATE | K_DELETE) (K_NO K_ACTION | K_RESTRICT | K_CASCADE | K_SET (K_NULL | K_DEFAULT) (LPAREN nameList RPAREN)?);

tableConstraint
  : (K_CONSTRAINT cn=colId)?
    ( w=K_CHECK lparen e=expr RPAREN
    | w=K_UNIQUE ((K_NULLS K_NOT? K_DISTINCT)? LPAREN cols=nameList RPAREN inc=includeClause? wo=withOptions? (K_USING K_INDEX K_TABLESPACE colId)? | K_USING K_INDEX ui=colId)
    | w=K_PRIMARY K_KEY (LPAREN cols=nameList RPAREN inc=includeClause? wo=withOptions? (K_USING K_INDEX K_TABLESPACE colId)? | K_USING K_INDEX ui=colId)
    | w=K_EXCLUDE (K_USING am=colId)? LPAREN excludeElement (COMMA excludeElement)* RPAREN inc=includeClause? wo=withOptions?
        (K_USING K_INDEX K_TABLESPACE colId)? (K_WHERE lparen e=expr RPAREN)?
    | w=K_FOREIGN K_KEY LPAREN cols=nameList RPAREN K_REFERENCES rt=anyName (LPAREN rcols=nameList RPAREN)? km=keyMatch? ka+=keyAction*
    ) at+=tableConstraintAttribute*
  ;

tableConstraintAttribute: K_NOT? K_DEFERRABLE | K_INITIALLY (K_DEFERRED | K_IMMEDIATE) | K_NOT K_VALID | K_NO K_INHERIT;

excludeElement: i=indexElement K_WITH (operatorSymbol | OPERATOR_OP LPAREN operatorName RPAREN);

includeClause: K_INCLUDE LPAREN c+=indexElement (COMMA c+=indexElement)* RPAREN;

likeClause: K_LIKE rel=anyName likeOption*;

likeOption
  : (K_INCLUDING | K_EXCLUDING)
    (K_COMMENTS | K_COMPRESSION | K_CONSTRAINTS | K_DEFAULTS | K_IDENTITY | K_GENERATED | K_INDEXES | K_STATISTICS | K_STORAGE | K_ALL)
  ;

sequenceOption
  : w=K_AS simpleType
  | (w=K_CACHE | w=K_INCREMENT K_BY? | w=K_MAXVALUE | w=K_MINVALUE | w=K_START K_WITH? | w=K_RESTART K_WITH?)
      sign=(PLUS | MINUS)? num=(ICONST | FCONST)
  | w=K_NO (K_MAXVALUE | K_MINVALUE | K_CYCLE)
  | w=K_CYCLE
  | w=K_RESTART
  | w=K_OWNED K_BY own=anyName
  | w=K_SEQUENCE K_NAME anyName
  ;

alterTable
  : K_ALTER kind=(K_TABLE | K_INDEX | K_SEQUENCE | K_VIEW) ie=ifExists? rel=relationName rest=alterRelation
  | K_ALTER mat=K_MATERIALIZED kind=K_VIEW ie=ifExists? rel=relationName rest=alterRelation
  | K_ALTER frn=K_FOREIGN kind=K_TABLE ie=ifExists? rel=relationName rest=alterRelation
  | K_ALTER (kind=(K_TABLE | K_INDEX) | K_MATERIALIZED kind=K_VIEW) K_ALL K_IN K_TABLESPACE colId (K_OWNED K_BY roleList)?
      K_SET K_TABLESPACE colId K_NOWAIT?
  ;

alterRelation
  : cmds+=alterCommand (COMMA cmds+=alterCommand)*
  | ren=K_RENAME (K_COLUMN? cname=colId K_TO nname=colId | con=K_CONSTRAINT cname=colId K_TO nname=colId | K_TO nname=colId)
  | ss=K_SET K_SCHEMA sname=colId
  | att=K_ATTACH K_PARTITION par=anyName bound=partitionBound?
  | det=K_DETACH K_PARTITION par=anyName (con=K_CONCURRENTLY | K_FINALIZE)?
  | so+=sequenceOption+
  | K_NO? dep=K_DEPENDS K_ON K_EXTENSION colId
  | place=placement
  ;

alterCommand
  : w=K_ADD K_COLUMN? ine=ifNotExists? c=columnDefinition
  | w=K_ADD k=tableConstraint
  | w=K_ALTER K_COLUMN? n=colId
      ( act=K_SET K_DEFAULT e=expr
      | act=K_DROP dd=K_DEFAULT
      | act=K_DROP nn=K_NOT K_NULL
      | act=K_SET nn=K_NOT K_NULL
      | act=K_DROP K_EXPRESSION ifExists?
      | act=K_DROP K_IDENTITY ifExists?
      | act=K_SET K_STATISTICS MINUS? ICONST
      | act=(K_SET | K_RESET) optionList
      | act=K_SET K_STORAGE colId
      | act=K_SET K_COMPRESSION (colId | K_DEFAULT)
      | act=K_ADD K_GENERATED (K_ALWAYS | K_BY K_DEFAULT) K_AS idn=K_IDENTITY (LPAREN sequenceOption+ RPAREN)?
      | (K_SET K_DATA)? act=K_TYPE ty=typeName (K_COLLATE coll=anyName)? (K_USING ue=expr)?
      | act=K_OPTIONS LPAREN anything RPAREN
      | ids+=alterIdentity+
      )
  | w=K_ALTER K_COLUMN? num=ICONST K_SET K_STATISTICS MINUS? ICONST
  | w=K_DROP con=K_CONSTRAINT ie=ifExists? n=colId beh=(K_CASCADE | K_RESTRICT)?
  | w=K_DROP K_COLUMN? ie=ifExists? n=colId beh=(K_CASCADE | K_RESTRICT)?
  | w=K_ALTER K_CONSTRAINT n=colId tableConstraintAttribute*
  | w=K_VALIDATE K_CONSTRAINT n=colId
  | w=K_SET (K_WITHOUT K_OIDS | K_WITHOUT K_CLUSTER | K_LOGGED | K_UNLOGGED | K_TABLESPACE n=colId | optionList | K_ACCESS K_METHOD n=colId)
  | w=K_RESET optionList
  | w=K_CLUSTER K_ON n=colId
  | w=(K_ENABLE | K_DISABLE) (K_ALWAYS | K_REPLICA)? (K_TRIGGER | K_RULE) (n=colId | K_ALL | K_USER)
  | (w=(K_ENABLE | K_DISABLE | K_FORCE) | w=K_NO K_FORCE) K_ROW K_LEVEL K_SECURITY
  | (w=K_INHERIT | w=K_NO K_INHERIT) par=anyName
  | w=K_OF par=anyName
  | w=K_NOT K_OF
  | w=K_OWNER K_TO own=roleName
  | w=K_REPLICA K_IDENTITY (K_NOTHING | K_FULL | K_DEFAULT | K_USING K_INDEX n=colId)
  | w=K_OPTIONS LPAREN anything RPAREN
  ;

alterIdentity: K_RESTART (K_WITH? (PLUS | MINUS)? num=(ICONST | FCONST))? | K_SET so=sequenceOption | K_SET K_GENERATED (K_ALWAYS | K_BY K_DEFAULT);

roleName: n=nonReservedWord | w=(K_CURRENT_ROLE | K_CURRENT_USER | K_SESSION_USER);

roleList: r+=roleName (COMMA r+=roleName)*;

createIndex
  : K_CREATE uniq=K_UNIQUE? K_INDEX conc=K_CONCURRENTLY? (ine=ifNotExists n=colId | n=colId)? K_ON rel=relationName (K_USING am=colId)?
    lparen p+=indexElement (COMMA p+=indexElement)* RPAREN inc=includeClause? (K_NULLS K_NOT? K_DISTINCT)? wo=withOptions?
    (K_TABLESPACE ts=colId)? wh=whereClause?
  ;

indexElement
  : (n=colId | wf=windowlessCall | LPAREN e=expr RPAREN) (K_COLLATE coll=anyName)? (opc=anyName opo=optionList?)?
    dir=(K_ASC | K_DESC)? (NULLS_LA nul=(K_FIRST | K_LAST))?
  ;

createView
  : K_CREATE (K_OR rep=K_REPLACE)? per=persistence? K_RECURSIVE? K_VIEW rel=anyName (LPAREN cols=nameList RPAREN)? wo=withOptions?
    K_AS q=query (K_WITH (K_CASCADED | K_LOCAL)? K_CHECK K_OPTION)?
  | K_CREATE per=persistence? mat=K_MATERIALIZED K_VIEW ine=ifNotExists? rel=anyName (LPAREN cols=nameList RPAREN)? (K_USING am=colId)?
    wo=withOptions? (K_TABLESPACE ts=colId)? K_AS q=query wd=withData?
  ;

createSequence: K_CREATE per=persistence? K_SEQUENCE ine=ifNotExists? rel=anyName o+=sequenceOption*;

createSchema
  : K_CREATE K_SCHEMA ine=ifNotExists? (n=colId? K_AUTHORIZATION own=roleName | n=colId) el+=schemaElement*
  ;

schemaElement: ct=createTable | createIndex | createSequence | cv=createView | grantStatement | createTriggerHead;

createTriggerHead: K_CREATE K_TRIGGER anything;

createType
  : K_CREATE K_TYPE n=anyName
    ( K_AS lp=LPAREN (at+=columnAlias (COMMA at+=columnAlias)*)? RPAREN
    | K_AS en=K_ENUM LPAREN (lab+=stringToken (COMMA lab+=stringToken)*)? RPAREN
    | K_AS rng=K_RANGE def=optionList
    | def=optionList
    )?
  | K_CREATE dom=K_DOMAIN n=anyName K_AS? ty=typeName q+=columnConstraint*
  ;

stringToken: t=SCONST;

createFunction
  : K_CREATE (K_OR rep=K_REPLACE)? kind=(K_FUNCTION | K_PROCEDURE) n=anyFuncName
    LPAREN (a+=functionArgument (COMMA a+=functionArgument)*)? RPAREN
    (K_RETURNS (ret=funcType | tab=K_TABLE LPAREN rc+=tableFunctionColumn (COMMA rc+=tableFunctionColumn)* RPAREN))?
    o+=functionOption* (K_RETURN be=expr | atomic=K_BEGIN K_ATOMIC anything)?
  ;

tableFunctionColumn: n=typeFuncName ty=funcType;

functionArgument
  : (md=argumentMode n=typeFuncName? | n=typeFuncName md=argumentMode?)? ty=funcType ((K_DEFAULT | EQ) d=expr)?
  ;

argumentMode: K_IN K_OUT? | K_OUT | K_INOUT | K_VARIADIC;

functionOption
  : K_AS SCONST (COMMA SCONST)?
  | K_LANGUAGE (nonReservedWord | SCONST)
  | K_TRANSFORM K_FOR K_TYPE typeName (COMMA K_FOR K_TYPE typeName)*
  | K_WINDOW
  | co=commonFunctionOption
  ;

commonFunctionOption
  : K_CALLED K_ON K_NULL K_INPUT
  | K_RETURNS K_NULL K_ON K_NULL K_INPUT
  | K_STRICT
  | vol=(K_IMMUTABLE | K_STABLE | K_VOLATILE)
  | K_EXTERNAL? K_SECURITY (K_DEFINER | K_INVOKER)
  | K_NOT? K_LEAKPROOF
  | (K_COST | K_ROWS) (PLUS | MINUS)? (ICONST | FCONST)
  | K_SUPPORT anyName
  | K_SET setRest
  | K_RESET resetRest
  | K_PARALLEL colId
  ;

dropStatement
  : K_DROP kind=dropRelationKind ie=ifExists? n=anyNameList beh=(K_CASCADE | K_RESTRICT)?
  | K_DROP K_INDEX conc=K_CONCURRENTLY ie=ifExists? n=anyNameList beh=(K_CASCADE | K_RESTRICT)?
  | K_DROP (ty=K_TYPE | ty=K_DOMAIN) ie=ifExists? types+=typeName (COMMA types+=typeName)* beh=(K_CASCADE | K_RESTRICT)?
  | K_DROP fn=(K_FUNCTION | K_PROCEDURE | K_ROUTINE | K_AGGREGATE) ie=ifExists? f+=functionSignature (COMMA f+=functionSignature)*
      beh=(K_CASCADE | K_RESTRICT)?
  | K_DROP on=(K_TRIGGER | K_RULE | K_POLICY) ie=ifExists? one=colId K_ON table=anyName beh=(K_CASCADE | K_RESTRICT)?
  | K_DROP w=(K_CAST | K_OPERATOR | K_TRANSFORM | K_OWNED | K_SUBSCRIPTION | K_DATABASE | K_TABLESPACE | K_ROLE | K_USER | K_GROUP) anything
  ;

dropRelationKind
  : t=(K_TABLE | K_SEQUENCE | K_VIEW | K_INDEX | K_COLLATION | K_CONVERSION | K_STATISTICS | K_SCHEMA | K_EXTENSION
      | K_PUBLICATION | K_SERVER | K_LANGUAGE)
  | m=K_MATERIALIZED t=K_VIEW
  | m=K_FOREIGN t=K_TABLE
  | m=K_FOREIGN K_DATA t=K_WRAPPER
  | K_PROCEDURAL t=K_LANGUAGE
  | m=K_EVENT t=K_TRIGGER
  | m=K_ACCESS t=K_METHOD
  | m=K_TEXT K_SEARCH t=(K_PARSER | K_DICTIONARY | K_TEMPLATE | K_CONFIGURATION)
  ;

functionSignature: n=anyFuncName (LPAREN (star=STAR | (a+=functionArgument (COMMA a+=functionArgument)*)? (K_ORDER K_BY functionArgument (COMMA functionArgument)*)?) RPAREN)?;

truncate: K_TRUNCATE K_TABLE? rels+=relationName (COMMA rels+=relationName)* (seq=(K_RESTART | K_CONTINUE) K_IDENTITY)? beh=(K_CASCADE | K_RESTRICT)?;

grantStatement
  : w=K_GRANT p=privileges K_ON t=privilegeTarget K_TO g=granteeList (K_WITH K_GRANT K_OPTION)? grantedBy?
  | w=K_GRANT roles=privilegeList K_TO g=granteeList (K_WITH (K_ADMIN | colId) (K_OPTION | K_TRUE | K_FALSE))? grantedBy?
  | w=K_REVOKE (K_GRANT K_OPTION K_FOR)? p=privileges K_ON t=privilegeTarget K_FROM g=granteeList grantedBy? beh=(K_CASCADE | K_RESTRICT)?
  | w=K_REVOKE (K_ADMIN K_OPTION K_FOR)? roles=privilegeList K_FROM g=granteeList grantedBy? beh=(K_CASCADE | K_RESTRICT)?
  ;

grantedBy: K_GRANTED K_BY roleName;

granteeList: g+=grantee (COMMA g+=grantee)*;

grantee: K_GROUP? r=roleName;

privileges: all=K_ALL K_PRIVILEGES? (LPAREN nameList RPAREN)? | list=privilegeList;

privilegeList: p+=privilege (COMMA p+=privilege)*;

privilege
  : (w=(K_SELECT | K_REFERENCES | K_CREATE) | n=colId) (LPAREN cols=nameList RPAREN)?
  | K_ALTER K_SYSTEM
  ;

privilegeTarget
  : K_TABLE? tables=anyNameList
  | w=K_SEQUENCE tables=anyNameList
  | w=(K_FUNCTION | K_PROCEDURE | K_ROUTINE) f+=functionSignature (COMMA f+=functionSignature)*
  | w=(K_DATABASE | K_LANGUAGE | K_SCHEMA | K_TABLESPACE) names=nameList
  | w=(K_DOMAIN | K_TYPE) tables=anyNameList
  | w=K_FOREIGN (K_DATA K_WRAPPER | K_SERVER) names=nameList
  | w=K_LARGE K_OBJECT ICONST (COMMA ICONST)*
  | w=K_PARAMETER anyName (COMMA anyName)*
  | w=K_ALL (K_TABLES | K_SEQUENCES | K_FUNCTIONS | K_PROCEDURES | K_ROUTINES) K_IN K_SCHEMA names=nameList
  ;

commentStatement
  : K_COMMENT K_ON
    ( w=(K_COLUMN | K_TABLE | K_VIEW | K_INDEX | K_SEQUENCE | K_COLLATION | K_CONVERSION | K_STATISTICS) n=anyName
    | K_MATERIALIZED w=K_VIEW n=anyName
    | K_FOREIGN w=K_TABLE n=anyName
    | w=(K_DATABASE | K_SCHEMA | K_ROLE | K_EXTENSION | K_PUBLICATION | K_SUBSCRIPTION | K_TABLESPACE | K_SERVER | K_LANGUAGE) n=anyName
    | w=(K_TYPE | K_DOMAIN) ty=typeName
    | w=(K_FUNCTION | K_PROCEDURE | K_ROUTINE | K_AGGREGATE) f=functionSignature
    | w=(K_TRIGGER | K_RULE | K_POLICY) on=colId K_ON n=anyName
    | w=K_CONSTRAINT on=colId K_ON K_DOMAIN? n=anyName
    | w=(K_ACCESS | K_CAST | K_EVENT | K_LARGE | K_OPERATOR | K_PROCEDURAL | K_TEXT | K_TRANSFORM | K_FOREIGN) (colLabel | LPAREN | RPAREN | COMMA | DOT | ICONST | OP | operatorSymbol)+
    ) K_IS (str=SCONST | nul=K_NULL)
  ;
