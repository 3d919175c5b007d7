// Package doctor diagnoses an installation: the configuration, the data directory, the
// machine and the programs that jobs need. Every finding says what to do.
//
// WriteReport collects everything a bug report needs in one text: versions, settings,
// findings, counts, and the last errors of the log. The report contains no secrets and
// does not name users, organizations, jobs or user files.
package doctor

import (
	"context"
	"time"

	"molrun/app/server/config"
)

// checks lists all checks in order of their dependencies.
var checks = []struct {
	name string
	run  func(context.Context, *installation) []Finding
}{
	{"data directory", checkData},
	{"file system", checkFileSystem},
	{"free space", checkSpace},
	{"database", checkDatabase},
	{"service", checkService},
	{"secret", checkSecret},
	{"backups", checkBackups},
	{"clock", checkClock},
	{"open files", checkLimits},
	{"cpus", checkCPUs},
	{"gpus", checkGPUs},
	{"sandbox", checkSandbox},
	{"algorithms", checkAlgorithms},
	{"slurm", checkSlurm},
	{"address", checkAddress},
	{"public url", checkPublicURL},
	{"certificate", checkCertificate},
}

// timeout limits the total time of all checks; each check also limits its own waits.
const timeout = 2 * time.Minute

// Examine runs all checks. It changes nothing.
func Examine(ctx context.Context, c config.Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	in := inspect(ctx, c)
	findings := []Finding{{"configuration", OK, "every setting is known and valid"}}
	for _, check := range checks {
		for _, f := range check.run(ctx, in) {
			f.Check = check.name
			findings = append(findings, f)
		}
	}
	return findings
}
