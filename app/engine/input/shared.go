package input

// Numeric settings common to several engines.
var (
	Cores         = Limit{Key: "cores", Default: 1, Low: 1, High: 64}
	Temperature   = Limit{Key: "temperature_K", Default: 298, Low: 273.15, High: 373, Unit: " K", Advice: celsius}
	PH            = Limit{Key: "pH", Default: 7, Low: 2, High: 12}
	IonicStrength = Limit{Key: "ionic_strength_M", Default: 0.15, Low: 0.001, High: 2, Unit: " mol/L", Advice: millimolar}
	Equilibration = Limit{Key: "equilibration", Default: 0.1, High: 0.9, Unit: ", the fraction of the steps to discard", Advice: percent}
	Seed          = Limit{Key: "seed", Default: 1, High: 1<<53 - 1}
	Friction      = Limit{Key: "friction_per_ps", Default: 0.01, Low: 0.001, High: 10, Unit: " per ps"}
)
