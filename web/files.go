package web

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/listing"
	"molrun/app/job/upload"
	"molrun/web/decode"
	"molrun/web/respond"
)

// files handles requests to list and delete uploads.
type files struct {
	svc   *upload.Files
	lists *listing.Lists
}

// list handles GET /files.
func (h files) list(c *gin.Context, by app.Caller) error {
	query, faults := decode.Query(c, func(r *decode.Reader) listing.FileQuery {
		return listing.FileQuery{
			Folder:            r.Text("folder"),
			SHA256:            r.Digest("sha256"),
			StartKey:          r.StartKey(),
			Limit:             int(r.Integer("limit", 1, app.MaxPage, listing.DefaultPage)),
			WholeOrganization: r.Flag("organization"),
		}
	})
	query.Faults = faults
	page, err := h.lists.Files(c.Request.Context(), by, query)
	if err != nil {
		return err
	}
	answer := respond.Page{Noun: "files", Records: make([]json.RawMessage, len(page.Uploads)), StartKey: page.StartKey}
	for i, u := range page.Uploads {
		view := viewFile(u)
		view.Email = u.Email
		answer.Records[i], _ = json.Marshal(view) // strings, numbers and a time can't fail to marshal
	}
	answer.Write(c.Writer)
	return nil
}

type readerView struct {
	JobID     app.JobID  `json:"jobId"`
	JobName   string     `json:"jobName"`
	Email     string     `json:"jobEmail"`
	Type      string     `json:"type"`
	Status    app.Status `json:"status"`
	CreatedAt unit.Time  `json:"createdAt"`
	Rows      int        `json:"rows,omitempty"`
}

// readers handles GET /files/{fileId}/jobs.
func (h files) readers(c *gin.Context, by app.Caller) error {
	id, err := decode.Request(c, func(r *decode.Reader) string { return r.Path("fileId") })
	if err != nil {
		return err
	}
	found, more, err := h.lists.ReadersOf(c.Request.Context(), by, id)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewReaders(found, more))
}

func viewReaders(found []listing.Reader, more bool) map[string]any {
	views := make([]readerView, len(found))
	for i, r := range found {
		views[i] = readerView{r.ID, r.Name, r.Email, r.Type, r.Status, r.CreatedAt, r.Rows}
	}
	return map[string]any{"jobs": views, "more": more}
}

// delete handles DELETE /files/{fileId}.
func (h files) delete(c *gin.Context, by app.Caller) error {
	id, err := decode.Request(c, func(r *decode.Reader) string {
		id := r.Path("fileId")
		r.NoBody()
		return id
	})
	if err != nil {
		return err
	}
	if err := h.svc.Delete(c.Request.Context(), by, id); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// fileView is an upload, completed or pending. Listings add its owner.
type fileView struct {
	Status      string       `json:"status"`
	FileID      app.UploadID `json:"fileId"`
	Filename    string       `json:"filename"`
	Folder      string       `json:"folder"`
	Size        int64        `json:"size"`
	SHA256      string       `json:"sha256,omitempty"`
	ContentType string       `json:"contentType"`
	UploadedAt  unit.Time    `json:"uploadedAt,omitzero"`
	Email       string       `json:"email,omitempty"`
}

func viewFile(u *app.Upload) fileView {
	status := "pending"
	if u.Completed() {
		status = "completed"
	}
	return fileView{
		Status:      status,
		FileID:      u.ID,
		Filename:    u.Filename,
		Folder:      u.Folder,
		Size:        u.Size,
		SHA256:      u.SHA256,
		ContentType: u.ContentType,
		UploadedAt:  u.CompletedAt,
	}
}
