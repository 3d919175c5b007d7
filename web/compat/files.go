package compat

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"molrun/app/client"
	"molrun/web/edge"
	"molrun/web/respond"
)

// defaultFolder is the API's folder for files without one; clients of this mount omit it.
const defaultFolder = "inputs"

// pathOf returns the path of a file in the form that clients use.
func pathOf(u *client.File) string {
	if u.Folder == defaultFolder {
		return u.Filename
	}
	return u.Folder + "/" + u.Filename
}

// uploads calls do for the completed uploads that match a query, newest first.
func (c *call) uploads(ask url.Values, do func(*client.File)) error {
	ask.Set("limit", "100")
	for {
		a, err := c.api.Get(c.ctx(), ask, "files")
		if err != nil {
			return err
		}
		got, err := client.Decode[struct {
			Files    []*client.File `json:"files"`
			StartKey string         `json:"startKey"`
		}](a)
		if err != nil {
			return err
		}
		for _, u := range got.Files {
			if u.Status == "completed" {
				do(u)
			}
		}
		if got.StartKey == "" {
			return nil
		}
		ask.Set("startKey", got.StartKey)
	}
}

// listedFile is an entry of the file list with metadata.
type listedFile struct {
	Name         string    `json:"name"`
	Size         int64     `json:"size"`
	LastModified time.Time `json:"lastModified"`
}

// files handles GET files. It returns a list of names or of objects.
func (c *call) files() (any, error) {
	folder := strings.Trim(c.r.URL.Query().Get("folder"), "/")
	ask := url.Values{}
	if folder != "" || !c.switchOn("includeAll") {
		ask.Set("folder", cmp.Or(folder, defaultFolder))
	}
	seen, list := map[string]bool{}, []listedFile{}
	err := c.uploads(ask, func(u *client.File) {
		if !seen[pathOf(u)] { // skips older files with the same name
			seen[pathOf(u)] = true
			list = append(list, listedFile{pathOf(u), u.Size, u.UploadedAt})
		}
	})
	if err != nil {
		return nil, err
	}
	if c.switchOn("includeMetadata") {
		return list, nil
	}
	names := make([]string, 0, len(list))
	for _, f := range list {
		names = append(names, f.Name)
	}
	if c.switchOn("includeFolders") && folder == "" {
		all, err := c.folderNames()
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			names = append(names, name+"/")
		}
	}
	return names, nil
}

// folders handles GET getFolders.
func (c *call) folders() (any, error) {
	names, err := c.folderNames()
	return map[string]any{"folders": names}, err
}

func (c *call) folderNames() ([]string, error) {
	seen, names := map[string]bool{defaultFolder: true}, []string{}
	err := c.uploads(url.Values{}, func(u *client.File) {
		if !seen[u.Folder] {
			seen[u.Folder] = true
			names = append(names, u.Folder)
		}
	})
	slices.Sort(names)
	return names, err
}

