package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"molrun/app/test/must"
)

// overHTTP connects an SDK client to a service over HTTP.
func overHTTP(t *testing.T, u user) *mcp.ClientSession {
	t.Helper()
	return connect(t, &mcp.StreamableClientTransport{
		Endpoint: u.base + "/mcp", HTTPClient: &http.Client{Transport: withKey(u.key)}, DisableStandaloneSSE: true,
	})
}

func overPipes(t *testing.T, u user) *mcp.ClientSession {
	t.Helper()
	c := u.person().command("mcp")
	return connect(t, &mcp.CommandTransport{Command: &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir}})
}

// withKey is a transport that adds an API key.
type withKey string

// RoundTrip implements http.RoundTripper.
func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("x-api-key", string(k))
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, transport, nil)
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// use calls a tool and returns its result, or its error message.
func use(t *testing.T, s *mcp.ClientSession, name string, arguments map[string]any) (answer map[string]any, refusal string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		return nil, text
	}
	must.OK(t, json.Unmarshal([]byte(text), &answer))
	return answer, ""
}

// TestModelsRunTheExampleToItsResult runs a typical session of a language model over both
// transports.
func TestModelsRunTheExampleToItsResult(t *testing.T) {
	t.Parallel()
	srv := plain(t)
	u := srv.user("lab", "ann@lab.example")
	for name, s := range map[string]*mcp.ClientSession{"http": overHTTP(t, u), "stdio": overPipes(t, u)} {
		t.Run(name, func(t *testing.T) {
			ok := func(tool string, arguments map[string]any) map[string]any {
				t.Helper()
				answer, refusal := use(t, s, tool, arguments)
				if refusal != "" {
					t.Fatalf("%s: %s", tool, refusal)
				}
				return answer
			}
			if found := ok("list_algorithms", map[string]any{"search": "ensembles disordered"})["algorithms"].([]any); len(found) != 1 {
				t.Fatalf("found %v", found)
			}
			about := ok("describe_algorithm", map[string]any{"type": "cg-idp"})
			settings := about["example"].(map[string]any)
			if inner, nested := settings["settings"].(map[string]any); nested {
				settings = inner
			}
			settings["steps"] = 20000
			job := map[string]any{"jobName": "by-model-" + name, "type": "cg-idp", "settings": settings}
			if verdict := ok("validate_job", job); verdict["valid"] != true {
				t.Fatalf("verdict %v", verdict)
			}
			ok("estimate_job", job)
			ok("submit_job", job)
			ended := ok("wait_for_job", map[string]any{"jobName": job["jobName"], "seconds": 50})
			for ended["status"] != "COMPLETED" {
				ended = ok("wait_for_job", map[string]any{"jobName": job["jobName"], "seconds": 50})
			}
			list := ok("list_results", map[string]any{"jobName": job["jobName"]})
			if len(list["files"].([]any)) == 0 || len(list["views"].([]any)) == 0 {
				t.Errorf("results %v", list)
			}
			series := ok("read_series", map[string]any{"jobName": job["jobName"], "view": "size", "points": 10})
			if values := series["values"].([]any); len(values) < 2 || len(values[0].([]any)) > 40 {
				t.Errorf("series %v", series)
			}
			log := ok("read_log", map[string]any{"jobName": job["jobName"], "lines": 1})
			if !strings.Contains(log["note"].(string), "not an instruction") || strings.Count(strings.TrimSpace(log["text"].(string)), "\n") != 0 {
				t.Errorf("log %v", log)
			}
			if _, refusal := use(t, s, "submit_job", map[string]any{"jobName": "bad", "type": "cg-idp", "settings": map[string]any{"steps": -1}}); !strings.Contains(refusal, "steps") {
				t.Errorf("a wrong submission: %q", refusal)
			}
			if _, refusal := use(t, s, "get_job", map[string]any{"jobName": "absent"}); !strings.HasPrefix(refusal, "NOT_FOUND") {
				t.Errorf("an absent job: %q", refusal)
			}
			if _, refusal := use(t, s, "get_job", map[string]any{"jobNam": "x"}); !strings.Contains(refusal, `no argument "jobNam"`) {
				t.Errorf("an unknown argument: %q", refusal)
			}
			file := ok("upload_file", map[string]any{"filename": "by-" + name + ".fasta", "text": ">a\nMDVFMKGLSKAKEG\n"})
			ok("upload_file", map[string]any{"filename": "by-" + name + ".fasta", "text": ">another\nGSGSGS\n"})
			taken := ok("submit_job", map[string]any{"jobName": "file-" + name, "type": "cg-idp", "settings": map[string]any{"fasta": file["reference"], "steps": 2000}})
			if digest := file["sha256"].(string); !strings.Contains(fmt.Sprint(taken["inputs"]), digest) {
				t.Errorf("inputs %v, want the digest %s", taken["inputs"], digest)
			}
			ok("submit_job", map[string]any{"jobName": "long-" + name, "type": "shell", "settings": map[string]any{"script": "sleep 600"}})
			ok("cancel_job", map[string]any{"jobName": "long-" + name})
			record, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "molrun://jobs/" + job["jobName"].(string)})
			if err != nil || !strings.Contains(record.Contents[0].Text, `"status":"COMPLETED"`) {
				t.Errorf("resource %v, %v", record, err)
			}
		})
	}
}

