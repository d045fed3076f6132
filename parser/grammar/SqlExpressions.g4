// Expressions, types and names. The order of the alternatives of `expr` is PostgreSQL's table of precedences, tightest
// first. Operators that PostgreSQL does not let chain (a < b < c) are checked when the tree is read.
parser grammar SqlExpressions;

expr
  : p=primary
  | l=expr op=TYPECAST ty=typeName
  | op=(PLUS | MINUS) r=expr
  | l=expr op=K_COLLATE coll=anyName
  | l=expr op=K_AT K_TIME K_ZONE r=expr
  | l=expr op=CARET r=expr
  | l=expr op=(STAR | SLASH | PERCENT) r=expr
  | l=expr op=(PLUS | MINUS) r=expr
  | q=qualifiedOp r=expr
  | l=expr q=qualifiedOp r=expr
  | l=expr (op=OP_ANY | op=OPERATOR_ANY LPAREN on=operatorName RPAREN) qf=quantified
  | l=expr op=K_ESCAPE r=expr
  | l=expr neg=NOT_LA? op=K_IN il=inList
  | l=expr neg=NOT_LA? op=K_BETWEEN sym=(K_SYMMETRIC | K_ASYMMETRIC)? low=bexpr K_AND r=expr
  | l=expr neg=NOT_LA? op=K_SIMILAR K_TO r=expr
  | l=expr neg=NOT_LA? op=(K_LIKE | K_ILIKE) r=expr
  | l=expr neg=NOT_LA? op=LIKE_ANY qf=quantified
  | l=expr op=(LT | GT | EQ | LESS_EQUALS | GREATER_EQUALS | NOT_EQUALS) r=expr
  | l=expr op=CMP_ANY qf=quantified
  | l=expr op=K_IS neg=K_NOT? K_DISTINCT K_FROM r=expr
  | l=expr op=K_IS neg=K_NOT? what=(K_NULL | K_TRUE | K_FALSE | K_UNKNOWN | K_DOCUMENT)
  | l=expr op=K_IS neg=K_NOT? form=(K_NFC | K_NFD | K_NFKC | K_NFKD)? what=K_NORMALIZED
  | l=expr op=(K_ISNULL | K_NOTNULL)
  | op=K_NOT r=expr
  | l=expr op=K_AND r=expr
  | l=expr op=K_OR r=expr
  | op=K_DEFAULT
  ;

// What may stand where AND, IN, LIKE or IS NULL would be ambiguous: the lower bound of BETWEEN, a column's default.
bexpr
  : p=primary
  | l=bexpr op=TYPECAST ty=typeName
  | op=(PLUS | MINUS) r=bexpr
  | l=bexpr op=CARET r=bexpr
  | l=bexpr op=(STAR | SLASH | PERCENT) r=bexpr
  | l=bexpr op=(PLUS | MINUS) r=bexpr
  | q=qualifiedOp r=bexpr
  | l=bexpr q=qualifiedOp r=bexpr
  | l=bexpr op=(LT | GT | EQ | LESS_EQUALS | GREATER_EQUALS | NOT_EQUALS) r=bexpr
  | l=bexpr op=K_IS neg=K_NOT? K_DISTINCT K_FROM r=bexpr
  | l=bexpr op=K_IS neg=K_NOT? what=K_DOCUMENT
  ;

qualifiedOp: op=OP | OPERATOR_OP LPAREN on=operatorName RPAREN;

operatorName: (schema+=colId DOT)* op=operatorSymbol;

operatorSymbol
  : t=(OP | PLUS | MINUS | STAR | SLASH | PERCENT | CARET | LT | GT | EQ | LESS_EQUALS | GREATER_EQUALS | NOT_EQUALS)
  ;

// Behind `operator ANY`: a subquery, or an expression that is an array.
quantified
  : w=(K_ANY | K_SOME | K_ALL) (sub=subquery | wsub=wrappedSubquery | LPAREN e=expr RPAREN)
  ;

inList: sub=subquery | wsub=wrappedSubquery | LPAREN items=exprList RPAREN;

exprList: e+=expr (COMMA e+=expr)*;

primary
  : lit=(ICONST | FCONST | SCONST | BCONST | XCONST | K_TRUE | K_FALSE | K_NULL)
  | prm=PARAM ind+=indirection*
  | n=plainName ind+=indirection* (call=callArguments sfx=callSuffix | str=SCONST)?
  | cn=colNameKw (ind+=indirection+ (call=callArguments sfx=callSuffix | str=SCONST)?)?
  | fn=typeFuncKw (call=callArguments sfx=callSuffix | str=SCONST)
  | tl=typedLiteral
  | sub=subquery ind+=indirection*
  | lp=(LPAREN | LPAREN_WRAP) items=exprList rp=RPAREN (ind+=indirection* | ov=K_OVERLAPS over=rowValue)
  | row=K_ROW LPAREN items=exprList? RPAREN (ov=K_OVERLAPS over=rowValue)?
  | cas=K_CASE arg=expr? arms+=caseArm+ (K_ELSE other=expr)? K_END
  | ex=K_EXISTS (sub=subquery | wsub=wrappedSubquery)
  | ar=K_ARRAY (sub=subquery | wsub=wrappedSubquery | al=arrayLiteral)
  | un=K_UNIQUE (sub=subquery | wsub=wrappedSubquery)
  | gr=K_GROUPING LPAREN items=exprList RPAREN
  | cf=commonFunction
  ;

