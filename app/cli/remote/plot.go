package remote

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/base/fault"
	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// plotRows is the height of a plot in lines.
const plotRows = 14

func plotCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "plot JOB [SERIES [COLUMN...]]", Short: "Plot a data series of a result in the terminal", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeJobs,
		Long: `Plot a data series of a result, also while the job runs. Without SERIES, list the series of
the job; without COLUMN, plot the columns that the algorithm file selects.`,
		Example: Examples("molrun plot hst5", "molrun plot hst5 size", "molrun plot hst5 size --json"),
	}
	c.Flags().StringVar(&file, "file", "", "file, if the series has several")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		views, err := series(ctx, s, args[0])
		if err != nil {
			return err
		}
		if len(args) == 1 {
			return listSeries(s, args[0], views)
		}
		q := url.Values{"points": {"2000"}}
		if file != "" {
			q.Set("file", file)
		}
		a, err := s.API.Get(ctx, q, "jobs", args[0], "series", args[1])
		_, known := views[args[1]]
		if isNotFound(err) && !known && len(views) > 0 {
			return fault.Errorf(fault.NotFound, "%s has no series %q; it has %s", terminal.Clean(args[0]), args[1], strings.Join(titles(views), ", "))
		}
		if err != nil {
			return err
		}
		return s.PrintAnswer(a, func() error { return plot(s, a, views[args[1]], args[2:]) })
	})
}

// seriesView is a view of kind series.
type seriesView struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	Title string   `json:"title"`
	Y     []string `json:"y"`
}

func series(ctx context.Context, s *session, job string) (map[string]seriesView, error) {
	a, err := s.API.Get(ctx, nil, "jobs", job, "views")
	if err != nil {
		return nil, err
	}
	list, err := client.Decode[struct {
		Views []seriesView `json:"views"`
	}](a)
	if err != nil {
		return nil, err
	}
	views := map[string]seriesView{}
	for _, v := range list.Views {
		if v.Kind == "series" {
			views[v.Name] = v
		}
	}
	return views, nil
}

func titles(views map[string]seriesView) []string { return slices.Sorted(maps.Keys(views)) }

func listSeries(s *session, job string, views map[string]seriesView) error {
	if s.JSON {
		return s.PrintJSON(map[string]any{"series": titles(views)})
	}
	lines := make([][]string, 0, len(views))
	for _, name := range titles(views) {
		lines = append(lines, []string{name, views[name].Title})
	}
	if len(lines) == 0 {
		s.Notef("%s has no series yet", terminal.Clean(job))
		return nil
	}
	return s.Table([]terminal.Column{{Title: "SERIES"}, {Title: "WHAT IT SHOWS", MinWidth: 20}}, lines)
}

func plot(s *session, a client.Answer, v seriesView, columns []string) error {
	series, err := client.Decode[struct {
		Columns []client.Column `json:"columns"`
		Values  [][]*float64    `json:"values"`
		Rows    int64           `json:"rows"`
		Running bool            `json:"incomplete"`
	}](a)
	if err != nil {
		return err
	}
	if len(series.Columns) < 2 || series.Rows == 0 {
		words := "the series has no numbers"
		if series.Running {
			words = "not written yet: the job is still running"
		}
		s.Notef("%s", words)
		return nil
	}
	wanted := columns
	if len(wanted) == 0 {
		wanted = v.Y
	}
	axis := series.Columns[0]
	drawn := 0
	for i, c := range series.Columns[1:] {
		if len(wanted) > 0 && !slices.Contains(wanted, c.Name) {
			continue
		}
		drawn++
		curve := terminal.Curve{Name: cmp.Or(c.Title, c.Name), X: numbers(series.Values[0]), Y: numbers(series.Values[i+1])}
		text := terminal.Plot(curve, labelled(cmp.Or(axis.Title, axis.Name), axis.Unit), unitText(c.Unit), s.Width, plotRows)
		if _, err := fmt.Fprint(s.Out, text); err != nil {
			return err
		}
	}
	if drawn == 0 {
		var names []string
		for _, c := range series.Columns[1:] {
			names = append(names, c.Name)
		}
		return fault.Errorf(fault.NotFound, "the series has no column %s; it has %s", strings.Join(columns, ", "), strings.Join(names, ", "))
	}
	return nil
}

func numbers(values []*float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		if out[i] = math.NaN(); v != nil {
			out[i] = *v
		}
	}
	return out
}

func labelled(name, unit string) string { return strings.TrimSpace(name + " " + unitText(unit)) }

func unitText(unit string) string {
	if unit == "" {
		return ""
	}
	return "(" + unit + ")"
}
