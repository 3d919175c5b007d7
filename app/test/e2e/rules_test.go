package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// testsOfTheTree returns the file of every test in the repository, by package.TestName.
func testsOfTheTree(t *testing.T) map[string]string {
	t.Helper()
	tests := map[string]string{}
	must.OK(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && regexp.MustCompile(`^(Test|Fuzz)\p{Lu}`).MatchString(f.Name.Name) {
				tests[strings.TrimSuffix(file.Name.Name, "_test")+"."+f.Name.Name] = filepath.Base(path)
			}
		}
		return nil
	}))
	return tests
}

// checkRules has the files of this package in which every test must check a rule.
var checkRules = map[string]bool{
	"auth": true, "batch": true, "command": true, "errors": true, "files": true, "forgery": true, "isolation": true,
	"jobs": true, "link": true, "list": true, "resources": true, "resume": true, "submit": true, "upload": true,
}

// TestRulesNameExistingTests checks that each rule in rules.md names existing tests, and
// that each test in the files of checkRules is named by a rule.
func TestRulesNameExistingTests(t *testing.T) {
	text := must.Read(t, filepath.Join(root, "web/docs/rules.md"))
	tests := testsOfTheTree(t)
	named := map[string]bool{}
	rules := 0
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| rule |") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 2 || cells[0] == "" {
			t.Errorf("rules.md:%d: want a rule and its tests: %s", i+1, line)
			continue
		}
		rules++
		for name := range strings.SplitSeq(cells[1], ", ") {
			named[name] = true
			if tests[name] == "" {
				t.Errorf("rules.md:%d: no test %s for the rule %q", i+1, name, cells[0])
			}
		}
	}
	if rules < 100 {
		t.Errorf("only %d rules in rules.md", rules)
	}
	for name, file := range tests {
		if strings.HasPrefix(name, "e2e.") && checkRules[strings.TrimSuffix(file, "_test.go")] && !named[name] {
			t.Errorf("%s in %s checks no rule of rules.md", name, file)
		}
	}
}
