package input

import (
	"fmt"
	"math"
	"strconv"
)

// Limit is a numeric setting, its default and bounds.
type Limit struct {
	Key               string
	Preset, Low, High float64
	Unit              string
	Advice            func(l Limit, value float64) string // for a value out of bounds; may be nil
}

// celsius advises on a temperature that was probably given in degrees celsius.
func celsius(l Limit, value float64) string {
	return l.Instead(value+273.15, Plain(value)+" °C is %s K")
}

// millimolar advises on a concentration that was probably given in mmol/L.
func millimolar(l Limit, value float64) string {
	return l.Instead(value/1000, Plain(value)+" mmol/L is %s mol/L")
}

// percent advises on a fraction that was probably given in percent.
func percent(l Limit, value float64) string {
	return l.Instead(value/100, Plain(value)+" %% is %s")
}

// Instead names the value that was probably meant, if it is within bounds.
func (l Limit) Instead(value float64, format string) string {
	if value < l.Low || value > l.High {
		return ""
	}
	return fmt.Sprintf(format, Plain(math.Round(value*1e6)/1e6))
}

// adviceOn is the recommendation for a value out of bounds, in parentheses.
func (l Limit) adviceOn(value float64) string {
	if l.Advice == nil {
		return ""
	}
	if advice := l.Advice(l, value); advice != "" {
		return " (" + advice + ")"
	}
	return ""
}

// Plain writes a number without an exponent.
func Plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
