package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/job/access"
	"molrun/app/job/audit"
	"molrun/app/job/status"
	"molrun/web/decode"
	"molrun/web/respond"
)

// drain handles requests to pause and resume the queue.
type drain struct{ svc *app.Runs }

// service handles requests of admins about the service as a whole.
type service struct {
	accounts  *access.Accounts
	reports   *status.Reports
	build     string
	isolation Isolation
	// last returns the newest entries of the audit log.
	last func(audit.Filter, int) ([]audit.Entry, bool, error)
}

type statusView struct {
	Version    string     `json:"version"`
	APIVersion string     `json:"apiVersion"`
	Isolation  *Isolation `json:"isolation,omitempty"`
	Drained    bool       `json:"drained"`
	*status.Report
}

// status handles GET /admin/status.
func (h service) status(c *gin.Context, by app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	report, err := h.reports.Of(c.Request.Context(), by)
	if err != nil {
		return err
	}
	view := statusView{Version: h.build, APIVersion: APIVersion, Drained: report.Drain != nil, Report: report}
	if h.isolation.Kind != "" {
		view.Isolation = &h.isolation
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

// Page sizes of the audit log.
const (
	auditPage    = 100
	maxAuditPage = 1000
)

type auditView struct {
	Entries []audit.Entry `json:"entries"`
	More    bool          `json:"more"`
}

// audit handles GET /admin/audit. An admin sees the actions of the organization. Actions
// of no organization, such as the operator's, are included only if there is no other
// organization.
func (h service) audit(c *gin.Context, by app.Caller) error {
	type request struct {
		audit.Filter
		limit int64
	}
	req, err := decode.Request(c, func(r *decode.Reader) request {
		return request{
			audit.Filter{Since: r.Time("since"), Until: r.Time("until"), Key: r.Text("key"), Action: r.Text("action"), Failed: r.Flag("failed")},
			r.Integer("limit", 1, maxAuditPage, auditPage),
		}
	})
	if err != nil {
		return err
	}
	alone, err := h.accounts.IsOnlyOrganization(c.Request.Context(), by)
	if err != nil {
		return err
	}
	if req.Organizations = []string{by.Organization}; alone {
		req.Organizations = append(req.Organizations, "")
	}
	entries, more, err := h.last(req.Filter, int(req.limit))
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, auditView{append([]audit.Entry{}, entries...), more})
}

type drainView struct {
	Drained    bool `json:"drained"`
	*app.Drain      // nil means that jobs can start
}

// show handles GET /admin/drain.
func (h drain) show(c *gin.Context, _ app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	d := h.svc.Drained()
	return respond.JSON(c.Writer, http.StatusOK, drainView{d != nil, d})
}

// begin handles POST /admin/drain.
func (h drain) begin(c *gin.Context, by app.Caller) error {
	reason, err := decode.Request(c, func(r *decode.Reader) string {
		return r.Object(decode.Optional).Text("reason", decode.Optional)
	})
	if err != nil {
		return err
	}
	d, err := h.svc.Drain(c.Request.Context(), by, reason)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, drainView{true, d})
}

// end handles DELETE /admin/drain.
func (h drain) end(c *gin.Context, by app.Caller) error {
	if err := decode.NoBody(c); err != nil {
		return err
	}
	if err := h.svc.Resume(c.Request.Context(), by); err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, drainView{})
}
