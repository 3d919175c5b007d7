package condensate

// Names of result files, beside those of package run.
const (
	metricsFile    = "metrics.json"
	summaryFile    = "summary.json"
	componentsFile = "components.csv"
	centresFile    = "centres.csv"
	profileFile    = "profile.csv"
	historyFile    = "profile_time.csv"
	profilePlot    = "profile.svg"
)

// contactName is the file of the contacts of two components, without its extension.
func contactName(a, b Component) string { return "contacts_" + a.Name + "_" + b.Name }
