package remote

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

func estimateCommand() *cobra.Command {
	var d description
	c := &cobra.Command{
		Use: "estimate [TYPE]", Short: "Estimate when a job would start and finish", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeTypes,
		Long: `Estimate how long a job would wait and run, what it needs, and whether the service can run it.
Nothing is queued.`,
		Example: Examples("molrun estimate cg-idp --example", "molrun estimate -i job.toml --json"),
	}
	d.addFlags(c, "job")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		j, err := d.job(ctx, s, c, args)
		if err != nil {
			return err
		}
		body, err := prepare(ctx, s, &j, d.folder)
		if err != nil {
			return err
		}
		answer, err := s.API.Post(ctx, body, "estimate")
		if err != nil {
			return err
		}
		return showEstimate(s, answer)
	})
}

func showEstimate(s *session, a client.Answer) error {
	e, err := client.Decode[client.Estimate](a)
	if err != nil {
		return err
	}
	if s.JSON {
		err = s.PrintJSON(a)
	}
	if err == nil && !e.Possible {
		err = &client.Error{Status: 422, Code: "INVALID", Details: e.Detail}
	}
	if err != nil || s.JSON {
		return err
	}
	var needs []string
	for _, slot := range e.Slots {
		text := fmt.Sprintf("%d × %d CPU, %s", slot.Jobs, slot.CPUs, terminal.Size(slot.Memory))
		if slot.GPUs > 0 {
			text += fmt.Sprintf(", %d GPU", slot.GPUs)
		}
		needs = append(needs, text+" on "+slot.Executor)
	}
	starts := ""
	if e.Queue != nil && e.Queue.ETASeconds > 0 {
		starts = fmt.Sprintf("in about %s (%s)", terminal.Seconds(float64(e.Queue.ETASeconds)), e.Queue.ETABasis)
	}
	place := ""
	if e.Queue != nil && e.Queue.Position > 0 {
		place = fmt.Sprintf("%d of %d", e.Queue.Position, e.Queue.Of)
	}
	pairs := [][2]string{
		{"jobs", fmt.Sprint(e.Jobs)},
		{"needs", strings.Join(needs, "; ")},
		{"place", place},
		{"starts", orUnknown(starts)},
		{"runs", orUnknown(about(e.RunSeconds, e.RunBasis))},
		{"all done", orUnknown(about(e.EndSeconds, ""))},
	}
	for _, in := range e.Inputs {
		if in.Summary != "" {
			pairs = append(pairs, [2]string{in.Setting, in.Filename + ": " + in.Summary})
		}
	}
	for _, note := range e.Notes {
		pairs = append(pairs, [2]string{"note", strings.TrimPrefix(note.String(), "body.settings.")})
	}
	return s.Pairs(pairs)
}

func about(seconds int64, basis string) string {
	if seconds == 0 {
		return ""
	}
	text := "about " + terminal.Seconds(float64(seconds))
	if basis != "" {
		text += " (" + basis + ")"
	}
	return text
}

func orUnknown(text string) string { return cmp.Or(text, "unknown: too few runs so far") }