// deleteFile handles DELETE and POST delete-file, for one path or a whole folder.
func (c *call) deleteFile() (any, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	path, folder := strings.Trim(c.member(body, "filePath", "filename", "fileName"), "/"), strings.Trim(c.member(body, "folder"), "/")
	if path == "" && folder == "" {
		return nil, rejectf("send either filePath (folder/filename) or folder")
	}
	ask, name := url.Values{"folder": {folder}}, ""
	if path != "" {
		in, file := splitPath(cmp.Or(folder, defaultFolder), path)
		ask.Set("folder", in)
		name = file
	}
	var ids []string
	err = c.uploads(ask, func(u *client.File) {
		if name == "" || u.Filename == name {
			ids = append(ids, u.ID)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, &client.Error{Status: http.StatusNotFound, Code: "NOT_FOUND", Message: "File " + cmp.Or(path, folder+"/") + " was not found."}
	}
	for _, id := range ids {
		if err := c.api.DeleteFile(c.ctx(), id); err != nil {
			return nil, err
		}
	}
	return map[string]string{"message": cmp.Or(path, folder+"/") + " was deleted."}, nil
}

// splitPath splits a path into folder and name. Without a folder in the path, it returns
// the given one.
func splitPath(folder, path string) (in, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return folder, path
}

// upload handles PUT upload/{path}: it stores the request body or, if there is none,
// returns links for the upload.
func (c *call) upload() (any, error) {
	in, name := splitPath(c.r.URL.Query().Get("folder"), c.r.PathValue("path"))
	u, err := c.api.CreateUpload(c.ctx(), in, name)
	if err != nil {
		return nil, err
	}
	if c.r.ContentLength == 0 {
		return map[string]any{
			"fileId": u.FileID, "uploadUrl": ours(u.UploadURL), "downloadUrl": u.DownloadURL, "filename": u.Filename, "folder": u.Folder, "fileUrl": u.DownloadURL,
		}, nil
	}
	if err := c.store(u.UploadURL); err != nil {
		return nil, err
	}
	f, err := c.api.CompleteUpload(c.ctx(), u.FileID, c.r.ContentLength)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"fileUrl": u.DownloadURL, "filename": pathOf(f), "fileId": f.ID, "size": f.Size, "message": f.Filename + " was uploaded.",
	}, nil
}

// store sends the request body to a link of the API.
func (c *call) store(link string) error {
	status, answer := c.putBody(link[strings.Index(link, edge.LinkPath):])
	if status/100 == 2 {
		return nil
	}
	return c.rejection(status, answer)
}

// putBody forwards the request body. It drops the client's content type, because links of
// the API only allow the type that matches the file's name, or none.
func (c *call) putBody(target string) (status int, answer []byte) {
	in := edge.InProcessRequest(c.r, http.MethodPut, target, c.r.Body)
	in.Header.Del("X-Api-Key")
	in.ContentLength = c.r.ContentLength
	return edge.SendInProcess(c.mount.api, c.w, in)
}

func (c *call) rejection(status int, answer []byte) error {
	var said struct {
		Error struct{ Code, Message string }
	}
	_ = json.Unmarshal(answer, &said) // other bodies leave the members empty
	return &client.Error{Status: status, Code: said.Error.Code, Message: said.Error.Message}
}

// ours converts a link of the API to a link of this mount.
func ours(link string) string {
	i := strings.Index(link, edge.LinkPath)
	return link[:i] + Path + link[i+1:]
}

// presign handles POST getPresignedUploadUrl. A PUT to the link completes the upload.
func (c *call) presign() (any, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	path := c.member(body, "filename", "fileName")
	if path == "" {
		return nil, rejectf("send filename, the name of the file")
	}
	in, name := splitPath(c.member(body, "folder"), path)
	u, err := c.api.CreateUpload(c.ctx(), in, name)
	if err != nil {
		return nil, err
	}
	return map[string]any{"uploadUrl": ours(u.UploadURL), "fileUrl": u.DownloadURL, "filename": u.Filename, "fileId": u.FileID}, nil
}

// putBlob handles a PUT to a link of this mount: it sends the body to the API's own link
// and then completes the upload.
func (m *mount) putBlob(w http.ResponseWriter, r *http.Request) {
	c := &call{mount: m, w: w, r: r}
	target := strings.TrimPrefix(r.URL.RequestURI(), strings.TrimSuffix(Path, "/"))
	if status, answer := c.putBody(target); status/100 != 2 {
		c.fail(c.rejection(status, answer))
		return
	}
	finish := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := m.options.Finish(r.Context(), r.PathValue("id")); err != nil {
			respond.Error(w, r, err)
		}
	})
	if status, answer := edge.SendInProcess(finish, w, r); status/100 != 2 {
		c.fail(c.rejection(status, answer))
		return
	}
	c.writeAnswer(http.StatusOK, map[string]string{"message": r.PathValue("name") + " was uploaded."})
}
