package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"molrun/app/fault"
	"molrun/app/unit"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
	"molrun/storage/kv/boltfile"
)

func lookAtData(_ context.Context, p *patient) []finding {
	info, err := os.Stat(p.data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return say(doubtful, "%s is not there yet; molrun serve makes it", p.data)
	case err != nil:
		return say(wrong, "%v; give the service's user access to it", err)
	case !info.IsDir():
		return say(wrong, "%s is no directory; name another by the setting data", p.data)
	}
	if text := foreign(p.data, info); text != "" {
		return say(wrong, "%s", text)
	}
	switch perm := info.Mode().Perm(); {
	case perm&0o022 != 0:
		return say(wrong, "others may write to %s (mode %#o), so the service refuses it; run chmod 700 %[1]s", p.data, perm)
	case perm&0o055 != 0:
		return say(doubtful, "others may look into %s (mode %#o); run chmod 700 %[1]s", p.data, perm)
	}
	return p.lookAtModes()
}

// foreign says whose something is, if it is another's than ours.
func foreign(path string, info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return ""
	}
	return fmt.Sprintf("%s belongs to user %d and this is user %d; run molrun as that user, or chown -R it to this one", path, stat.Uid, os.Geteuid())
}

// lookAtModes looks at what lies in the data directory.
func (p *patient) lookAtModes() []finding {
	var found []finding
	for _, name := range []string{databaseName, socketName, "uploads", "jobs"} {
		path := filepath.Join(p.data, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue // what has to be there, other checks tell
		}
		if text := foreign(path, info); text != "" {
			found = append(found, say(wrong, "%s", text)...)
		} else if perm := info.Mode().Perm(); perm&0o077 != 0 {
			found = append(found, say(wrong, "%s is open to others (mode %#o); run chmod go= %[1]s", path, perm)...)
		}
	}
	if found == nil {
		return say(fine, "%s is private to its user", p.data)
	}
	return found
}

func lookAtFileSystem(_ context.Context, p *patient) []finding {
	file, err := boltfile.FileSystemOf(p.nearest())
	switch {
	case err != nil:
		return say(doubtful, "%v", err)
	case file.Unsafe != "" && p.config.Database.FileSystem == "any":
		return say(doubtful, "%s lies on %s: %s; you have set database.file_system = \"any\"", p.data, file.Name, file.Unsafe)
	case file.Unsafe != "":
		return say(wrong, "%s lies on %s: %s; choose a directory on a local disk", p.data, file.Name, file.Unsafe)
	case file.Name == "tmpfs":
		return say(doubtful, "%s lies in memory (tmpfs): all is lost when the machine stops; choose a directory on a disk", p.data)
	case file.Name == "overlay":
		return say(doubtful, "%s lies in the container's own layer (overlay) and goes with the container; mount a volume there", p.data)
	}
	return say(fine, "%s lies on %s", p.data, file.Name)
}

func lookAtSpace(_ context.Context, p *patient) []finding {
	disk, err := blobs.Space(p.nearest(), int64(p.config.Disk.Reserve))
	free, reserve := disk.Free, disk.Reserve
	switch {
	case err != nil:
		return say(doubtful, "%v", err)
	case free < reserve:
		return say(wrong, "%s are free of the %s that are kept for records, so uploads are refused; delete files or jobs, or use a larger disk", unit.Bytes(free), unit.Bytes(reserve))
	case free < 2*reserve:
		return say(doubtful, "%s are free, and uploads are refused below %s; make room soon", unit.Bytes(free), unit.Bytes(reserve))
	}
	return say(fine, "%s are free; uploads leave %s of them", unit.Bytes(free), unit.Bytes(reserve))
}

func lookAtDatabase(_ context.Context, p *patient) []finding {
	if p.running {
		return say(fine, "it is open and held by %s", p.holder)
	}
	_, marker := os.Stat(p.database + boltfile.MarkerSuffix)
	if _, err := os.Stat(p.database); errors.Is(err, fs.ErrNotExist) && marker != nil {
		return say(doubtful, "there is none yet; molrun serve makes it")
	}
	records, err := storage.OpenReadOnly(p.database)
	switch {
	case errors.Is(err, fault.Unavailable):
		return say(wrong, "%s holds it, but no service answers on %s; look what that process is and stop it", p.holder, filepath.Join(p.data, socketName))
	case err != nil:
		return say(wrong, "%s", message(err))
	}
	defer records.Close() // only read from
	info, err := records.Info()
	switch {
	case err != nil:
		return say(wrong, "%v", err)
	case info.Lost != "":
		return say(wrong, "%s", info.Lost)
	}
	return say(fine, "it can be opened: schema %d, commit %d; molrun check looks at all of it", info.Schema, info.Commit)
}

func lookAtService(_ context.Context, p *patient) []finding {
	switch {
	case p.running && p.held:
		return say(fine, "%s runs on the data directory", p.holder)
	case p.running:
		return say(fine, "it runs on the data directory")
	}
	return say(doubtful, "none runs on the data directory; start it by molrun serve")
}

func lookAtSecret(_ context.Context, p *patient) []finding {
	err := link.CheckSecret(p.data)
	_, noDatabase := os.Stat(p.database)
	switch {
	case err == nil:
		return say(fine, "it is private and sound")
	case errors.Is(err, fs.ErrNotExist) && noDatabase != nil:
		return say(doubtful, "there is none yet; molrun serve makes it")
	case errors.Is(err, fs.ErrNotExist):
		return say(wrong, "it is missing: links and cursors that were given out no longer work; restore it from a backup, or the next start makes another")
	}
	return say(wrong, "%v", err)
}
