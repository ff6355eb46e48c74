package aws_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const policyFile = "../../docs/reference/aws/controller-policy.json"

// implied are permissions that no call of ours has the name of.
func implied() map[string]string {
	return map[string]string{
		"iam:PassRole":           "EC2 asks for it when an instance is launched with an instance profile",
		"iam:TagInstanceProfile": "IAM asks for it when an instance profile is created with tags",
	}
}

// list reads a JSON value that is one text or several.
type list []string

func (l *list) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = list{one}
		return nil
	}
	var all []string
	err := json.Unmarshal(data, &all)
	*l = all
	return err
}

type statement struct {
	Sid, Effect      string
	Action, Resource list
	Condition        map[string]map[string]list
}

func readPolicy(t *testing.T) []statement {
	t.Helper()
	data, err := os.ReadFile(policyFile)
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Version   string
		Statement []statement
	}
	if err := json.Unmarshal(data, &policy); err != nil {
		t.Fatalf("%s: %v", policyFile, err)
	}
	if policy.Version != "2012-10-17" || len(policy.Statement) == 0 {
		t.Fatalf("%s has version %q and %d statements", policyFile, policy.Version, len(policy.Statement))
	}
	size := 0
	for _, r := range string(data) {
		if !unicode.IsSpace(r) {
			size++
		}
	}
	if size > 6144 {
		t.Errorf("%s has %d characters, IAM takes 6144", policyFile, size)
	}
	return policy.Statement
}

// TestPolicyMatchesTheCalls compares the policy with the calls that the provider's packages declare in their
// interfaces: a permission that is missing would show in a user's cluster, one too many would never show.
func TestPolicyMatchesTheCalls(t *testing.T) {
	called := calls(t)
	if len(called) < 20 {
		t.Fatalf("only %d calls were found: %v", len(called), called)
	}
	allowed := map[string]bool{}
	grants := map[string]string{}
	for _, s := range readPolicy(t) {
		what, err := json.Marshal([]any{s.Resource, s.Condition})
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range s.Action {
			if other, twice := grants[action+string(what)]; twice {
				t.Errorf("%s and %s both allow %s on the same terms", other, s.Sid, action)
			}
			grants[action+string(what)] = s.Sid
			allowed[action] = true
			if _, ok := implied()[action]; !called[action] && !ok {
				t.Errorf("the policy allows %s, which nothing calls", action)
			}
		}
	}
	for action := range called {
		if !allowed[action] {
			t.Errorf("%s is called and the policy does not allow it", action)
		}
	}
	for action, why := range implied() {
		if !allowed[action] {
			t.Errorf("the policy lacks %s: %s", action, why)
		}
	}
}

// TestPolicyIsNarrow looks whether whatever changes something is bound to what is the cluster's own.
func TestPolicyIsNarrow(t *testing.T) {
	for _, s := range readPolicy(t) {
		if s.Effect != "Allow" || s.Sid == "" {
			t.Errorf("statement %q has the effect %q", s.Sid, s.Effect)
		}
		for _, action := range s.Action {
			if strings.Contains(action, "*") {
				t.Errorf("%s allows %s", s.Sid, action)
			}
			_, verb, _ := strings.Cut(action, ":")
			reads := strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "Get") ||
				strings.HasPrefix(verb, "List")
			if !reads && slices.Contains(s.Resource, "*") {
				t.Errorf("%s allows %s on everything", s.Sid, action)
			}
		}
		bound := s.Sid == "LaunchFromWhatIsThere"
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"${CLUSTER_NAME}", "${NODE_ROLE}", "${QUEUE_NAME}"} {
			bound = bound || strings.Contains(string(text), word)
		}
		if !bound && !slices.ContainsFunc([]string{"Describe", "Get", "List"}, func(p string) bool {
			return strings.Contains(s.Action[0], ":"+p)
		}) {
			t.Errorf("%s is not bound to the cluster", s.Sid)
		}
	}
}

// TestPolicyAllowsZonalShiftsOfTheCluster: the resource that a zonal shift is asked about is no resource to IAM but a
// condition, so a statement about the cluster's ARN allows nothing.
func TestPolicyAllowsZonalShiftsOfTheCluster(t *testing.T) {
	const action, key = "arc-zonal-shift:GetManagedResource", "arc-zonal-shift:ResourceIdentifier"
	found := 0
	for _, s := range readPolicy(t) {
		if !slices.Contains(s.Action, action) {
			continue
		}
		found++
		want := list{"arn:${PARTITION}:eks:${REGION}:${ACCOUNT_ID}:cluster/${CLUSTER_NAME}"}
		if !slices.Equal(s.Resource, list{"*"}) || len(s.Condition) != 1 ||
			!slices.Equal(s.Condition["StringEquals"][key], want) {
			t.Errorf("%s allows %s on %v if %v; want on * if %s is %v", s.Sid, action, s.Resource,
				s.Condition, key, want)
		}
	}
	if found != 1 {
		t.Errorf("%d statements allow %s, want one", found, action)
	}
}

// calls collects, from the source of every package of the provider, the calls of the SDK that its interfaces have,
// methods whose arguments have a type like *ec2.CreateFleetInput, and that are made.
func calls(t *testing.T) map[string]bool {
	t.Helper()
	out, used := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "ec2sim" || entry.Name() == "gen" || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		maps.Copy(out, callsOf(file))
		maps.Copy(used, methodsOf(file))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for call := range out {
		if _, method, _ := strings.Cut(call, ":"); !used[method] && !used["New"+method+"Paginator"] {
			t.Errorf("%s is declared and never called", call)
			delete(out, call)
		}
	}
	return out
}

// methodsOf are the names of everything that the file calls on something.
func methodsOf(file *ast.File) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				out[sel.Sel.Name] = true
			}
		}
		return true
	})
	return out
}

func callsOf(file *ast.File) map[string]bool {
	services := map[string]string{}
	for _, i := range file.Imports {
		where, err := strconv.Unquote(i.Path.Value)
		if err != nil || path.Dir(where) != "github.com/aws/aws-sdk-go-v2/service" {
			continue
		}
		name := path.Base(where)
		if i.Name != nil {
			name = i.Name.Name
		}
		services[name] = path.Base(where)
	}
	out := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		def, ok := n.(*ast.InterfaceType)
		if !ok {
			return true
		}
		for _, method := range def.Methods.List {
			sig, ok := method.Type.(*ast.FuncType)
			if !ok || len(method.Names) == 0 {
				continue
			}
			for _, p := range sig.Params.List {
				if service := inputOf(p.Type, method.Names[0].Name, services); service != "" {
					out[service+":"+method.Names[0].Name] = true
				}
			}
		}
		return true
	})
	return out
}

// inputOf is how IAM calls the service if the type is the input of the method's call; else it is empty.
func inputOf(kind ast.Expr, method string, services map[string]string) string {
	star, ok := kind.(*ast.StarExpr)
	if !ok {
		return ""
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != method+"Input" {
		return ""
	}
	of, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	if services[of.Name] == "arczonalshift" {
		return "arc-zonal-shift"
	}
	return services[of.Name]
}
