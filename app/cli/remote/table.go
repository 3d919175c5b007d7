package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/cli/terminal"
	"molrun/app/client"
)

func tableCommand() *cobra.Command {
	var sorted, order string
	var asCSV bool
	var most int
	c := &cobra.Command{
		Use: "table BATCH", Short: "Show the metrics of a batch's jobs as a table, best first", Args: oneArgument("the name of a batch"), ValidArgsFunction: completeJobs,
		Example: Examples("molrun table screen", "molrun table screen --sort length --csv"),
	}
	c.Flags().StringVar(&sorted, "sort", "", "metric to sort by, or row (default: the metric that the algorithm ranks by)")
	c.Flags().StringVar(&order, "order", "", "asc or desc (default: best first)")
	c.Flags().BoolVar(&asCSV, "csv", false, "print all rows as CSV")
	c.Flags().IntVar(&most, "limit", 25, "maximum number of rows; 0 for all")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		q := url.Values{}
		if sorted != "" && sorted != "row" && !strings.HasPrefix(sorted, "metric:") {
			sorted = "metric:" + sorted
		}
		for name, value := range map[string]string{"sort": sorted, "order": order} {
			if value != "" {
				q.Set(name, value)
			}
		}
		if asCSV {
			return tableCSV(ctx, s, q, args[0])
		}
		t, err := readBatch(ctx, s, q, args[0], most)
		if err != nil {
			return err
		}
		if err := hasOrder(t); err != nil {
			return err
		}
		if s.JSON {
			return s.PrintJSON(t)
		}
		return showTable(s, t)
	})
}

func tableCSV(ctx context.Context, s *session, q url.Values, name string) error {
	q.Set("format", "csv")
	body, err := s.API.OpenBody(ctx, q, "jobs", name, "table")
	if err != nil {
		return err
	}
	defer body.Close() // read-only
	_, err = io.Copy(s.Out, body)
	return err
}

func readBatch(ctx context.Context, s *session, q url.Values, name string, most int) (*client.Table, error) {
	var rows []client.TableRow
	for {
		page := 1000
		if most > 0 {
			page = min(page, most-len(rows))
		}
		q.Set("limit", fmt.Sprint(page))
		a, err := s.API.Get(ctx, q, "jobs", name, "table")
		if err != nil {
			return nil, err
		}
		t, err := client.Decode[client.Table](a)
		if err != nil {
			return nil, err
		}
		rows = append(rows, t.Rows...)
		if t.StartKey == "" || most > 0 && len(rows) >= most {
			t.Rows = rows
			return t, nil
		}
		q.Set("startKey", t.StartKey)
	}
}

// hasOrder returns an error if the table is to be sorted by a metric that no job has.
func hasOrder(t *client.Table) error {
	wanted, ok := strings.CutPrefix(t.Sort, "metric:")
	var names []string
	for _, m := range t.Metrics {
		names = append(names, m.Name)
	}
	if !ok || slices.Contains(names, wanted) {
		return nil
	}
	hint := "there are " + strings.Join(names, ", ")
	if near := plaintext.Nearest(wanted, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return fault.Errorf(fault.Invalid, "no job of %s has the metric %q; %s", terminal.Clean(t.Batch), wanted, hint)
}

// showTable prints as many columns as fit the terminal, starting with the sort column.
func showTable(s *session, t *client.Table) error {
	columns := []terminal.Column{{Title: "ROW", Right: true}, {Title: "OF", MinWidth: 10}, {Title: "STATE"}}
	lines := make([][]string, len(t.Rows))
	for i, r := range t.Rows {
		state := terminal.State(r.Status)
		switch {
		case r.FailureCode != "":
			state = "✘ " + r.FailureCode
		case len(r.Warnings) > 0:
			state = "⚠ warning"
		}
		lines[i] = []string{fmt.Sprint(r.Row), cmp.Or(r.Source, r.Name), state}
	}
	shown := 0
	for _, c := range columnsOf(t) {
		more := append(slices.Clone(columns), terminal.Column{Title: headed(c.TableColumn), Right: c.metric})
		wider := make([][]string, len(lines))
		for i, r := range t.Rows {
			text := cell(r.Settings[c.Name])
			if c.metric {
				text = metricCell(r.Metrics, c.TableColumn, t.Metrics)
			}
			wider[i] = append(slices.Clone(lines[i]), text)
		}
		if shown > 0 && !s.Fits(more, wider) {
			break
		}
		columns, lines = more, wider
		shown++
	}
	if err := s.Table(columns, lines); err != nil {
		return err
	}
	all := 0
	for _, n := range t.Statuses {
		all += n
	}
	if most := len(columnsOf(t)); len(t.Rows) < all || shown < most {
		s.Notef("%d of %d rows, %d of %d columns, sorted by %s; --limit 0 and --csv show all", len(t.Rows), all, shown, most, strings.TrimPrefix(t.Sort, "metric:"))
	}
	return nil
}

// shownColumn is a column and where to find its values.
type shownColumn struct {
	client.TableColumn
	metric bool
}

// columnsOf returns all columns, most important first: the sort column, the settings that
// differ, and then the other metrics.
func columnsOf(t *client.Table) (columns []shownColumn) {
	sorted := strings.TrimPrefix(t.Sort, "metric:")
	for _, m := range t.Metrics {
		if m.Name == sorted {
			columns = append(columns, shownColumn{m, true})
		}
	}
	for _, c := range t.Settings {
		columns = append(columns, shownColumn{c, false})
	}
	for _, m := range t.Metrics {
		if m.Name != sorted && m.ErrorOf == "" {
			columns = append(columns, shownColumn{m, true})
		}
	}
	return columns
}

// metricCell formats a metric of a job with its error.
func metricCell(row map[string]any, m client.TableColumn, metrics []client.TableColumn) string {
	if f := asFloat(row[m.Name]); !math.IsNaN(f) {
		return measured(f, errorOf(row, m.Name, metrics), m.Digits)
	}
	return cell(row[m.Name])
}

func headed(m client.TableColumn) string {
	if m.Unit == "" {
		return m.Name
	}
	return m.Name + " (" + m.Unit + ")"
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		return v
	case float64:
		return fmt.Sprintf("%.6g", v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
