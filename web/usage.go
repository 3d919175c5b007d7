package web

import (
	"bytes"
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/job/usage"
	"molrun/web/decode"
	"molrun/web/respond"
)

// usageReports handles requests for usage reports.
type usageReports struct{ reports *usage.Reports }

type usageRequest struct {
	usage.Query
	csv bool
}

// readUsage reads the query for a usage report of one of the given kinds, by default the
// first.
func readUsage(r *decode.Reader, kinds ...string) usageRequest {
	return usageRequest{
		Query: usage.Query{
			By:    usage.By(or(r.Choice("by", kinds...), kinds[0])),
			Since: r.Time("since"),
			Until: r.Time("until"),
		},
		csv: r.WantsCSV(),
	}
}

// show handles GET /usage and, for the operator, GET /control/usage.
func (h usageReports) show(c *gin.Context, by app.Caller) error {
	req, faults := decode.Query(c, func(r *decode.Reader) usageRequest {
		if !by.Operator {
			return readUsage(r, string(usage.ByUser), string(usage.ByType), string(usage.ByDay))
		}
		req := readUsage(r, string(usage.ByOrganization), string(usage.ByUser), string(usage.ByType), string(usage.ByDay))
		req.Organization = r.Text("organization")
		return req
	})
	req.Faults = faults
	return h.answer(c, by, req)
}

func (h usageReports) answer(c *gin.Context, by app.Caller, req usageRequest) error {
	c.Writer.Header().Set("Vary", "Accept")
	report, err := h.reports.Of(c.Request.Context(), by, req.Query)
	switch {
	case err != nil:
		return err
	case !req.csv:
		return respond.JSON(c.Writer, http.StatusOK, report)
	}
	return stream(c, "text/csv; charset=utf-8; header=present", func(w http.ResponseWriter) error {
		_, err := w.Write(usageCSV(report))
		return err
	})
}

// usageCSV returns the rows of a report, without the total.
func usageCSV(report *usage.Report) []byte {
	text := bytes.NewBuffer(nil)
	table := respond.NewCSV(text)
	table.Row(
		"organization", "user", "type", "day", "completed", "failed", "attempts", "runSeconds", "cpuSeconds",
		"cpuSecondsBooked", "gpuSeconds", "resultBytes", "uploads", "uploadBytes",
	)
	for _, r := range report.Rows {
		table.Row(
			r.Organization, r.User, r.Type, r.Day, r.Completed, r.Failed, r.Attempts, r.RunSeconds, r.CPUSeconds,
			r.CPUSecondsBooked, r.GPUSeconds, r.ResultBytes, r.Uploads, r.UploadBytes,
		)
	}
	return text.Bytes()
}
