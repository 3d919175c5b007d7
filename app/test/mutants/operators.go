package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// boundaries, flips and sums say what an operator becomes.
var (
	boundaries = map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	}
	flips = map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	}
	sums = map[token.Token]token.Token{
		token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
		token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.INC: token.DEC, token.DEC: token.INC,
	}
)

// in finds the mutants of a function's body. Those of a function literal are found
// with its own type, because what it returns is its own.
func (f *finder) in(fn *ast.FuncType, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.in(n.Type, n.Body)
			return false
		case *ast.IfStmt:
			f.condition(n)
		case *ast.ReturnStmt:
			f.returned(fn, n)
			return !besideError(n)
		case *ast.ExprStmt:
			f.statement(n)
		case *ast.BinaryExpr:
			f.binary(n)
			return !isDuration(n)
		case *ast.IncDecStmt:
			f.replace("arithmetic", n.TokPos, n.End(), sums[n.Tok].String())
		case *ast.AssignStmt:
			if to, ok := sums[n.Tok]; ok && !isText(n.Rhs[0]) {
				f.replace("arithmetic", n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), to.String())
			}
		case *ast.BasicLit:
			f.constant(n)
		case *ast.Ident:
			f.boolean(n)
		case *ast.CallExpr:
			return !isMake(n)
		}
		return true
	})
}

// condition swallows the error that an if statement looks at, drops the call that
// gave it, or negates any other condition.
func (f *finder) condition(n *ast.IfStmt) {
	if !isErrorCheck(n.Cond) {
		f.replace("negate", n.Cond.Pos(), n.Cond.End(), "!("+f.text(n.Cond)+")")
		return
	}
	f.replace("swallow", n.Body.Pos(), n.Body.End(), "{}")
	if n.Init != nil && n.Else == nil {
		f.replace("drop", n.Pos(), n.End(), "")
	}
}

// returned gives nil in place of the only error that a function returns.
func (f *finder) returned(fn *ast.FuncType, n *ast.ReturnStmt) {
	if fn.Results == nil || len(fn.Results.List) != 1 || len(fn.Results.List[0].Names) > 1 || len(n.Results) != 1 {
		return
	}
	if t, ok := fn.Results.List[0].Type.(*ast.Ident); !ok || t.Name != "error" {
		return
	}
	if _, ok := n.Results[0].(*ast.CallExpr); ok {
		f.replace("swallow", n.Results[0].Pos(), n.Results[0].End(), "nil")
	}
}

// statement drops a call. What a program logs is not its behaviour here.
func (f *finder) statement(n *ast.ExprStmt) {
	call, ok := n.X.(*ast.CallExpr)
	if !ok {
		return
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Msg" || s.Sel.Name == "Msgf" || s.Sel.Name == "Send") {
		return
	}
	f.replace("drop", n.Pos(), n.End(), "")
}

func (f *finder) binary(n *ast.BinaryExpr) {
	end := n.OpPos + token.Pos(len(n.Op.String()))
	if to, ok := boundaries[n.Op]; ok {
		f.replace("boundary", n.OpPos, end, to.String())
	}
	if to, ok := flips[n.Op]; ok && !isErrorCheck(n) {
		f.replace("flip", n.OpPos, end, to.String())
	}
	if to, ok := sums[n.Op]; ok && !isText(n.X) && !isText(n.Y) {
		f.replace("arithmetic", n.OpPos, end, to.String())
	}
}

// constant adds one to a whole number. Octal ones are modes of files.
func (f *finder) constant(n *ast.BasicLit) {
	if n.Kind != token.INT || strings.HasPrefix(n.Value, "0") && len(n.Value) > 1 {
		return
	}
	if v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64); err == nil {
		f.replace("constant", n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
	}
}

func (f *finder) boolean(n *ast.Ident) {
	switch n.Name {
	case "true":
		f.replace("boolean", n.Pos(), n.End(), "false")
	case "false":
		f.replace("boolean", n.Pos(), n.End(), "true")
	}
}

func (f *finder) text(n ast.Node) string {
	return string(f.src[f.file.Offset(n.Pos()):f.file.Offset(n.End())])
}

// isErrorCheck reports whether an expression compares an error with nil.
func isErrorCheck(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ && b.Op != token.EQL {
		return false
	}
	left, ok := b.X.(*ast.Ident)
	right, isIdent := b.Y.(*ast.Ident)
	return ok && isIdent && right.Name == "nil" && strings.HasSuffix(strings.ToLower(left.Name), "err")
}

// isText reports whether an expression has a string literal at one of its ends.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return isText(e.X) || isText(e.Y)
	}
	return false
}

// besideError reports whether a statement returns values beside an error: nobody
// reads them.
func besideError(n *ast.ReturnStmt) bool {
	if len(n.Results) < 2 {
		return false
	}
	switch last := n.Results[len(n.Results)-1].(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(last.Name), "err")
	case *ast.CallExpr:
		made, ok := last.Fun.(*ast.SelectorExpr)
		return ok && (made.Sel.Name == "Errorf" || made.Sel.Name == "New")
	}
	return false
}

// isDuration reports whether an expression is a number of seconds, minutes or so
// on: a little more of them is no mistake.
func isDuration(n *ast.BinaryExpr) bool {
	_, isNumber := n.X.(*ast.BasicLit)
	unit, ok := n.Y.(*ast.SelectorExpr)
	if !ok || n.Op != token.MUL || !isNumber {
		return false
	}
	from, ok := unit.X.(*ast.Ident)
	return ok && from.Name == "time"
}

// isMake reports whether a call makes a value: other sizes change only its cost.
func isMake(n *ast.CallExpr) bool {
	name, ok := n.Fun.(*ast.Ident)
	return ok && name.Name == "make"
}
