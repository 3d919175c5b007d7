package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// importTable says who may import whom: packages of this module, then modules
// of others. "*" is every one.
var importTable = map[string]struct{ own, others []string }{
	"molrun":                     {own: []string{"app/cli"}},
	"app":                        {own: []string{"app/protocol"}, others: []string{"pelletier/go-toml", "santhosh-tekuri/jsonschema", "rs/zerolog", "golang.org/x/text"}},
	"app/algorithms":             {own: []string{"app"}},
	"app/protocol":               {},
	"app/task":                   {own: []string{"app/protocol"}},
	"app/task/start":             {own: []string{"app/task"}},
	"app/runner":                 {own: []string{"app", "app/task"}, others: []string{"rs/zerolog"}},
	"app/executor/local":         {own: []string{"app", "app/task"}},
	"app/engine/cgidp":           {own: []string{"app/engine/cgidp/md", "app/engine/cgidp/plot", "app/engine/cgidp/sequence", "app/nearest"}},
	"app/engine/cgidp/md":        {others: []string{"golang.org/x/sys"}},
	"app/engine/cgidp/plot":      {others: []string{"gonum.org/v1/plot"}},
	"app/engine/cgidp/sequence":  {},
	"app/engine/cgidp/cgidptest": {}, // of tests alone
	"storage":                    {own: []string{"app"}, others: []string{"go.etcd.io/bbolt"}},
	"blobs":                      {own: []string{"app", "app/fault", "blobs/link", "blobs/result", "app/durable"}, others: []string{"rs/zerolog"}},
	"blobs/link":                 {own: []string{"app", "app/fault", "app/durable"}, others: []string{"golang-jwt/jwt"}},
	"blobs/result":               {own: []string{"app", "app/fault", "app/durable"}},
	"app/durable":                {},
	"web":                        {own: []string{"app"}, others: []string{"gin-gonic/gin", "rs/zerolog", "prometheus/client_golang"}},
	"web/client":                 {},
	"app/cli":                    {own: []string{"*"}, others: []string{"spf13/cobra", "spf13/pflag", "rs/zerolog", "mattn/go-isatty", "prometheus/client_golang"}},
	"web/contract":               {others: []string{"goccy/go-yaml", "santhosh-tekuri/jsonschema", "golang.org/x/text"}}, // of tests alone
	"app/bench":                  {own: []string{"app", "app/placement", "app/unit", "storage"}, others: []string{"spf13/cobra", "spf13/pflag", "go.etcd.io/bbolt", "golang.org/x/sys"}},
	"app/faults":                 {}, // tests alone
	"app/simulation":             {}, // tests alone
	"app/executor/slurm":         {own: []string{"app", "app/task"}},
	"app/executor/conformance":   {own: []string{"app", "app/task"}}, // of tests alone
	"app/executor/slurm/cluster": {},                                 // of tests alone
}

func TestImports(t *testing.T) {
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "molrun/...")
	out, err := list.Output()
	must(t, err)
	doc, err := os.ReadFile(filepath.Join(root, "app", "doc.go"))
	must(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for decoder.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		must(t, decoder.Decode(&p))
		name := strings.TrimPrefix(p.ImportPath, "molrun/")
		allowed, ok := importTable[name]
		if !ok {
			t.Errorf("package %s is not in the table: say there what it may import", name)
			continue
		}
		if name != "molrun" && name != "app" && !strings.Contains(string(doc), "//\tmolrun/"+name+" ") {
			t.Errorf("app/doc.go does not say what package %s is for", name)
		}
		for _, path := range p.Imports {
			own, isOwn := strings.CutPrefix(path, "molrun/")
			first, _, _ := strings.Cut(path, "/")
			switch {
			case isOwn:
				if !slices.Contains(allowed.own, own) && !slices.Contains(allowed.own, "*") {
					t.Errorf("%s imports %s", name, own)
				}
			case strings.Contains(first, "."):
				if !slices.ContainsFunc(allowed.others, func(m string) bool { return strings.Contains(path+"/", m+"/") }) {
					t.Errorf("%s imports %s", name, path)
				}
			}
		}
	}
}