subquery: LPAREN_SELECT b=query RPAREN;

// A subquery in more parentheses than one.
wrappedSubquery: LPAREN_WRAP (sub=subquery | wsub=wrappedSubquery) RPAREN;

anySubquery: sub=subquery | wsub=wrappedSubquery;

rowValue: LPAREN items=exprList rp=RPAREN | row=K_ROW LPAREN items=exprList? RPAREN;

arrayLiteral: LBRACKET (items=exprList | rows+=arrayLiteral (COMMA rows+=arrayLiteral)*)? RBRACKET;

caseArm: K_WHEN cond=expr K_THEN res=expr;

indirection
  : DOT (field=colLabel | star=STAR)
  | LBRACKET low=expr? (colon=COLON high=expr?)? close=RBRACKET
  ;

callArguments
  : (LPAREN | LPAREN_WRAP)
    ( star=STAR
    | uniq=(K_ALL | K_DISTINCT)? args+=argument (COMMA args+=argument)* (COMMA va=K_VARIADIC vararg=argument)? ord=orderBy?
    | va=K_VARIADIC vararg=argument ord=orderBy?
    )? RPAREN
  ;

// `within` is also reached by a typed literal with modifiers: name(1, 2) 'text'.
callSuffix
  : str=SCONST
  | (K_WITHIN K_GROUP LPAREN within=orderBy RPAREN)? (K_FILTER LPAREN K_WHERE filt=expr RPAREN)?
    (over=K_OVER (wname=colId | wspec=windowSpec))?
  ;

argument: an=typeFuncName arrow=(COLON_EQUALS | EQUALS_GREATER) e=expr | e=expr;

windowSpec
  : LPAREN (K_PARTITION K_BY part=exprList ord=orderBy? frame=frameClause?
           | ord=orderBy frame=frameClause?
           | frame=frameClause
           | base=colId (K_PARTITION K_BY part=exprList)? ord=orderBy? frame=frameClause?)? RPAREN
  ;

frameClause
  : md=(K_RANGE | K_ROWS | K_GROUPS) (K_BETWEEN b=frameBound K_AND e=frameBound | b=frameBound)
    (K_EXCLUDE (ex=K_CURRENT K_ROW | ex=K_GROUP | ex=K_TIES | ex=K_NO K_OTHERS))?
  ;

frameBound
  : w=K_UNBOUNDED dir=(K_PRECEDING | K_FOLLOWING)
  | w=K_CURRENT K_ROW
  | e=expr dir=(K_PRECEDING | K_FOLLOWING)
  ;

commonFunction
  : w=K_COLLATION K_FOR LPAREN a=expr RPAREN
  | w=(K_CURRENT_DATE | K_CURRENT_ROLE | K_CURRENT_USER | K_SESSION_USER | K_USER | K_CURRENT_CATALOG | K_CURRENT_SCHEMA)
  | w=(K_CURRENT_TIME | K_CURRENT_TIMESTAMP | K_LOCALTIME | K_LOCALTIMESTAMP) (LPAREN num=ICONST RPAREN)?
  | w=K_CAST lparen a=expr K_AS ty=typeName RPAREN
  | w=K_EXTRACT LPAREN (field=extractField K_FROM a=expr)? RPAREN
  | w=K_NORMALIZE lparen a=expr (COMMA form=(K_NFC | K_NFD | K_NFKC | K_NFKD))? RPAREN
  | w=K_OVERLAY lparen (args+=argument (K_PLACING b=expr K_FROM c=expr (K_FOR d=expr)? | (COMMA args+=argument)*))? RPAREN
  | w=K_POSITION lparen ba=bexpr K_IN bb=bexpr RPAREN
  | w=K_SUBSTRING lparen
      ( args+=argument ( K_FROM b=expr (K_FOR c=expr)?
                       | K_FOR c=expr (K_FROM b=expr)?
                       | sim=K_SIMILAR b=expr
                       | (COMMA args+=argument)* ) )? RPAREN
  | w=K_TREAT lparen a=expr K_AS ty=typeName RPAREN
  | w=K_TRIM lparen side=(K_BOTH | K_LEADING | K_TRAILING)?
      (a=expr (K_FROM items=exprList | (COMMA more+=expr)*) | K_FROM items=exprList) RPAREN
  | w=K_NULLIF lparen a=expr COMMA b=expr RPAREN
  | w=(K_COALESCE | K_GREATEST | K_LEAST | K_XMLCONCAT) lparen items=exprList RPAREN
  | w=K_XMLELEMENT LPAREN K_NAME lab=colLabel (COMMA K_XMLATTRIBUTES lparen xml+=xmlAttribute (COMMA xml+=xmlAttribute)* RPAREN)?
      (COMMA items=exprList)? RPAREN
  | w=K_XMLEXISTS lparen pa=primary pass=xmlPassing RPAREN
  | w=K_XMLFOREST lparen xml+=xmlAttribute (COMMA xml+=xmlAttribute)* RPAREN
  | w=K_XMLPARSE LPAREN kind=(K_DOCUMENT | K_CONTENT) a=expr ((K_PRESERVE | K_STRIP) K_WHITESPACE)? RPAREN
  | w=K_XMLPI LPAREN K_NAME lab=colLabel (COMMA a=expr)? RPAREN
  | w=K_XMLROOT lparen a=expr COMMA K_VERSION (b=expr | K_NO K_VALUE)
      (COMMA K_STANDALONE (K_YES | K_NO K_VALUE?))? RPAREN
  | w=K_XMLSERIALIZE LPAREN kind=(K_DOCUMENT | K_CONTENT) a=expr K_AS sty=simpleType RPAREN
  ;

