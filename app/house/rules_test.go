package house

// leaves may be imported by everybody. Each imports only those before it.
var leaves = []string{
	"app/unit", "app/nearest", "app/cursor", "app/protocol", "app/durable", "app/oneline", "app/digest", "app/sortid", "app/events",
	"app/fault", "app/naming", "app/apikey", "app/strictjson", "app/placement", "app/tomltree", "app/audit", "app/eta", "app/circle", "app/tables",
}

// rules say what else a package may import, and which have bounds of their own.
var rules = map[string]rule{
	"app/unit":       {},
	"app/nearest":    {},
	"app/cursor":     {},
	"app/protocol":   {},
	"app/durable":    {},
	"app/oneline":    {},
	"app/digest":     {},
	"app/sortid":     {},
	"app/events":     {},
	"app/fault":      {},
	"app/naming":     {others: []string{"golang.org/x/text"}},
	"app/apikey":     {},
	"app/strictjson": {},
	"app/placement":  {},
	"app/tomltree":   {others: []string{"pelletier/go-toml"}},
	"app/circle":     {},
	"app/eta":        {},
	"app/audit":      {others: []string{"rs/zerolog"}},
	"app/tables":     {},

	".": {own: []string{"app/cli"}},

	"app/algorithm":           {own: []string{"app/algorithm/command", "app/algorithm/formula", "app/algorithm/results", "app/algorithm/schema", "app/algorithm/validator"}, loop: 8},
	"app/algorithm/command":   {},
	"app/algorithm/formula":   {},
	"app/algorithm/results":   {},
	"app/algorithm/schema":    {others: []string{"santhosh-tekuri/jsonschema"}},
	"app/algorithm/validator": {},
	"app/algorithms":          {own: []string{"app/algorithm"}},
	"app/routing":             {own: []string{"app/algorithm"}},
	"app/fanout":              {own: []string{"app/algorithm"}},

	"app":           {own: []string{"app/algorithm", "app/algorithm/validator", "app/fanout", "app/routing"}, loop: 8, files: 32, lines: 5000},
	"app/access":    {own: []string{"app"}},
	"app/estimate":  {own: []string{"app", "app/algorithm"}},
	"app/upload":    {own: []string{"app"}},
	"app/listing":   {own: []string{"app", "app/algorithm"}},
	"app/output":    {own: []string{"app", "app/algorithm/results", "app/tables", "app/task"}, others: []string{"golang.org/x/sys"}},
	"app/feed":      {own: []string{"app"}},
	"app/follow":    {own: []string{"app", "app/access", "app/feed", "app/listing"}},
	"app/retention": {own: []string{"app"}},
	"app/resubmit":  {own: []string{"app", "app/algorithm"}},
	"app/apptest":   {own: []string{"app", "app/algorithm", "app/upload", "blobs", "blobs/link", "storage"}, others: []string{"rs/zerolog"}}, // of tests alone
	"app/config":    {own: []string{"app", "app/retention", "app/routing"}, others: []string{"pelletier/go-toml"}},

	"app/runner":                   {own: []string{"app", "app/algorithm", "app/runner/forecast", "app/runner/result", "app/runner/turns", "app/task"}, others: []string{"rs/zerolog"}},
	"app/runner/turns":             {own: []string{"app"}},
	"app/runner/forecast":          {own: []string{"app", "app/runner/turns"}},
	"app/runner/result":            {own: []string{"app", "app/algorithm", "app/task"}, others: []string{"rs/zerolog"}},
	"app/runner/result/resulttest": {own: []string{"app"}}, // of tests alone

	"app/task":         {own: []string{"app/task/process", "app/task/sandbox"}},
	"app/task/process": {},
	"app/task/sandbox": {own: []string{"app/task/process"}},
	"app/task/start":   {own: []string{"app/task", "app/task/sandbox"}},

	"app/executor/local":         {own: []string{"app", "app/task", "app/task/process", "app/task/sandbox"}},
	"app/executor/slurm":         {own: []string{"app", "app/executor/slurm/client", "app/executor/slurm/gather", "app/task", "app/task/process"}},
	"app/executor/slurm/client":  {},
	"app/executor/slurm/gather":  {own: []string{"app"}},
	"app/executor/slurm/cluster": {},                                 // of tests alone
	"app/executor/conformance":   {own: []string{"app", "app/task"}}, // of tests alone

	"app/engine/cgidp":           {own: []string{"app/engine/cgidp/md", "app/engine/cgidp/plot", "app/engine/cgidp/sequence"}},
	"app/engine/cgidp/md":        {others: []string{"golang.org/x/sys"}},
	"app/engine/cgidp/plot":      {others: []string{"gonum.org/v1/plot"}},
	"app/engine/cgidp/sequence":  {},
	"app/engine/cgidp/cgidptest": {}, // of tests alone

	"storage":             {own: []string{"app", "app/feed", "storage/kv", "storage/kv/boltfile"}, others: []string{"go.etcd.io/bbolt"}},
	"storage/kv":          {own: []string{"app", "storage/kv/boltfile"}, others: []string{"go.etcd.io/bbolt"}},
	"storage/kv/boltfile": {others: []string{"go.etcd.io/bbolt"}},

	"blobs":        {own: []string{"app", "app/upload", "blobs/link", "blobs/result"}, others: []string{"rs/zerolog"}},
	"blobs/link":   {own: []string{"app"}, others: []string{"golang-jwt/jwt"}},
	"blobs/result": {own: []string{"app"}},

	"web":          {own: []string{"app", "app/access", "app/estimate", "app/fanout", "app/follow", "app/listing", "app/output", "app/retention", "app/upload", "web/decode", "web/edge", "web/redact", "web/respond"}, others: []string{"gin-gonic/gin", "prometheus/client_golang", "rs/zerolog"}},
	"web/decode":   {own: []string{"web/redact"}, others: []string{"gin-gonic/gin"}},
	"web/edge":     {own: []string{"web/redact", "web/respond"}, others: []string{"rs/zerolog"}},
	"web/redact":   {},
	"web/respond":  {others: []string{"rs/zerolog"}},
	"web/client":   {},
	"web/contract": {others: []string{"goccy/go-yaml", "santhosh-tekuri/jsonschema"}}, // of tests alone

	"app/server":      {own: []string{"app", "app/access", "app/algorithm", "app/algorithm/validator", "app/algorithms", "app/certificate", "app/config", "app/datadir", "app/engine/cgidp", "app/estimate", "app/executor/local", "app/executor/slurm", "app/follow", "app/host", "app/listing", "app/output", "app/resubmit", "app/retention", "app/routing", "app/runner", "app/snapshot", "app/upload", "blobs", "blobs/link", "storage", "web", "web/client", "web/edge", "web/respond"}, others: []string{"prometheus/client_golang", "rs/zerolog"}},
	"app/host":        {own: []string{"app", "app/algorithm", "app/config", "app/datadir", "app/executor/local", "app/executor/slurm"}},
	"app/datadir":     {own: []string{"app/config", "storage", "storage/kv/boltfile", "web/client"}, others: []string{"rs/zerolog"}},
	"app/snapshot":    {own: []string{"app", "app/config", "app/datadir", "blobs", "storage", "web/client"}},
	"app/check":       {own: []string{"app/config", "app/datadir", "app/snapshot", "storage", "storage/kv"}, others: []string{"rs/zerolog"}},
	"app/backup":      {own: []string{"app/check", "app/config", "app/datadir", "app/snapshot", "blobs", "storage/kv", "storage/kv/boltfile"}},
	"app/certificate": {own: []string{"app/config"}, others: []string{"rs/zerolog"}},
	"app/doctor":      {own: []string{"app/algorithm", "app/algorithms", "app/certificate", "app/config", "app/datadir", "app/executor/local", "app/executor/slurm", "app/follow", "app/host", "app/routing", "blobs", "blobs/link", "storage", "storage/kv/boltfile"}},
	"app/cli":         {own: []string{"*"}, others: []string{"mattn/go-isatty", "rs/zerolog", "spf13/cobra", "spf13/pflag"}},

	"app/bench":      {own: []string{"app", "storage"}, others: []string{"spf13/cobra", "spf13/pflag", "go.etcd.io/bbolt", "golang.org/x/sys"}},
	"app/mutants":    {}, // a program of its own
	"app/faults":     {}, // of tests alone
	"app/simulation": {}, // of tests alone
	"app/house":      {}, // of tests alone
}
