package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/job/delivery"
	"molrun/app/job/notice"
	"molrun/web/decode"
	"molrun/web/respond"
)

// webhooks manages the webhooks that are notified when jobs finish.
type webhooks struct{ svc *delivery.Webhooks }

// webhookView is a webhook without its secret.
type webhookView struct {
	ID        string         `json:"webhookId"`
	URL       string         `json:"url,omitempty"`
	Events    []notice.Event `json:"events,omitempty"`
	Disabled  bool           `json:"disabled"`
	CreatedAt unit.Time      `json:"createdAt"`
	CreatedBy string         `json:"createdBy,omitempty"`
	// OldSecretUntil is when messages stop being signed with the previous secret.
	OldSecretUntil unit.Time `json:"oldSecretUntil,omitzero"`
}

func viewWebhook(h *notice.Hook) webhookView {
	v := webhookView{h.ID, h.URL, h.Events, h.Disabled, h.CreatedAt, h.CreatedBy, h.OldUntil}
	if h.Submissions {
		v.ID = delivery.Submissions
	}
	return v
}

// newWebhookView is a webhook with its secret, which is shown only once.
type newWebhookView struct {
	Secret string `json:"secret"`
	webhookView
}

// deliveryView is an entry of a delivery log.
type deliveryView struct {
	ID        string       `json:"deliveryId"`
	Message   string       `json:"messageId"` // the header webhook-id
	Event     notice.Event `json:"event"`
	Job       string       `json:"jobId,omitempty"`
	JobName   string       `json:"jobName,omitempty"`
	Target    string       `json:"target"`
	State     notice.State `json:"state"`
	Attempts  int          `json:"attempts"`
	Status    int          `json:"responseStatus,omitempty"`
	Error     string       `json:"error,omitempty"`
	CreatedAt unit.Time    `json:"createdAt"`
	NextAt    unit.Time    `json:"nextAttemptAt,omitzero"`
	EndedAt   unit.Time    `json:"endedAt,omitzero"`
}

func viewDelivery(d *notice.Delivery) deliveryView {
	return deliveryView{
		d.ID, d.Message, d.Event, d.Job, d.JobName, d.Target, d.State, d.Attempts, d.Status, d.Error,
		d.CreatedAt, d.NextAt, d.EndedAt,
	}
}

// viewAll applies view to all records.
func viewAll[T, V any](records []*T, view func(*T) V) []V {
	all := make([]V, len(records))
	for i, r := range records {
		all[i] = view(r)
	}
	return all
}

// list handles GET /webhooks.
func (h webhooks) list(c *gin.Context, by app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	records, err := h.svc.ListHooks(c.Request.Context(), by)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, map[string]any{"webhooks": viewAll(records, viewWebhook)})
}

// create handles POST /webhooks.
func (h webhooks) create(c *gin.Context, by app.Caller) error {
	request, faults, err := decode.Lenient(c, func(r *decode.Reader) delivery.HookSettings {
		return readWebhook(r.Object(decode.Required), decode.Required)
	})
	if err != nil {
		return err
	}
	request.Faults = faults
	record, err := h.svc.Create(c.Request.Context(), by, request)
	if err != nil {
		return err
	}
	auditObject(c, record.ID)
	return respond.JSON(c.Writer, http.StatusOK, newWebhookView{record.Secret, viewWebhook(record)})
}

func readWebhook(b *decode.Object, n decode.Need) (h delivery.HookSettings) {
	if url := b.Member("url", strictjson.String, n); url != nil {
		h.URL = &url.Text
	}
	if events := b.Texts("events"); events != nil {
		h.Events = &events
	}
	if disabled := b.Member("disabled", strictjson.Bool, decode.Optional); disabled != nil {
		is, _ := strconv.ParseBool(disabled.Text) // it is always true or false
		h.Disabled = &is
	}
	return h
}

type webhookRequest struct {
	id string
	delivery.HookSettings
}

// change handles PATCH /webhooks/{webhookId}.
func (h webhooks) change(c *gin.Context, by app.Caller) error {
	request, faults, err := decode.Lenient(c, func(r *decode.Reader) webhookRequest {
		return webhookRequest{r.Path("webhookId"), readWebhook(r.Object(decode.Required), decode.Optional)}
	})
	if err != nil {
		return err
	}
	request.Faults = faults
	record, err := h.svc.Change(c.Request.Context(), by, request.id, request.HookSettings)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewWebhook(record))
}

// maxOverlap is the maximum time during which two secrets of a webhook are valid.
const maxOverlap = 30 * 24 * time.Hour

// rotate handles POST /webhooks/{webhookId}/rotate.
func (h webhooks) rotate(c *gin.Context, by app.Caller) error {
	const day = 24 * 60 * 60
	req, err := decode.Request(c, func(r *decode.Reader) rotation {
		id, overlap := r.Path("webhookId"), int64(day)
		if seconds := r.Object(decode.Optional).Integer("overlapSeconds", 0, int64(maxOverlap/time.Second)); seconds != nil {
			overlap = *seconds
		}
		return rotation{id, time.Duration(overlap) * time.Second}
	})
	if err != nil {
		return err
	}
	record, err := h.svc.Rotate(c.Request.Context(), by, req.id, req.overlap)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, newWebhookView{record.Secret, viewWebhook(record)})
}

// test handles POST /webhooks/{webhookId}/test.
func (h webhooks) test(c *gin.Context, by app.Caller) error {
	id, err := decode.Request(c, webhookID)
	if err != nil {
		return err
	}
	d, err := h.svc.Test(c.Request.Context(), by, id)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewDelivery(d))
}

// delete handles DELETE /webhooks/{webhookId}.
func (h webhooks) delete(c *gin.Context, by app.Caller) error {
	id, err := decode.Request(c, webhookID)
	if err != nil {
		return err
	}
	if err := h.svc.Delete(c.Request.Context(), by, id); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

func webhookID(r *decode.Reader) string {
	id := r.Path("webhookId")
	r.NoBody()
	return id
}

type logRequest struct {
	id    string
	limit int
}

// deliveries handles GET /webhooks/{webhookId}/deliveries.
func (h webhooks) deliveries(c *gin.Context, by app.Caller) error {
	const usual = 50
	req, err := decode.Request(c, func(r *decode.Reader) logRequest {
		return logRequest{r.Path("webhookId"), int(r.Integer("limit", 1, app.MaxPage, usual))}
	})
	if err != nil {
		return err
	}
	all, err := h.svc.Log(c.Request.Context(), by, req.id, req.limit)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, map[string]any{"deliveries": viewAll(all, viewDelivery)})
}

type noticesView struct {
	Notify     []string       `json:"notify"`
	Deliveries []deliveryView `json:"deliveries"`
}

// ofJob handles GET /jobs/{jobName}/notices.
func (h webhooks) ofJob(c *gin.Context, by app.Caller) error {
	name, err := decode.Request(c, func(r *decode.Reader) string { return r.Path("jobName") })
	if err != nil {
		return err
	}
	targets, all, err := h.svc.OfJob(c.Request.Context(), by, name)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, noticesView{append([]string{}, targets...), viewAll(all, viewDelivery)})
}
