package house

// leaves may be imported by everybody. Each imports only those before it.
var leaves = []string{
	"app/unit", "app/plaintext", "app/gate", "app/nearest", "app/cursor", "app/protocol", "app/durable", "app/oneline", "app/digest", "app/sortid", "app/events",
	"app/fault", "app/naming", "app/apikey", "app/strictjson", "app/placement", "app/quota", "app/spent", "app/tomltree", "app/audit", "app/eta", "app/circle", "app/tables", "app/notice", "app/atoms", "app/algorithm/folder", "app/profile", "app/terminal", "app/jobfile", "app/reference",
}

// rules say what else a package may import, and which have bounds of their own.
var rules = map[string]rule{
	"app/unit":       {},
	"app/plaintext":  {},
	"app/gate":       {},
	"app/nearest":    {},
	"app/cursor":     {},
	"app/protocol":   {},
	"app/durable":    {others: []string{"golang.org/x/sys"}},
	"app/oneline":    {},
	"app/digest":     {},
	"app/sortid":     {},
	"app/events":     {},
	"app/fault":      {},
	"app/naming":     {others: []string{"golang.org/x/text"}},
	"app/apikey":     {},
	"app/strictjson": {},
	"app/placement":  {},
	"app/quota":      {},
	"app/spent":      {},
	"app/tomltree":   {others: []string{"pelletier/go-toml"}},
	"app/circle":     {},
	"app/eta":        {},
	"app/audit":      {others: []string{"rs/zerolog"}},
	"app/tables":     {},
	"app/notice":     {},
	"app/atoms":      {},
	"app/reference":  {},

	"app/algorithm/folder": {},

	"app/profile":  {},
	"app/terminal": {others: []string{"golang.org/x/term", "mattn/go-runewidth", "vbauerster/mpb"}},
	"app/jobfile":  {others: []string{"goccy/go-yaml", "pelletier/go-toml"}},

	".": {own: []string{"app/cli"}},

	"app/algorithm":            {own: []string{"app/algorithm/command", "app/algorithm/content", "app/algorithm/expression", "app/algorithm/formula", "app/algorithm/results", "app/algorithm/schema", "app/algorithm/texts", "app/algorithm/validator", "app/algorithm/version"}, loop: 8},
	"app/algorithm/catalogue":  {},
	"app/algorithm/pack":       {},
	"app/algorithm/command":    {},
	"app/algorithm/content":    {},
	"app/algorithm/expression": {others: []string{"expr-lang/expr"}},
	"app/algorithm/formula":    {},
	"app/algorithm/results":    {own: []string{"app/tables"}},
	"app/algorithm/schema":     {others: []string{"santhosh-tekuri/jsonschema"}},
	"app/algorithm/texts":      {},
	"app/algorithm/validator":  {},
	"app/algorithm/version":    {own: []string{"app/algorithm/results"}},
	"app/algorithms":           {own: []string{"app/algorithm", "app/algorithm/catalogue"}},
	"app/routing":              {own: []string{"app/algorithm"}},
	"app/fanout":               {own: []string{"app/algorithm"}},

	"app":             {own: []string{"app/algorithm", "app/algorithm/validator", "app/fanout", "app/routing"}, loop: 8, files: 32, lines: 5290},
	"app/access":      {own: []string{"app"}},
	"app/estimate":    {own: []string{"app", "app/algorithm"}},
	"app/upload":      {own: []string{"app"}},
	"app/download":    {own: []string{"app"}},
	"app/share":       {own: []string{"app", "app/access", "app/download"}},
	"app/listing":     {own: []string{"app", "app/algorithm"}},
	"app/output":      {own: []string{"app", "app/algorithm/results", "app/tables", "app/task"}, others: []string{"golang.org/x/sys"}},
	"app/feed":        {own: []string{"app"}},
	"app/follow":      {own: []string{"app", "app/access", "app/feed", "app/listing"}},
	"app/notify":      {own: []string{"app"}},
	"app/notify/post": {own: []string{"app/notify"}},
	"app/notify/mail": {own: []string{"app/notify"}, others: []string{"wneessen/go-mail"}},
	"app/retention":   {own: []string{"app"}},
	"app/usage":       {own: []string{"app"}},
	"app/metrics":     {own: []string{"app", "app/feed", "storage", "storage/kv"}, others: []string{"prometheus/client_golang"}},
	"app/status":      {own: []string{"app"}},
	"app/resubmit":    {own: []string{"app", "app/algorithm"}},
	"app/apptest":     {own: []string{"app", "app/algorithm", "app/upload", "blobs", "blobs/link", "storage"}, others: []string{"rs/zerolog"}}, // of tests alone
	"app/config":      {own: []string{"app", "app/retention", "app/routing"}, others: []string{"pelletier/go-toml"}},

	"app/runner":                   {own: []string{"app", "app/algorithm", "app/algorithm/results", "app/runner/flock", "app/runner/forecast", "app/runner/result", "app/runner/turns", "app/task"}, others: []string{"rs/zerolog"}, loop: 14},
	"app/runner/turns":             {own: []string{"app"}},
	"app/runner/flock":             {own: []string{"app/runner/turns"}},
	"app/runner/forecast":          {own: []string{"app", "app/runner/turns"}},
	"app/runner/result":            {own: []string{"app", "app/algorithm", "app/task"}, others: []string{"rs/zerolog"}},
	"app/runner/result/resulttest": {own: []string{"app"}}, // of tests alone

	"app/task":                         {own: []string{"app/task/container", "app/task/modules", "app/task/place", "app/task/process", "app/task/sandbox"}, loop: 15},
	"app/task/container":               {},
	"app/task/container/containertest": {own: []string{"app/task/container"}}, // of tests alone
	"app/task/gauge":                   {},
	"app/task/modules":                 {},
	"app/task/process":                 {},
	"app/task/place":                   {own: []string{"app/task/process"}},
	"app/task/sandbox":                 {own: []string{"app/task/container", "app/task/place", "app/task/process"}},
	"app/task/start":                   {own: []string{"app/task", "app/task/sandbox"}},
	"app/task/start/gauged":            {own: []string{"app/task", "app/task/gauge", "app/task/start"}},

	"app/executor/local":         {own: []string{"app", "app/task", "app/task/container", "app/task/process", "app/task/sandbox"}},
	"app/executor/slurm":         {own: []string{"app", "app/executor/slurm/client", "app/executor/slurm/gather", "app/task", "app/task/container", "app/task/process"}},
	"app/executor/slurm/client":  {},
	"app/executor/slurm/gather":  {own: []string{"app"}},
	"app/executor/slurm/cluster": {},                                 // of tests alone
	"app/executor/conformance":   {own: []string{"app", "app/task"}}, // of tests alone

	"app/engine/cgidp":      {own: []string{"app/engine/chains", "app/engine/plot", "app/engine/input", "app/engine/md", "app/engine/sequence", "app/engine/store", "app/engine/trajectory"}},
	"app/engine/condensate": {own: []string{"app/engine/chains", "app/engine/input", "app/engine/md", "app/engine/plot", "app/engine/sequence", "app/engine/slab", "app/engine/store", "app/engine/trajectory"}},
	"app/engine/binodal":    {own: []string{"app/engine/input", "app/engine/plot", "app/engine/store"}},
	"app/engine/plot":       {others: []string{"gonum.org/v1/plot"}},
	"app/engine/md":         {others: []string{"golang.org/x/sys"}},
	"app/engine/input":      {},
	"app/engine/chains":     {own: []string{"app/engine/input", "app/engine/md", "app/engine/sequence"}},
	"app/engine/sequence":   {},
	"app/engine/store":      {},
	"app/engine/slab":       {own: []string{"app/engine/md"}},
	"app/engine/trajectory": {own: []string{"app/engine/md", "app/engine/sequence"}},
	"app/engine/enginetest": {}, // of tests alone
	"app/engine/seqprop":    {own: []string{"app/engine/sequence"}},
	"app/engine/structsum":  {},

	"storage":             {own: []string{"app", "app/feed", "storage/kv", "storage/kv/boltfile", "storage/outbox"}, others: []string{"go.etcd.io/bbolt"}},
	"storage/outbox":      {own: []string{"app", "app/notify", "storage/kv"}},
	"storage/kv":          {own: []string{"app", "storage/kv/boltfile"}, others: []string{"go.etcd.io/bbolt"}},
	"storage/kv/boltfile": {others: []string{"go.etcd.io/bbolt"}},

	"blobs":        {own: []string{"app", "app/upload", "blobs/fields", "blobs/link", "blobs/result"}, others: []string{"rs/zerolog"}},
	"blobs/fields": {others: []string{"dunglas/httpsfv"}},
	"blobs/link":   {own: []string{"app"}, others: []string{"golang-jwt/jwt"}},
	"blobs/result": {own: []string{"app"}},

	"web":         {own: []string{"app", "app/access", "app/download", "app/estimate", "app/fanout", "app/follow", "app/listing", "app/notify", "app/output", "app/retention", "app/share", "app/status", "app/upload", "app/usage", "web/clients", "web/decode", "web/docs", "web/edge", "web/redact", "web/respond", "web/ui"}, others: []string{"gin-gonic/gin", "prometheus/client_golang", "rs/zerolog"}},
	"web/decode":  {own: []string{"web/redact"}, others: []string{"gin-gonic/gin"}},
	"web/edge":    {own: []string{"web/redact", "web/respond"}, others: []string{"rs/zerolog"}},
	"web/redact":  {},
	"web/respond": {others: []string{"rs/zerolog"}},
	"web/ui":      {own: []string{"web/edge", "web/redact", "web/respond"}},
	"web/clients": {own: []string{"app", "web/client/python", "web/page", "web/redact", "web/respond"}},
	"web/page":    {own: []string{"web/edge", "web/respond"}},
	"web/docs":    {own: []string{"app/algorithms", "app/engine/binodal", "app/engine/cgidp", "app/engine/condensate", "web/client/python", "web/compat", "web/page", "web/redact", "web/respond"}, others: []string{"yuin/goldmark"}},
	"web/client":  {},
	"web/compat":  {own: []string{"web/client", "web/inner", "web/respond"}},
	"web/inner":   {own: []string{"web/client"}},

	"web/client/python": {},

	"web/contract": {others: []string{"goccy/go-yaml", "santhosh-tekuri/jsonschema"}}, // of tests alone

	"app/server":          {own: []string{"app", "app/access", "app/agent", "app/algorithm", "app/algorithm/validator", "app/algorithm/version", "app/algorithms", "app/backup/schedule", "app/certificate", "app/config", "app/datadir", "app/download", "app/engine/cgidp", "app/engine/chains", "app/engine/condensate", "app/estimate", "app/executor/local", "app/executor/slurm", "app/follow", "app/host", "app/listing", "app/metrics", "app/notify", "app/notify/mail", "app/notify/post", "app/output", "app/resubmit", "app/retention", "app/routing", "app/runner", "app/share", "app/snapshot", "app/status", "app/task/process", "app/upload", "app/usage", "blobs", "blobs/link", "storage", "storage/kv", "web", "web/client", "web/compat", "web/edge", "web/respond"}, others: []string{"prometheus/client_golang", "rs/zerolog"}},
	"app/host":            {own: []string{"app", "app/algorithm", "app/algorithm/validator", "app/algorithm/version", "app/config", "app/datadir", "app/executor/local", "app/executor/slurm", "app/task/container", "app/task/modules"}},
	"app/datadir":         {own: []string{"app/config", "storage", "storage/kv/boltfile", "web/client"}, others: []string{"rs/zerolog"}},
	"app/snapshot":        {own: []string{"app", "app/config", "app/datadir", "blobs", "storage", "web/client"}},
	"app/check":           {own: []string{"app", "blobs", "app/config", "app/datadir", "app/snapshot", "storage", "storage/kv"}, others: []string{"rs/zerolog"}},
	"app/backup/schedule": {own: []string{"app/backup", "app/config"}, others: []string{"rs/zerolog"}},
	"app/backup":          {own: []string{"app/check", "app/config", "app/datadir", "app/snapshot", "blobs", "storage/kv", "storage/kv/boltfile"}},
	"app/health":          {own: []string{"app/config", "app/datadir"}},
	"app/report":          {own: []string{"app/config", "app/datadir", "app/doctor", "app/health", "web/client"}, others: []string{"golang.org/x/sys"}},
	"app/certificate":     {own: []string{"app/config"}, others: []string{"rs/zerolog"}},
	"app/doctor":          {own: []string{"app/backup", "app/algorithm", "app/algorithms", "app/certificate", "app/config", "app/datadir", "app/executor/local", "app/executor/slurm", "app/follow", "app/host", "app/routing", "blobs", "blobs/link", "storage", "storage/kv/boltfile"}},
	"app/doctor/through":  {own: []string{"app/doctor"}},
	"app/trial":           {own: []string{"app/algorithm", "app/algorithm/results", "app/algorithms", "web/client"}},
	"app/agent":           {own: []string{"web/client", "web/inner"}, others: []string{"goccy/go-yaml", "modelcontextprotocol/go-sdk"}},
	"app/remote":          {own: []string{"app/agent", "app/remote/session", "web/client"}, others: []string{"golang.org/x/term", "modelcontextprotocol/go-sdk", "spf13/cobra", "spf13/pflag"}},
	"app/remote/session":  {own: []string{"web/client"}, others: []string{"spf13/cobra"}},
	"app/cli":             {own: []string{"*"}, others: []string{"mattn/go-isatty", "rs/zerolog", "spf13/cobra", "spf13/pflag"}},

	"app/bench":      {own: []string{"app", "app/freeport", "storage"}, others: []string{"spf13/cobra", "spf13/pflag", "go.etcd.io/bbolt", "golang.org/x/sys"}},
	"app/freeport":   {},
	"app/mutants":    {}, // a program of its own
	"app/faults":     {}, // of tests alone
	"app/simulation": {}, // of tests alone
	"app/house":      {}, // of tests alone
}
