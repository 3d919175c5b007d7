package container

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
)

// Offsets of the magic number and the image ID in the header of a SIF file, and its
// length.
const (
	sifMark   = 32
	sifID     = 48
	sifHeader = 64
)

// fileID returns the ID stored in a .sif file when it was made. Hashing many gigabytes
// would take longer than many jobs.
func fileID(path string) (string, error) {
	if !IsFile(path) {
		return "", fmt.Errorf("the image %s is not a file; create one with: apptainer pull NAME.sif %[1]s, and use that file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the image %s does not exist or can't be read; copy it to that path", path)
	}
	defer f.Close()
	header := make([]byte, sifHeader)
	if _, err := io.ReadFull(f, header); err != nil || !bytes.HasPrefix(header[sifMark:], []byte("SIF_MAGIC")) {
		return "", fmt.Errorf("the image %s is not a SIF file; rebuild it with: apptainer build", path)
	}
	id := hex.EncodeToString(header[sifID:])
	return "sif:" + strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-"), nil
}
