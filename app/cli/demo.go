package cli

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"molrun/app/algorithm/builtin"
	"molrun/app/base/durable"
	"molrun/app/client"
	"molrun/app/job/apikey"
	"molrun/app/server"
	"molrun/app/server/config"
	"molrun/app/server/host"
)

// The user and the simulated job of the demonstration, and the experimental value to
// compare the result with.
const (
	demoOrganization = "demo"
	demoEmail        = "demo@molrun.example"

	demoJob      = "demo-hst5"
	demoFile     = "hst5.fasta"
	demoMeasured = "1.38 ± 0.05 nm (compiled in doi:10.12688/openreseurope.14967.2)"
	demoPatience = 10 * time.Minute
)

// demoSettings match the conditions of the experiment.
const demoSettings = `{"fasta":"inputs/` + demoFile + `","temperature_K":293,"pH":7.5,"ionic_strength_M":0.15,"steps":1000000,"seed":1}`

func demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "Start a service, run a simulation and show the result",
		Long: `Start a service on a free local port, create an organization and a key, upload a sequence,
simulate it with the built-in engine and download the result, all through the API. On a
terminal, or with --stay, the service then keeps running until Ctrl-C, and a link shows the
result in a browser. The data directory is kept, for molrun serve.`,
		Example: "  molrun demo --data molrun-data",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	stay := c.Flags().Bool("stay", false, "keep serving until Ctrl-C (default true on a terminal)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		terminal := isatty.IsTerminal(os.Stdout.Fd())
		d := &demo{out: c.OutOrStdout(), data: config.Data, bar: terminal, stay: terminal}
		if c.Flags().Changed("stay") {
			d.stay = *stay
		}
		return d.demonstrate(c.Context(), config)
	}
	return c
}

