package input

import (
	"fmt"
	"math"
	"strconv"
)

// Limit is a numeric setting with its default and bounds.
type Limit struct {
	Key                string
	Default, Low, High float64
	Unit               string
	Advice             func(l Limit, value float64) string // advice on an out-of-range value; can be nil
}

// celsius advises on a temperature that was probably given in degrees Celsius.
func celsius(l Limit, value float64) string {
	return l.Suggest(value+273.15, Plain(value)+" °C is %s K")
}

// millimolar advises on a concentration that was probably given in mmol/L.
func millimolar(l Limit, value float64) string {
	return l.Suggest(value/1000, Plain(value)+" mmol/L is %s mol/L")
}

// percent advises on a fraction that was probably given in percent.
func percent(l Limit, value float64) string {
	return l.Suggest(value/100, Plain(value)+" %% is %s")
}

// Suggest formats the value that was probably meant. It returns "" if that value is also
// out of bounds.
func (l Limit) Suggest(value float64, format string) string {
	if value < l.Low || value > l.High {
		return ""
	}
	return fmt.Sprintf(format, Plain(math.Round(value*1e6)/1e6))
}

// adviceOn returns the advice on an out-of-range value, in parentheses, or "".
func (l Limit) adviceOn(value float64) string {
	if l.Advice == nil {
		return ""
	}
	if advice := l.Advice(l, value); advice != "" {
		return " (" + advice + ")"
	}
	return ""
}

// Plain formats a number without an exponent.
func Plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
