package condensate

// Names of result files, in addition to those of package run.
const (
	metricsFile    = "metrics.json"
	summaryFile    = "summary.json"
	componentsFile = "components.csv"
	centresFile    = "centres.csv"
	profileFile    = "profile.csv"
	historyFile    = "profile_time.csv"
	profilePlot    = "profile.svg"
)

// contactName returns the name of the contact map of two components, without extension.
func contactName(a, b Component) string { return "contacts_" + a.Name + "_" + b.Name }