// demonstrate runs the service and a client of its API.
func (d *demo) demonstrate(ctx context.Context, config config.Config) error {
	if err := durable.MkdirAll(config.Data, 0o700); err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(config.Data, "demo.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	o := server.Options{Log: zerolog.New(logFile).With().Timestamp().Logger(), Version: version, Init: true}
	return server.RunWhile(ctx, config, o, func(ctx context.Context, base string) error {
		d.printf("The service listens on %s; its data is in %s.", base, config.Data)
		running, cancel := context.WithTimeout(ctx, demoPatience)
		defer cancel()
		if err := d.runJob(running, base); err != nil {
			return err
		}
		return d.showJob(ctx)
	})
}

// demo is the client side of the demonstration.
type demo struct {
	out  io.Writer
	data string
	bar  bool // draw a progress bar in place
	stay bool // keep running after the job
}

func (d *demo) printf(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) runJob(ctx context.Context, base string) error {
	key, err := host.Control(d.data).CreateKey(ctx, client.KeyRequest{
		Organization: demoOrganization, Email: demoEmail, Role: string(apikey.Admin), Expires: 24 * time.Hour,
	})
	if err != nil {
		return fmt.Errorf("create a key: %w", err)
	}
	d.printf("Created a key for %s of the organization %s.", key.Email, key.Organization)
	api := client.New(base, key.Secret)
	if err := d.upload(ctx, api); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	job, err := api.Submit(ctx, client.Submission{Name: demoJob, Type: "cg-idp", Settings: json.RawMessage(demoSettings)})
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	if job.Created {
		d.printf("Submitted job %s: 1,000,000 steps of Langevin dynamics.", demoJob)
	} else {
		d.printf("Job %s already exists with the same settings; it is returned.", demoJob)
	}
	if err := d.follow(ctx, api); err != nil {
		return err
	}
	return d.fetch(ctx, api)
}

// upload uploads the sequence through a presigned URL.
func (d *demo) upload(ctx context.Context, api *client.Client) error {
	text, err := builtin.Example(demoFile)
	if err != nil {
		return err
	}
	path := filepath.Join(d.data, demoFile)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	file, err := api.Upload(ctx, "inputs", path)
	if err == nil {
		d.printf("Uploaded %s/%s (%d bytes).", file.Folder, file.Filename, file.Size)
	}
	return err
}

// follow shows the job's progress until it finishes.
func (d *demo) follow(ctx context.Context, api *client.Client) error {
	const look = 250 * time.Millisecond
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	last := ""
	for {
		job, err := api.Job(ctx, demoJob)
		if err != nil {
			return fmt.Errorf("follow the job: %w", err)
		}
		if line := d.progressLine(job); line != last {
			d.drawLine(line)
			last = line
		}
		switch job.Status {
		case "COMPLETED":
			d.printf("")
			return nil
		case "FAILED":
			d.printf("")
			return fmt.Errorf("the job failed: %s", job.Failure.Message)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drawLine overwrites the previous line on a terminal and prints a new line elsewhere.
func (d *demo) drawLine(line string) {
	if d.bar {
		fmt.Fprintf(d.out, "\r\033[K%s", line)
		return
	}
	fmt.Fprintln(d.out, line)
}

// progressLine formats the job's progress in 80 columns. Without a terminal, where every
// change prints a line, it changes only every 10%.
func (d *demo) progressLine(job *client.Job) string {
	const width, textWidth = 30, 30
	fraction, text := 0.0, ""
	switch {
	case job.Status == "COMPLETED":
		fraction = 1
	case job.Progress != nil:
		fraction, text = job.Progress.Fraction, job.Progress.Text
	}
	if !d.bar {
		fraction, text = math.Floor(10*fraction)/10, ""
	}
	if runes := []rune(text); len(runes) > textWidth {
		text = string(runes[:textWidth-1]) + "…"
	}
	full := int(fraction * width)
	return fmt.Sprintf("[%s%s] %3.0f %% %s %s", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*fraction, job.Status, text)
}

// fetch downloads the result archive and shows its contents.
func (d *demo) fetch(ctx context.Context, api *client.Client) error {
	archive := filepath.Join(d.data, demoJob+".zip")
	if err := api.Download(ctx, client.ResultRequest{Job: demoJob}, archive); err != nil {
		return err
	}
	var metrics struct {
		Rg float64 `json:"rg_nm"`
		SE float64 `json:"rg_se_nm"`
	}
	text, err := readZipped(archive, "metrics.json")
	if err == nil {
		err = json.Unmarshal(text, &metrics)
	}
	if err != nil {
		return fmt.Errorf("read the result: %w", err)
	}
	d.printf("\nRadius of gyration of histatin 5 at 293 K, pH 7.5, 0.15 M salt:")
	d.printf("  simulated %.3f ± %.3f nm (CALVADOS 2 model, one chain)", metrics.Rg, metrics.SE)
	d.printf("  measured  %s", demoMeasured)
	d.printf("\nThe result is in %s: trajectory (traj.dcd, top.pdb), ensemble.pdb, time series, summary.", archive)
	return nil
}

// showJob tells the user how to open the job in a browser. If the service is to stay
// running, it prints a sign-in link and waits for Ctrl-C.
func (d *demo) showJob(ctx context.Context) error {
	if !d.stay {
		d.printf("Continue with this data:  ./molrun serve --data %s", d.data)
		d.printf("See it in a browser:      ./molrun sign-in --data %s  (while that runs)", d.data)
		return nil
	}
	made, err := host.Control(d.data).SignIn(ctx, demoOrganization, demoEmail)
	if err != nil {
		return fmt.Errorf("create a link: %w", err)
	}
	d.printf("Ctrl-C stops the service; ./molrun serve --data %s continues with this data.", d.data)
	d.printf("\nSee it in a browser (signs in once, within 10 minutes; ./molrun sign-in --data %s creates another link):\n", d.data)
	d.printf("  %s&to=jobs/%s", made.URL, demoJob)
	<-ctx.Done()
	return nil
}

// readZipped reads the first file with this base name from an archive.
func readZipped(archive, name string) ([]byte, error) {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for _, f := range r.File {
		if filepath.Base(f.Name) != name {
			continue
		}
		content, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer content.Close()
		return io.ReadAll(io.LimitReader(content, 1<<20))
	}
	return nil, fmt.Errorf("%s has no %s", archive, name)
}
