package web

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
	"molrun/app/job/upload"
	"molrun/web/decode"
	"molrun/web/respond"
)

// uploads handles requests to create and complete uploads.
type uploads struct {
	svc  *upload.Files
	base publicURL
}

// create handles PUT /upload/{filename}.
func (h uploads) create(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) upload.Request {
		req := upload.Request{Filename: r.UncheckedPath("filename"), Folder: r.Text("folder"), SHA256: r.Digest("sha256")}
		if carriesFile(r.Request) {
			r.Fault("value", []any{"body"}, "send no body here; send the file to the uploadUrl of the response")
		}
		return req
	})
	req.Faults = decode.Faults(err) // reported together with errors in the name
	if req.Base, err = h.base.of(c.Request); err != nil {
		req.Faults = append(req.Faults, decode.Faults(err)...)
	}
	grant, err := h.svc.Create(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	view := viewGrant(grant)
	if req.SHA256 != "" {
		created := !grant.Upload.Completed()
		view.Created = &created
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

// enoughOfFile is how many body bytes are needed to tell a file from an empty document.
const enoughOfFile = 256

// carriesFile reports whether a request for links contains the file itself, of any type
// and size. It reads only the beginning.
func carriesFile(r *http.Request) bool {
	if r.ContentLength > enoughOfFile {
		return true
	}
	var start bytes.Buffer
	_, err := io.CopyN(&start, r.Body, enoughOfFile)
	text := string(bytes.TrimSpace(start.Bytes()))
	return err != io.EOF || text != "" && text != "null" && strings.Join(strings.Fields(text), "") != "{}"
}

type completion struct {
	id   string
	size *int64
}

// complete handles POST /upload/{fileId}/complete.
func (h uploads) complete(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) completion {
		return completion{r.Path("fileId"), r.Object(decode.Optional).Integer("size", 0, decode.MaxExact)}
	})
	if err != nil {
		return err
	}
	upload, err := h.svc.Complete(c.Request.Context(), by, req.id, req.size)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewFile(upload))
}

// renewal is a request for new links of an upload.
type renewal struct{ id, base string }

// renew handles POST /upload/{fileId}/link.
func (h uploads) renew(c *gin.Context, by app.Caller) error {
	base, err := h.base.of(c.Request)
	if err != nil {
		return err
	}
	req, err := decode.Request(c, func(r *decode.Reader) renewal {
		r.NoBody()
		return renewal{r.Path("fileId"), base}
	})
	if err != nil {
		return err
	}
	grant, err := h.svc.Renew(c.Request.Context(), by, req.id, req.base)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewGrant(grant))
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
	Created      *bool        `json:"created,omitempty"` // only set if the request specifies a digest
}

type instructions struct {
	Upload      string            `json:"upload"`
	Headers     map[string]string `json:"headers"`
	CurlExample string            `json:"curlExample"`
}

func viewGrant(g *upload.Grant) uploadView {
	u := g.Upload
	status, upload := "ready", "PUT the bytes of the file to uploadUrl with these headers, then POST to /upload/"+string(u.ID)+"/complete."
	if u.Completed() {
		status, upload = "completed", "Nothing to send: a file with this content is already stored. Refer to it by its fileId."
	}
	return uploadView{
		Status:      status,
		FileID:      u.ID,
		UploadURL:   g.UploadURL,
		DownloadURL: g.DownloadURL,
		Filename:    u.Filename,
		Folder:      u.Folder,
		ExpiresAt:   g.ExpiresAt,
		Instructions: instructions{
			Upload:      upload,
			Headers:     map[string]string{"Content-Type": u.ContentType},
			CurlExample: curlExample(u, g.UploadURL),
		},
	}
}

// curlExample returns a command that uploads the file of that name from the current
// directory. It is quoted so that no name is interpreted as an option, a pattern or
// several words.
func curlExample(u *app.Upload, url string) string {
	return "curl --fail --globoff --upload-file " + plaintext.ShellWord("./"+u.Filename) +
		" --header " + plaintext.ShellWord("Content-Type: "+u.ContentType) + " " + plaintext.ShellWord(url)
}
