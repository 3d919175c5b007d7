package house

// rules say who may import whom. Every package may import the leaves.
var rules = map[string]rule{
	".": {own: []string{"app/cli"}},

	"app/unit":       {},
	"app/nearest":    {},
	"app/protocol":   {},
	"app/durable":    {},
	"app/fault":      {},
	"app/naming":     {others: []string{"golang.org/x/text"}},
	"app/apikey":     {},
	"app/strictjson": {},
	"app/placement":  {},
	"app/audit":      {},

	"app/algorithm":  {others: []string{"pelletier/go-toml", "santhosh-tekuri/jsonschema"}, loop: 8},
	"app/algorithms": {own: []string{"app/algorithm"}},
	"app/routing":    {own: []string{"app/algorithm"}},
	"app":            {own: []string{"app/algorithm", "app/routing"}, loop: 8},
	"app/retention":  {own: []string{"app"}},
	"app/config":     {own: []string{"app", "app/retention", "app/routing"}, others: []string{"pelletier/go-toml"}},

	"app/task":                   {own: []string{"app/task/process", "app/task/sandbox"}},
	"app/task/process":           {},
	"app/task/sandbox":           {own: []string{"app/task/process"}},
	"app/task/start":             {own: []string{"app/task", "app/task/sandbox"}},
	"app/runner":                 {own: []string{"app", "app/algorithm", "app/task"}, others: []string{"rs/zerolog"}},
	"app/executor/local":         {own: []string{"app", "app/task", "app/task/process", "app/task/sandbox"}},
	"app/executor/slurm":         {own: []string{"app", "app/task", "app/task/process", "app/task/sandbox"}},
	"app/executor/slurm/cluster": {},                                                     // of tests alone
	"app/executor/conformance":   {own: []string{"app", "app/task", "app/task/process"}}, // of tests alone

	"app/engine/cgidp":           {own: []string{"app/engine/cgidp/md", "app/engine/cgidp/plot", "app/engine/cgidp/sequence"}},
	"app/engine/cgidp/md":        {others: []string{"golang.org/x/sys"}},
	"app/engine/cgidp/plot":      {others: []string{"gonum.org/v1/plot"}},
	"app/engine/cgidp/sequence":  {},
	"app/engine/cgidp/cgidptest": {own: []string{"app/engine/cgidp/md", "app/engine/cgidp/sequence"}}, // of tests alone

	"storage": {own: []string{"app"}, others: []string{"go.etcd.io/bbolt"}},

	"blobs":        {own: []string{"app", "blobs/link", "blobs/result"}, others: []string{"rs/zerolog"}},
	"blobs/link":   {own: []string{"app"}, others: []string{"golang-jwt/jwt"}},
	"blobs/result": {own: []string{"app"}},

	"web":          {own: []string{"app", "app/algorithm", "app/retention"}, others: []string{"gin-gonic/gin", "rs/zerolog", "prometheus/client_golang"}},
	"web/client":   {},
	"web/contract": {others: []string{"goccy/go-yaml", "santhosh-tekuri/jsonschema", "golang.org/x/text"}}, // of tests alone

	"app/cli": {own: []string{"*"}, others: []string{"spf13/cobra", "spf13/pflag", "rs/zerolog", "mattn/go-isatty", "prometheus/client_golang"}},

	"app/bench":      {own: []string{"app", "storage"}, others: []string{"go.etcd.io/bbolt", "golang.org/x/sys", "spf13/cobra", "spf13/pflag"}},
	"app/faults":     {}, // tests alone
	"app/simulation": {}, // tests alone
	"app/house":      {}, // tests alone
}
