package static

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"

	"molrun/app/client/python"
)

// running is the executable file of this process, even if its path has since been
// replaced.
const running = "/proc/self/exe"

// program describes the running program.
type program struct {
	sum  string
	size int64
}

// openProgram hashes the running program, which takes a fraction of a second.
func openProgram() (program, error) {
	f, err := os.Open(running)
	if err != nil {
		return program{}, err
	}
	defer f.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	return program{hex.EncodeToString(hash.Sum(nil)), size}, err
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// checksums responds with lines for sha256sum -c.
func (c *clients) checksums(w http.ResponseWriter, r *http.Request) error {
	p, err := c.program()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s  molrun\n", p.sum)
	for _, f := range []python.File{c.wheel, c.archive} {
		text += fmt.Sprintf("%s  %s\n", sum(f.Content), f.Name)
	}
	newFile(typeOf("checksums.txt"), []byte(text)).serve(w, r)
	return nil
}
