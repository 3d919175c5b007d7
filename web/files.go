package web

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/unit"
)

// fileView is an upload: completed, or pending in a listing, which also names
// its owner.
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

type filesRequest struct{ app.FileQuery }

func (r *filesRequest) read(in *input) {
	r.Folder = in.text("folder")
	r.StartKey = in.startKey()
	r.Limit = int(in.integer("limit", 1, app.MaxPage, app.DefaultPage))
	r.WholeOrganization = in.flag("organization")
}

// files handles GET /files.
func (a *API) files(c *gin.Context) {
	req, err := decode[filesRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	page, err := a.svc.Files.List(ctx(c), caller(c), req.FileQuery)
	if err != nil {
		fail(c, err)
		return
	}
	records := make([]json.RawMessage, len(page.Uploads))
	for i, u := range page.Uploads {
		view := viewFile(u)
		view.Email = u.Email
		records[i], _ = json.Marshal(view) // strings, numbers and a time
	}
	replyPage(c, "files", records, page.StartKey, nil)
}

type fileRequest struct{ id string }

func (r *fileRequest) read(in *input) {
	r.id = in.path("fileId")
	in.noBody()
}

// deleteFile handles DELETE /files/{fileId}.
func (a *API) deleteFile(c *gin.Context) {
	req, err := decode[fileRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	if err := a.svc.Files.Delete(ctx(c), caller(c), req.id); err != nil {
		fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}
