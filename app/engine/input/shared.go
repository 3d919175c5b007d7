package input

// Numeric settings that several engines have.
var (
	Cores         = Limit{Key: "cores", Preset: 1, Low: 1, High: 64}
	Temperature   = Limit{Key: "temperature_K", Preset: 298, Low: 273.15, High: 373, Unit: " K", Advice: celsius}
	PH            = Limit{Key: "pH", Preset: 7, Low: 2, High: 12}
	IonicStrength = Limit{Key: "ionic_strength_M", Preset: 0.15, Low: 0.001, High: 2, Unit: " mol/L", Advice: millimolar}
	Equilibration = Limit{Key: "equilibration", Preset: 0.1, High: 0.9, Unit: ", the fraction of the steps to discard", Advice: percent}
	Seed          = Limit{Key: "seed", Preset: 1, High: 1<<53 - 1}
	Friction      = Limit{Key: "friction_per_ps", Preset: 0.01, Low: 0.001, High: 10, Unit: " per ps"}
)
