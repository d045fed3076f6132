// SELECT and what belongs to it, and the statements that write rows.
parser grammar SqlQueries;

// A query that may stand in a CTE, behind PREPARE, EXPLAIN or COPY.
preparable: w=withClause? (q=queryBody | ins=insertBody | upd=updateBody | del=deleteBody | mrg=mergeBody);

query: w=withClause? q=queryBody;

queryBody: s=setExpr ord=orderBy? (lim=limitClause lock=lockingClause? | lock=lockingClause lim=limitClause?)?;

setExpr: t+=setTerm (op+=(K_UNION | K_EXCEPT) q+=setQuantifier t+=setTerm)*;

setTerm: t+=setPrimary (op+=K_INTERSECT q+=setQuantifier t+=setPrimary)*;

setQuantifier: w=(K_ALL | K_DISTINCT)?;

setPrimary
  : sel=K_SELECT (dist=distinctClause tl=targetList | K_ALL? tl=targetList?) into=intoClause? fc=fromClause? wh=whereClause?
    gc=groupClause? hc=havingClause? wc=windowClause?
  | vals=valuesClause
  | tab=K_TABLE rel=relationName
  | sub=anySubquery
  ;

distinctClause: K_DISTINCT (on=K_ON lparen items=exprList RPAREN)?;

targetList: t+=target (COMMA t+=target)*;

target: e=expr (K_AS lab=colLabel | bare=bareLabel)? | star=STAR;

intoClause: K_INTO (kind=(K_TEMPORARY | K_TEMP | K_UNLOGGED) | (K_LOCAL | K_GLOBAL) kind=(K_TEMPORARY | K_TEMP))? K_TABLE? n=anyName;

valuesClause: K_VALUES rows+=valuesRow (COMMA rows+=valuesRow)*;

valuesRow: (LPAREN | LPAREN_WRAP) items=exprList RPAREN;

whereClause: K_WHERE e=expr;

havingClause: K_HAVING e=expr;

groupClause: K_GROUP K_BY uniq=(K_ALL | K_DISTINCT)? items+=groupItem (COMMA items+=groupItem)*;

groupItem
  : empty=LPAREN RPAREN
  | kind=(K_CUBE | K_ROLLUP) lparen e=exprList RPAREN
  | kind=K_GROUPING K_SETS LPAREN sets+=groupItem (COMMA sets+=groupItem)* RPAREN
  | one=expr
  ;

windowClause: K_WINDOW w+=windowDefinition (COMMA w+=windowDefinition)*;

windowDefinition: n=colId K_AS s=windowSpec;

orderBy: K_ORDER K_BY s+=sortItem (COMMA s+=sortItem)*;

sortItem
  : e=expr (dir=(K_ASC | K_DESC) | K_USING (us=operatorSymbol | OPERATOR_OP LPAREN uq=operatorName RPAREN))?
    (NULLS_LA nul=(K_FIRST | K_LAST))?
  ;

limitClause: l+=limitItem+;

limitItem
  : kind=K_LIMIT (e=expr | all=K_ALL) (comma=COMMA expr)?
  | kind=K_OFFSET e=expr (K_ROW | K_ROWS)?
  | kind=K_FETCH (K_FIRST | K_NEXT) (p=primary | sign=(PLUS | MINUS) num=(ICONST | FCONST))? (K_ROW | K_ROWS)
    (K_ONLY | ties=K_WITH K_TIES)
  ;

lockingClause: l+=lockingItem+ | K_FOR K_READ ro=K_ONLY;

lockingItem
  : K_FOR (w=K_UPDATE | no=K_NO K_KEY w=K_UPDATE | w=K_SHARE | key=K_KEY w=K_SHARE)
    (K_OF n+=relationName (COMMA n+=relationName)*)? (wait=K_NOWAIT | wait=K_SKIP K_LOCKED)?
  ;

withClause: (K_WITH rec=K_RECURSIVE? | WITH_LA) c+=commonTable (COMMA c+=commonTable)*;

commonTable
  : n=colId (LPAREN cols=nameList RPAREN)? K_AS (no=K_NOT? mat=K_MATERIALIZED)?
    (LPAREN b=preparable RPAREN | LPAREN_SELECT b=preparable RPAREN | ws=wrappedSubquery)
    se=searchClause? cy=cycleClause?
  ;

searchClause: K_SEARCH w=(K_DEPTH | K_BREADTH) K_FIRST K_BY cols=nameList K_SET n=colId;

cycleClause: K_CYCLE cols=nameList K_SET mark=colId (K_TO v=primary K_DEFAULT d=primary)? K_USING n=colId;

fromClause: K_FROM f+=fromItem (COMMA f+=fromItem)*;

fromItem: f=fromPrimary j+=joinTail*;

joinTail
  : w=K_CROSS K_JOIN f=fromPrimary
  | w=K_NATURAL jt=joinType? K_JOIN f=fromPrimary
  | jt=joinType? w=K_JOIN i=fromItem (K_USING LPAREN cols=nameList RPAREN (K_AS al=colId)? | K_ON e=expr)
  ;

