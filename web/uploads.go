package web

import (
	"bytes"
	"io"
	"strings"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/unit"
)

type uploadRequest struct{ app.UploadRequest }

func (r *uploadRequest) read(in *input) {
	r.Filename = in.decoded("filename")
	r.Folder = in.text("folder")
	if carriesFile(in.c) {
		in.fault("value", []any{"body"}, "send no body here: the answer's uploadUrl takes the bytes of the file")
	}
}

// carriesFile reports whether a request for links came with the file itself,
// whatever its type and size. No more than its beginning is read.
func carriesFile(c *gin.Context) bool {
	const enough = 256
	if c.Request.ContentLength > enough {
		return true
	}
	var start bytes.Buffer
	_, err := io.CopyN(&start, c.Request.Body, enough)
	text := string(bytes.TrimSpace(start.Bytes()))
	return err != io.EOF || text != "" && text != "null" && strings.Join(strings.Fields(text), "") != "{}"
}

type uploadView struct {
	Status       string       `json:"status"`
	FileID       app.UploadID `json:"fileId"`
	UploadURL    string       `json:"uploadUrl"`
	DownloadURL  string       `json:"downloadUrl"`
	Filename     string       `json:"filename"`
	Folder       string       `json:"folder"`
	ExpiresAt    unit.Time    `json:"expiresAt"`
	Instructions instructions `json:"instructions"`
}

type instructions struct {
	Upload      string            `json:"upload"`
	Headers     map[string]string `json:"headers"`
	CurlExample string            `json:"curlExample"`
}

// createUpload handles PUT /upload/{filename}.
func (a *API) createUpload(c *gin.Context) {
	req, err := decode[uploadRequest](c)
	req.Faults = faultsOf(err)
	if req.Base, err = a.base(c.Request); err != nil {
		req.Faults = append(req.Faults, faultsOf(err)...)
	}
	grant, err := a.svc.Files.Create(ctx(c), caller(c), req.UploadRequest)
	if err != nil {
		fail(c, err)
		return
	}
	reply(c, viewGrant(grant))
}

func viewGrant(g *app.UploadGrant) uploadView {
	u := g.Upload
	return uploadView{
		Status:      "ready",
		FileID:      u.ID,
		UploadURL:   g.UploadURL,
		DownloadURL: g.DownloadURL,
		Filename:    u.Filename,
		Folder:      u.Folder,
		ExpiresAt:   g.ExpiresAt,
		Instructions: instructions{
			Upload:      "PUT the bytes of the file to uploadUrl with these headers, then POST to /upload/" + string(u.ID) + "/complete.",
			Headers:     map[string]string{"Content-Type": u.ContentType},
			CurlExample: curlExample(u, g.UploadURL),
		},
	}
}

// curlExample gives a command that sends the file of that name from the
// current directory. Nothing in a name can be taken for an option, a pattern
// or another word of the shell.
func curlExample(u *app.Upload, url string) string {
	return "curl --fail --globoff --upload-file " + shellQuote("./"+u.Filename) +
		" --header " + shellQuote("Content-Type: "+u.ContentType) + " " + shellQuote(url)
}

// shellQuote makes s one word of a POSIX shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

type completeRequest struct {
	id   string
	size *int64
}

func (r *completeRequest) read(in *input) {
	r.id = in.path("fileId")
	r.size = in.object(optional).integer("size", 0, maxExact)
}

// completeUpload handles POST /upload/{fileId}/complete.
func (a *API) completeUpload(c *gin.Context) {
	req, err := decode[completeRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	upload, err := a.svc.Files.Complete(ctx(c), caller(c), req.id, req.size)
	if err != nil {
		fail(c, err)
		return
	}
	reply(c, viewFile(upload))
}
