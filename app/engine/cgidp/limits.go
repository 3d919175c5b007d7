package cgidp

import (
	"fmt"
	"math"
)

// limit is a numeric setting, its default and bounds.
type limit struct {
	key               string
	preset, low, high float64
	unit              string
	advice            func(l limit, value float64) string // for a value out of bounds; may be nil
}

var (
	limitCores         = limit{"cores", 1, 1, 64, "", nil}
	limitTemperature   = limit{"temperature_K", 298, 273.15, 373, " K", celsius}
	limitPH            = limit{"pH", 7, 2, 12, "", nil}
	limitIonicStrength = limit{"ionic_strength_M", 0.15, 0.001, 2, " mol/L", millimolar}
	limitSteps         = limit{"steps", 0, 1000, 2e9, "", moreReplicas}
	limitEquilibration = limit{"equilibration", 0.1, 0, 0.9, ", the fraction of the steps to discard", percent}
	limitReplicas      = limit{"replicas", 1, 1, 64, "", nil}
	limitSeed          = limit{"seed", 1, 0, 1<<53 - 1, "", nil}
	limitFrameEvery    = limit{"frame_every", 0, 100, 1e7, " steps", nil}
	limitSampleEvery   = limit{"sample_every", 200, 10, 1e5, " steps", nil}
	limitFriction      = limit{"friction_per_ps", 0.01, 0.001, 10, " per ps", nil}
)

// keys are all settings there are.
var keys = []string{
	"sequences", "fasta", "names", limitCores.key, limitTemperature.key, limitPH.key, limitIonicStrength.key,
	limitSteps.key, limitEquilibration.key, limitReplicas.key, limitSeed.key, limitFrameEvery.key,
	limitSampleEvery.key, limitFriction.key, "charged_termini",
}

// celsius advises on a temperature that was probably given in degrees Celsius.
func celsius(l limit, value float64) string {
	return l.instead(value+273.15, plain(value)+" °C is %s K")
}

// millimolar advises on a concentration that was probably given in mmol/L.
func millimolar(l limit, value float64) string {
	return l.instead(value/1000, plain(value)+" mmol/L is %s mol/L")
}

// percent advises on a fraction that was probably given in percent.
func percent(l limit, value float64) string {
	return l.instead(value/100, plain(value)+" %% is %s")
}

func moreReplicas(l limit, steps float64) string {
	if steps < l.high {
		return ""
	}
	return "use replicas for more"
}

// instead names the value that was probably meant, if it is within bounds.
func (l limit) instead(value float64, format string) string {
	if value < l.low || value > l.high {
		return ""
	}
	return fmt.Sprintf(format, plain(math.Round(value*1e6)/1e6))
}

// adviceOn is the advice on a value out of bounds, in parentheses.
func (l limit) adviceOn(value float64) string {
	if l.advice == nil {
		return ""
	}
	if advice := l.advice(l, value); advice != "" {
		return " (" + advice + ")"
	}
	return ""
}
