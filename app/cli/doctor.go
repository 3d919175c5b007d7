package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/config"
	"molrun/storage/kv/boltfile"
	"molrun/web/client"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with this installation",
		Long: `Look at the configuration, the data directory, the database, the machine and the
programs that jobs need, while the service runs or while it does not, and say what to
do about what is wrong. It changes nothing; on a cluster it runs a job that ends at
once. Whether records and files are sound is a question for molrun check.

Ends with 1 if there is a problem; a warning is none.`,
		Example: "  molrun doctor\n  molrun doctor --json",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, true)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var findings []finding
		config, err := flags.load()
		if err != nil {
			findings = []finding{{"configuration", wrong, message(err)}}
		} else {
			findings = examine(c.Context(), config)
		}
		if asJSON {
			err = printJSON(c.OutOrStdout(), findings)
		} else {
			err = printFindings(c, findings)
		}
		if err != nil {
			return err
		}
		for _, f := range findings {
			if f.Result == wrong {
				return silent{exitFailed}
			}
		}
		return nil
	}
	return c
}

func printFindings(c *cobra.Command, findings []finding) error {
	rows := make([][]string, len(findings))
	for i, f := range findings {
		rows[i] = []string{string(f.Result), f.Check, f.Text}
	}
	return printTable(c.OutOrStdout(), []string{"RESULT", "CHECK", "WHAT IT IS, WHAT TO DO"}, rows)
}

// finding is what one check says.
type finding struct {
	Check  string `json:"check"`
	Result result `json:"result"`
	Text   string `json:"text"` // what it is and, where it is not ok, what to do
}

type result string

// The results of a check.
const (
	fine     result = "ok"
	doubtful result = "warning" // it works, but not as well or as long as it could
	wrong    result = "problem" // something does not work
)

// patient is what the checks look at.
type patient struct {
	config   config.Config
	data     string // absolute
	database string
	holder   boltfile.Process // of the database
	held     bool
	running  bool // a service answers on the control socket
	now      time.Time
}

// checks are all that doctor looks at, in the order of what rests on what.
var checks = []struct {
	name string
	look func(context.Context, *patient) []finding
}{
	{"data directory", lookAtData},
	{"file system", lookAtFileSystem},
	{"free space", lookAtSpace},
	{"database", lookAtDatabase},
	{"service", lookAtService},
	{"secret", lookAtSecret},
	{"clock", lookAtClock},
	{"open files", lookAtLimits},
	{"gpus", lookAtGPUs},
	{"sandbox", lookAtSandbox},
	{"algorithms", lookAtAlgorithms},
	{"slurm", lookAtSlurm},
	{"address", lookAtAddress},
	{"public url", lookAtPublicURL},
	{"certificate", lookAtCertificate},
}

// examinePatience bounds all checks together; each bounds what it waits for.
const examinePatience = 2 * time.Minute

func examine(ctx context.Context, config config.Config) []finding {
	ctx, cancel := context.WithTimeout(ctx, examinePatience)
	defer cancel()
	p := &patient{config: config, data: config.Data, now: time.Now()}
	if abs, err := filepath.Abs(config.Data); err == nil {
		p.data = abs
	}
	p.database = filepath.Join(p.data, databaseName)
	p.holder, p.held = boltfile.Holder(p.database)
	if conn, err := client.DialControl(ctx, filepath.Join(p.data, socketName)); err == nil {
		p.running = true
		conn.Close()
	}
	findings := []finding{{"configuration", fine, "every setting is known and has a possible value"}}
	for _, check := range checks {
		for _, f := range check.look(ctx, p) {
			f.Check = check.name
			findings = append(findings, f)
		}
	}
	return findings
}

// say makes the one finding of a check.
func say(r result, format string, args ...any) []finding {
	return []finding{{Result: r, Text: fmt.Sprintf(format, args...)}}
}

// nearest gives the data directory or, before it is made, where it will be.
func (p *patient) nearest() string {
	dir := p.data
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