// An opening parenthesis before an expression that may itself be a subquery.
lparen: LPAREN | LPAREN_WRAP;

extractField: t=(IDENT | SCONST | K_YEAR | K_MONTH | K_DAY | K_HOUR | K_MINUTE | K_SECOND);

xmlAttribute: e=expr (K_AS lab=colLabel)?;

xmlPassing: K_PASSING (K_BY (K_REF | K_VALUE))? e=primary (K_BY (K_REF | K_VALUE))?;

// A literal behind the name of one of the types that are keywords.
typedLiteral
  : iv=K_INTERVAL (LPAREN num=ICONST RPAREN str=SCONST | str=SCONST fields=intervalFields?)
  | ty=constantType str=SCONST
  ;

constantType
  : n=(K_INT | K_INTEGER | K_SMALLINT | K_BIGINT | K_REAL | K_BOOLEAN)
  | n=K_FLOAT (LPAREN len=ICONST RPAREN)?
  | n=K_DOUBLE K_PRECISION
  | n=(K_DECIMAL | K_DEC | K_NUMERIC) mods=typeModifiers?
  | n=K_BIT var=K_VARYING? mods=typeModifiers?
  | nat=K_NATIONAL? n=(K_CHARACTER | K_CHAR) var=K_VARYING? (LPAREN len=ICONST RPAREN)?
  | n=K_NCHAR var=K_VARYING? (LPAREN len=ICONST RPAREN)?
  | n=K_VARCHAR (LPAREN len=ICONST RPAREN)?
  | n=(K_TIMESTAMP | K_TIME) (LPAREN len=ICONST RPAREN)? (zone=WITH_LA K_TIME K_ZONE | zone=K_WITHOUT K_TIME K_ZONE)?
  ;

typeModifiers: LPAREN items=exprList RPAREN;

typeName: setof=K_SETOF? st=simpleType (dims+=arrayDimension* | ar=K_ARRAY (LBRACKET ICONST RBRACKET)?);

arrayDimension: LBRACKET ICONST? RBRACKET;

simpleType
  : ct=constantType
  | iv=K_INTERVAL (LPAREN num=ICONST RPAREN | fields=intervalFields?)
  | n=typeFuncName (DOT attrs+=colLabel)* mods=typeModifiers?
  ;

// A column's or argument's type, which may be that of another column: t.c%TYPE.
funcType: ty=typeName | setof=K_SETOF? n=typeFuncName (DOT attrs+=colLabel)+ PERCENT K_TYPE;

intervalFields
  : K_YEAR (K_TO K_MONTH)?
  | K_MONTH
  | K_DAY (K_TO (K_HOUR | K_MINUTE | K_SECOND (LPAREN num=ICONST RPAREN)?))?
  | K_HOUR (K_TO (K_MINUTE | K_SECOND (LPAREN num=ICONST RPAREN)?))?
  | K_MINUTE (K_TO K_SECOND (LPAREN num=ICONST RPAREN)?)?
  | K_SECOND (LPAREN num=ICONST RPAREN)?
  ;

anyName: n=colId (DOT attrs+=colLabel)*;

nameList: n+=colId (COMMA n+=colId)*;

anyNameList: n+=anyName (COMMA n+=anyName)*;