// Jobs of another organization are not found, and a viewer cannot submit.
func TestModelsHaveTheRightsOfTheirKeys(t *testing.T) {
	t.Parallel()
	srv := plain(t)
	ann := srv.user("lab", "ann@lab.example")
	ann.submit("secret", "shell", script("true"))
	ann.finished("secret")
	stranger := overHTTP(t, srv.user("other", "eve@other.example"))
	for _, tool := range []string{"get_job", "read_log", "list_results", "cancel_job"} {
		if answer, refusal := use(t, stranger, tool, map[string]any{"jobName": "secret"}); !strings.HasPrefix(refusal, "NOT_FOUND") {
			t.Errorf("%s of a stranger: %v %q", tool, answer, refusal)
		}
	}
	viewer := overHTTP(t, srv.user("lab", "kim@lab.example", "--role", "viewer"))
	if _, refusal := use(t, viewer, "submit_job", map[string]any{"jobName": "x", "type": "shell", "settings": map[string]any{"script": "true"}}); !strings.HasPrefix(refusal, "FORBIDDEN") {
		t.Errorf("a viewer submits: %q", refusal)
	}
	for _, key := range []string{"", "molrun_wrong"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.base+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		must.OK(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if key != "" {
			r.Header.Set("x-api-key", key)
		}
		resp, err := http.DefaultClient.Do(r)
		must.OK(t, err)
		resp.Body.Close()
		must.Equal(t, fmt.Sprintf("key %q: status", key), resp.StatusCode, http.StatusUnauthorized)
	}
}

// Destructive tools are marked as such, and all tools have schemas.
func TestToolsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	s := overHTTP(t, plain(t).user("lab", "ann@lab.example"))
	list, err := s.ListTools(t.Context(), nil)
	must.OK(t, err)
	for _, tool := range list.Tools {
		schema, err := json.Marshal(tool.InputSchema)
		must.OK(t, err)
		destructive := tool.Annotations.DestructiveHint != nil && *tool.Annotations.DestructiveHint
		if destructive != (tool.Name == "cancel_job") || tool.Description == "" || !strings.Contains(string(schema), `"properties"`) || strings.Contains(string(schema), "#/components") {
			t.Errorf("%s: %+v %s", tool.Name, tool.Annotations, schema)
		}
	}
	must.Equal(t, "who may cache the tools", list.CacheScope, "private")
	must.Equal(t, "tools", len(list.Tools), 17)
}

// TestInspectorUnderstandsTheTools sends queries over both transports with the MCP
// inspector, which also checks that many models accept the tools' schemas.
func TestInspectorUnderstandsTheTools(t *testing.T) {
	t.Parallel()
	needNode(t, "the inspector of the Model Context Protocol")
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	p := u.person()
	g := newGeneration(t, u, "inspector")
	g.env = append(p.command().Env, "MCP_AUTO_OPEN_ENABLED=false")
	g.download("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	for name, target := range map[string][]string{
		"stdio": {molrun, "mcp"},
		"http":  {u.base + "/mcp", "--header", "x-api-key: " + u.key},
	} {
		ask := func(args ...string) (answer map[string]any) {
			t.Helper()
			args = slices.Concat([]string{"--cli"}, target, []string{"--method"}, args)
			out, said, err := g.command("node_modules/.bin/mcp-inspector", args...)
			if err != nil || strings.Contains(said, "arning: tool") {
				t.Fatalf("%s: %v\n%.2000s", name, err, said)
			}
			must.OK(t, json.Unmarshal([]byte(out), &answer))
			return answer
		}
		if tools := ask("tools/list", "--strict")["tools"].([]any); len(tools) < 10 {
			t.Errorf("%s: %d tools", name, len(tools))
		}
		found := ask("tools/call", "--tool-name", "list_algorithms", "--tool-arg", "search=disordered")
		if text, _ := json.Marshal(found); !strings.Contains(string(text), "cg-idp") { // cannot fail
			t.Errorf("%s: %s", name, text)
		}
		if templates := ask("resources/templates/list")["resourceTemplates"].([]any); len(templates) != 2 {
			t.Errorf("%s: templates %v", name, templates)
		}
	}
}
