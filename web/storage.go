package web

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/retention"
	"molrun/web/decode"
	"molrun/web/respond"
)

// storage handles requests to report and free disk space.
type storage struct{ keeper *retention.Keeper }

// report handles GET /admin/storage and, for the operator, GET /control/storage.
func (h storage) report(c *gin.Context, by app.Caller) error {
	kinds := []string{string(retention.ByUser), string(retention.ByAlgorithm), string(retention.ByAge)}
	if by.Operator {
		kinds = append([]string{string(retention.ByOrganization)}, kinds...)
	}
	kind, err := decode.Request(c, func(r *decode.Reader) string {
		kind := or(r.Choice("by", kinds...), kinds[0])
		if by.Operator {
			r.NoBody()
		}
		return kind
	})
	if err != nil {
		return err
	}
	report, err := h.keeper.Report(c.Request.Context(), by.Organization, retention.ReportBy(kind))
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, report)
}

// prunedView is a page of pruned jobs.
type prunedView struct {
	Jobs []app.Expired `json:"jobs"`
	Next string        `json:"next,omitempty"` // cursor of the next page
}

// prune handles POST /admin/prune and, for the operator, POST /control/prune.
func (h storage) prune(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) retention.PruneRequest {
		b := r.Object(decode.Required)
		req := pruneRequest(b)
		if req.Organization = by.Organization; by.Operator {
			req.Organization = b.Text("organization", decode.Optional)
		} else if req.After != nil {
			req.After.Organization = by.Organization
		}
		return req
	})
	if err != nil {
		return err
	}
	auditObject(c, req.Organization)
	if req.DryRun {
		auditNothing(c)
	}
	page, err := h.keeper.Prune(c.Request.Context(), req)
	if err != nil {
		return err
	}
	if !req.DryRun {
		logPruned(zerolog.Ctx(c.Request.Context()), page.Jobs)
	}
	view := prunedView{Jobs: append([]app.Expired{}, page.Jobs...)}
	if page.Next != nil {
		next, err := json.Marshal(page.Next)
		if err != nil {
			return err
		}
		view.Next = string(next)
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

func pruneRequest(b *decode.Object) (req retention.PruneRequest) {
	before := b.Text("endedBefore", decode.Required)
	req.Failed = b.Flag("failed")
	req.User = b.Text("user", decode.Optional)
	req.Algorithm = b.Text("algorithm", decode.Optional)
	req.LargerThan = decode.OrZero(b.Integer("largerThan", 0, decode.MaxExact))
	req.DryRun = b.Flag("dryRun")
	after := b.Text("after", decode.Optional)
	var err error
	if req.EndedBefore, err = time.Parse(unit.TimeLayout, before); err != nil && before != "" {
		b.Fault("value", "endedBefore", "use a time such as 2026-11-20T10:40:00.000Z")
	}
	if after != "" && json.Unmarshal([]byte(after), &req.After) != nil {
		b.Fault("value", "after", "send the value of next from the previous page")
	}
	return req
}

func logPruned(log *zerolog.Logger, jobs []app.Expired) {
	for _, e := range jobs {
		log.Info().Str("job", string(e.Job)).Str("name", e.Name).Str("organization", e.Organization).
			Strs("uploads", e.Uploads).Int64("bytes", e.Bytes).Msg("deleted by prune")
	}
}