joinType: t=(K_FULL | K_LEFT | K_RIGHT) K_OUTER? | t=K_INNER;

fromPrimary
  : lat=K_LATERAL? sub=anySubquery a=tableAlias?
  | LPAREN inner=fromItem rp=RPAREN a=tableAlias?
  | lat=K_LATERAL? fn=fromFunction (WITH_LA ordi=K_ORDINALITY)? fa=functionAlias?
  | lat=K_LATERAL? xml=xmlTable a=tableAlias?
  | only=K_ONLY (LPAREN on=anyName RPAREN | on=anyName) a=tableAlias? ts=tableSample?
  | tn=anyName star=STAR? a=tableAlias? ts=tableSample?
  ;

fromFunction
  : K_ROWS K_FROM LPAREN rows+=rowsFromItem (COMMA rows+=rowsFromItem)* RPAREN
  | call=windowlessCall
  ;

windowlessCall
  : (n=colId (DOT attrs+=colLabel)* | fn=typeFuncKw) args=callArguments sfx=callSuffix
  | cf=commonFunction
  ;

rowsFromItem: call=windowlessCall (K_AS LPAREN defs+=columnAlias (COMMA defs+=columnAlias)* RPAREN)?;

tableAlias: as=K_AS? n=colId (LPAREN cols=nameList RPAREN)?;

functionAlias
  : as=K_AS LPAREN defs+=columnAlias (COMMA defs+=columnAlias)* RPAREN
  | as=K_AS? n=colId (LPAREN cols=nameList RPAREN | LPAREN defs+=columnAlias (COMMA defs+=columnAlias)* RPAREN)?
  ;

columnAlias: n=colId ty=typeName (K_COLLATE coll=anyName)?;

tableSample: K_TABLESAMPLE n=anyFuncName LPAREN items=exprList RPAREN (K_REPEATABLE LPAREN rep=expr RPAREN)?;

anyFuncName: n=colId (DOT attrs+=colLabel)* | fn=typeFuncKw;

xmlTable
  : K_XMLTABLE LPAREN (K_XMLNAMESPACES LPAREN ns+=xmlNamespace (COMMA ns+=xmlNamespace)* RPAREN COMMA)?
    p=primary pass=xmlPassing K_COLUMNS cols+=xmlColumn (COMMA cols+=xmlColumn)* RPAREN
  ;

xmlNamespace: e=bexpr K_AS n=colLabel | K_DEFAULT e=bexpr;

xmlColumn: n=colId (K_FOR K_ORDINALITY | ty=typeName (IDENT bexpr | K_DEFAULT bexpr | K_NOT K_NULL | K_NULL)*);

relationName: only=K_ONLY (LPAREN n=anyName RPAREN | n=anyName) | n=anyName star=STAR?;

insertBody
  : K_INSERT K_INTO rel=anyName (K_AS al=colId)?
    ( K_DEFAULT dv=K_VALUES
    | (lp=LPAREN cols+=assignTarget (COMMA cols+=assignTarget)* rp=RPAREN)? (K_OVERRIDING over=(K_USER | K_SYSTEM) K_VALUE)? q=query)
    oc=onConflict? ret=returning?
  ;

assignTarget: n=colId ind+=indirection*;

onConflict
  : K_ON K_CONFLICT (lparen p+=indexElement (COMMA p+=indexElement)* RPAREN wh=whereClause? | K_ON K_CONSTRAINT cn=colId)?
    K_DO (upd=K_UPDATE K_SET s=setClauses dw=whereClause? | K_NOTHING)
  ;

returning: K_RETURNING t=targetList;

updateBody
  : K_UPDATE rel=relationName (al=colIdNotSet | K_AS al2=colId)? K_SET s=setClauses fc=fromClause?
    wh=whereOrCurrent? ret=returning?
  ;

setClauses: s+=setClause (COMMA s+=setClause)*;

setClause
  : t+=assignTarget EQ e=expr
  | many=LPAREN t+=assignTarget (COMMA t+=assignTarget)* RPAREN EQ e=expr
  ;

whereOrCurrent: K_WHERE (K_CURRENT K_OF cursor=colId | e=expr);

deleteBody
  : K_DELETE K_FROM rel=relationName (al=colIdNotSet | K_AS al2=colId)? (us=K_USING u+=fromItem (COMMA u+=fromItem)*)?
    wh=whereOrCurrent? ret=returning?
  ;

mergeBody
  : K_MERGE K_INTO rel=relationName (al=colIdNotSet | K_AS al2=colId)? K_USING src=fromItem K_ON e=expr w+=mergeWhen+
  ;

mergeWhen
  : K_WHEN no=K_NOT? K_MATCHED (K_AND cond=expr)? K_THEN
    ( upd=K_UPDATE K_SET s=setClauses
    | del=K_DELETE
    | ins=K_INSERT (LPAREN cols+=assignTarget (COMMA cols+=assignTarget)* RPAREN)? (K_OVERRIDING over=(K_USER | K_SYSTEM) K_VALUE)?
      (K_VALUES lparen items=exprList RPAREN | K_DEFAULT dv=K_VALUES)
    | K_DO K_NOTHING)
  ;
