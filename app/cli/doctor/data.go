package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/server/host"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
	"molrun/storage/kv/boltfile"
)

func checkData(_ context.Context, in *installation) []Finding {
	info, err := os.Stat(in.data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if near := host.DataNearby(in.data); len(near) > 0 {
			return finding(Problem, "%s does not exist; if you mean %s, set it with --data or the setting data; molrun serve --init creates a new one", in.data, strings.Join(near, " or "))
		}
		return finding(Warning, "%s does not exist yet; molrun serve --init creates it", in.data)
	case err != nil:
		return finding(Problem, "%v; give the service's user access to it", err)
	case !info.IsDir():
		return finding(Problem, "%s is not a directory; set data to another", in.data)
	}
	if text := host.OtherOwner(in.data, info); text != "" {
		return finding(Problem, "%s", text)
	}
	switch perm := info.Mode().Perm(); {
	case perm&0o022 != 0:
		return finding(Problem, "%s is writable by others (mode %#o), so the service does not use it; run chmod 700 %[1]s", in.data, perm)
	case perm&0o055 != 0:
		return finding(Warning, "others can read %s (mode %#o); run chmod 700 %[1]s", in.data, perm)
	}
	return checkModes(in.data)
}

// checkModes checks the owner and mode of the main files and folders of the data
// directory.
func checkModes(data string) []Finding {
	var found []Finding
	for _, name := range []string{host.Database, host.Socket, "uploads", "jobs"} {
		path := filepath.Join(data, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue // other checks report missing files
		}
		if text := host.OtherOwner(path, info); text != "" {
			found = append(found, finding(Problem, "%s", text)...)
		} else if perm := info.Mode().Perm(); perm&0o077 != 0 {
			found = append(found, finding(Problem, "%s is accessible to others (mode %#o); run chmod go= %[1]s", path, perm)...)
		}
	}
	if found == nil {
		return finding(OK, "%s is private to its user", data)
	}
	return found
}

func checkFileSystem(_ context.Context, in *installation) []Finding {
	file, err := boltfile.FileSystemOf(in.existingDir())
	switch {
	case err != nil:
		return finding(Warning, "%v", err)
	case file.Unsafe != "" && in.config.Database.FileSystem == "any":
		return finding(Warning, "%s is on %s: %s; accepted because database.file_system = \"any\"", in.data, file.Name, file.Unsafe)
	case file.Unsafe != "":
		return finding(Problem, "%s is on %s: %s; choose a directory on a local disk", in.data, file.Name, file.Unsafe)
	case file.Name == "tmpfs":
		return finding(Warning, "%s is in memory (tmpfs): all data is lost when the machine stops; choose a directory on a disk", in.data)
	case file.Name == "overlay":
		return finding(Warning, "%s is in the container's own layer (overlay) and is deleted with the container; mount a volume there", in.data)
	}
	return finding(OK, "%s is on %s", in.data, file.Name)
}

func checkSpace(_ context.Context, in *installation) []Finding {
	disk, err := blobs.Space(in.existingDir(), int64(in.config.Disk.Reserve))
	free, reserve := disk.Free, disk.Reserve
	switch {
	case err != nil:
		return finding(Warning, "%v", err)
	case free < reserve:
		return finding(Problem, "%s are free, but %s must stay free for records, so uploads are rejected; delete files or jobs, or use a larger disk", unit.Bytes(free), unit.Bytes(reserve))
	case disk.Shortage(0) != "":
		return finding(Problem, "%s for records, so uploads are rejected; delete files or jobs, or use a file system with more inodes", disk.Shortage(0))
	case free < 2*reserve:
		return finding(Warning, "%s are free, and uploads are rejected below %s; free some space soon", unit.Bytes(free), unit.Bytes(reserve))
	}
	return finding(OK, "%s are free; uploads leave at least %s free", unit.Bytes(free), unit.Bytes(reserve))
}

func checkDatabase(_ context.Context, in *installation) []Finding {
	if in.running {
		return finding(OK, "it is in use by %s", in.holder)
	}
	_, marker := os.Stat(in.database + boltfile.MarkerSuffix)
	if _, err := os.Stat(in.database); errors.Is(err, fs.ErrNotExist) && marker != nil {
		return finding(Warning, "there is none yet; molrun serve creates it")
	}
	records, err := storage.OpenReadOnly(in.database)
	switch {
	case errors.Is(err, fault.Unavailable):
		return finding(Problem, "%s has it open, but no service responds on %s; check what that process is and stop it", in.holder, filepath.Join(in.data, host.Socket))
	case err != nil:
		return finding(Problem, "%s", fault.Text(err))
	}
	defer records.Close() // read-only
	info, err := records.Info()
	switch {
	case err != nil:
		return finding(Problem, "%v", err)
	case info.Lost != "":
		return finding(Problem, "%s", info.Lost)
	}
	return finding(OK, "it can be opened: schema %d, commit %d; run molrun check to verify all of it", info.Schema, info.Commit)
}

func checkService(_ context.Context, in *installation) []Finding {
	switch {
	case in.running && in.held:
		return finding(OK, "%s is running on the data directory", in.holder)
	case in.running:
		return finding(OK, "it is running on the data directory")
	}
	return finding(Warning, "none is running on the data directory; start it with molrun serve")
}

func checkSecret(_ context.Context, in *installation) []Finding {
	err := link.CheckSecret(in.data)
	_, noDatabase := os.Stat(in.database)
	switch {
	case err == nil:
		return finding(OK, "it is private and valid")
	case errors.Is(err, fs.ErrNotExist) && noDatabase != nil:
		return finding(Warning, "there is none yet; molrun serve creates it")
	case errors.Is(err, fs.ErrNotExist):
		return finding(Problem, "it is missing: existing links and cursors no longer work; restore it from a backup, or the next start creates another")
	}
	return finding(Problem, "%v", err)
}
