package formula

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxText bounds a formula, and so how deep it is nested.
const maxText = 1000

// token is a number, a name such as settings.steps, or a sign.
var token = regexp.MustCompile(`^(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)?|[-+*/^(),])`)

// Parse reads a formula: numbers, settings.NAME, files.NAME, + - * / ^, parentheses
// and functions. A name may contain "-", so a minus behind one has a space before it.
func Parse(text string) (*Formula, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it has %d bytes; it may have %d", len(text), maxText)
	}
	p := &parser{formula: &Formula{Text: text}}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		t := token.FindString(rest)
		if t == "" {
			return nil, fmt.Errorf("it can't be read from %q on", rest)
		}
		p.tokens = append(p.tokens, t)
		rest = rest[len(t):]
	}
	value, err := p.sum()
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("%q is not expected there", p.tokens[0])
	}
	p.formula.value = value
	return p.formula, err
}

// parser reads a formula by recursive descent.
type parser struct {
	tokens  []string // not read yet
	formula *Formula
}

var errEnd = errors.New("it ends too early")

// take reads the next token if it is one of these.
func (p *parser) take(signs ...string) (string, bool) {
	if len(p.tokens) == 0 || !slices.Contains(signs, p.tokens[0]) {
		return "", false
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t, true
}

func (p *parser) sum() (term, error) { return p.chain(p.product, "+", "-") }

func (p *parser) product() (term, error) { return p.chain(p.power, "*", "/") }

// chain reads operands with operators between them, from left to right.
func (p *parser) chain(operand func() (term, error), operators ...string) (term, error) {
	left, err := operand()
	for err == nil {
		operator, ok := p.take(operators...)
		if !ok {
			break
		}
		var right term
		right, err = operand()
		left = combine(operator, left, right)
	}
	return left, err
}

// power reads a base with an exponent, which may have one itself.
func (p *parser) power() (term, error) {
	base, err := p.operand()
	if err != nil {
		return nil, err
	}
	if _, ok := p.take("^"); !ok {
		return base, nil
	}
	exponent, err := p.power()
	return combine("^", base, exponent), err
}

func combine(operator string, a, b term) term {
	switch operator {
	case "+":
		return func(j *Job) float64 { return a(j) + b(j) }
	case "-":
		return func(j *Job) float64 { return a(j) - b(j) }
	case "*":
		return func(j *Job) float64 { return a(j) * b(j) }
	case "/":
		return func(j *Job) float64 { return a(j) / b(j) }
	}
	return func(j *Job) float64 { return math.Pow(a(j), b(j)) }
}

// operand reads a number, a name, a function or a formula in parentheses.
func (p *parser) operand() (term, error) {
	if len(p.tokens) == 0 {
		return nil, errEnd
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	kind, name, dotted := strings.Cut(t, ".")
	switch {
	case t == "(":
		inner, err := p.sum()
		return inner, p.closing(err)
	case t[0] >= '0' && t[0] <= '9':
		n, err := strconv.ParseFloat(t, 64)
		return func(*Job) float64 { return n }, err
	case dotted && (kind == "settings" || kind == "files"):
		return p.use(Use{Kind: kind, Name: name}), nil
	case t == "length" || t == "count":
		return p.measure(t)
	case functions[t] != nil:
		return p.call(functions[t])
	}
	return nil, fmt.Errorf("%q is no number, settings.NAME or files.NAME, nor one of the functions count, length, %s",
		t, strings.Join(slices.Sorted(maps.Keys(functions)), ", "))
}

func (p *parser) use(u Use) term {
	p.formula.Uses = append(p.formula.Uses, u)
	return u.value()
}

// measure reads the argument of length or count.
func (p *parser) measure(function string) (term, error) {
	_, opened := p.take("(")
	if !opened || len(p.tokens) == 0 || !strings.HasPrefix(p.tokens[0], "settings.") {
		return nil, fmt.Errorf("%s takes one setting: %s(settings.NAME)", function, function)
	}
	u := Use{Kind: "settings", Name: strings.TrimPrefix(p.tokens[0], "settings."), As: function}
	p.tokens = p.tokens[1:]
	return p.use(u), p.closing(nil)
}

// call reads the arguments of a function.
func (p *parser) call(function func([]float64) float64) (term, error) {
	if _, ok := p.take("("); !ok {
		return nil, errors.New("a function needs its arguments in parentheses")
	}
	var terms []term
	for {
		t, err := p.sum()
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
		if _, more := p.take(","); !more {
			break
		}
	}
	value := func(j *Job) float64 {
		all := make([]float64, len(terms))
		for i, t := range terms {
			all[i] = t(j)
		}
		return function(all)
	}
	return value, p.closing(nil)
}

// closing reads the parenthesis behind something that was read with that error.
func (p *parser) closing(err error) error {
	if err != nil {
		return err
	}
	if _, ok := p.take(")"); ok {
		return nil
	}
	if len(p.tokens) == 0 {
		return errEnd
	}
	return fmt.Errorf("%q is not expected there", p.tokens[0])
}
