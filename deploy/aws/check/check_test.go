package check

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

const (
	templateFile = "../cloudformation.yaml"
	moduleDir    = "../terraform"
	reference    = "../../../docs/reference/aws/"
)

// choices are sets of parameters, by CloudFormation's names.
func choices() map[string]map[string]string {
	return map[string]map[string]string{
		"as it comes": {"ClusterName": "blue"},
		"IRSA": {"ClusterName": "blue", "Identity": "IRSA",
			"OidcIssuer": "oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF",
			"Namespace":  "karpenter", "ServiceAccount": "tenon"},
		"everything":      {"ClusterName": "blue", "CreateSpotServiceLinkedRole": "true", "AccessEntry": "EC2_WINDOWS"},
		"no access entry": {"ClusterName": "blue", "AccessEntry": "None"},
		"longest name":    {"ClusterName": strings.Repeat("n", 46)},
	}
}

// snake is a parameter's name in Terraform.
func snake(name string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_${2}"))
}

func both(t *testing.T, parameters map[string]string) (cloudFormation, terraform Setup) {
	t.Helper()
	cloudFormation, err := CloudFormation(templateFile, parameters)
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for name, v := range parameters {
		variables[snake(name)] = v
	}
	terraform, err = Terraform(moduleDir, variables)
	if err != nil {
		t.Fatal(err)
	}
	return cloudFormation, terraform
}

// TestBothMakeTheSame compares everything that the two make, but for the names of event rules, which AWS and Terraform
// make up.
func TestBothMakeTheSame(t *testing.T) {
	for name, parameters := range choices() {
		t.Run(name, func(t *testing.T) {
			a, b := both(t, parameters)
			outputs := map[string]string{}
			for key, v := range a.Outputs {
				outputs[snake(key)] = v
			}
			a.Outputs = outputs
			va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
			for i := range va.NumField() {
				if x, y := va.Field(i).Interface(), vb.Field(i).Interface(); !reflect.DeepEqual(x, y) {
					t.Errorf("%s differ.\nCloudFormation: %s\nTerraform:      %s", va.Type().Field(i).Name,
						encode(x), encode(y))
				}
			}
		})
	}
}

// TestWhatIsMade looks at what the choices change, and that nothing is missing from both.
func TestWhatIsMade(t *testing.T) {
	made := map[string]Setup{}
	for name, parameters := range choices() {
		made[name], _ = both(t, parameters)
	}
	plain, node := made["as it comes"], "arn:aws:iam::111122223333:role/KarpenterNodeRole-blue"
	if plain.Profiles["KarpenterNodeInstanceProfile-blue"] != "KarpenterNodeRole-blue" ||
		len(plain.Roles["KarpenterNodeRole-blue"].Managed) != 4 {
		t.Errorf("nodes have the profiles %v and the role %v", plain.Profiles, plain.Roles["KarpenterNodeRole-blue"])
	}
	for name, want := range map[string][]string{"as it comes": {"blue " + node + " EC2_LINUX"},
		"everything": {"blue " + node + " EC2_WINDOWS"}, "no access entry": nil} {
		if got := made[name].AccessEntries; !slices.Equal(got, want) {
			t.Errorf("%s: access entries %q, want %q", name, got, want)
		}
	}
	if len(plain.Identities) != 1 || len(made["IRSA"].Identities) != 0 {
		t.Errorf("%d pod identity associations, and %d with IRSA; want 1 and 0", len(plain.Identities),
			len(made["IRSA"].Identities))
	}
	trust := encode(made["IRSA"].Roles["blue-karpenter"].Trust)
	if !strings.Contains(trust,
		`"oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF:sub":"system:serviceaccount:karpenter:tenon"`) {
		t.Errorf("with IRSA the role trusts %s", trust)
	}
	if len(plain.ServiceLinkedRoles) != 0 || !slices.Equal(made["everything"].ServiceLinkedRoles,
		[]string{"spot.amazonaws.com"}) {
		t.Errorf("service-linked roles %v, and %v when asked for", plain.ServiceLinkedRoles,
			made["everything"].ServiceLinkedRoles)
	}
	queue := plain.Queues[queueURL("blue")]
	if len(plain.Queues) != 1 || queue.Encrypted != "true" || queue.Retention != "300" {
		t.Errorf("queues %v", plain.Queues)
	}
}

// document is a policy of the reference with the values of a cluster.
func document(t *testing.T, file, cluster string) any {
	t.Helper()
	text, err := os.ReadFile(reference + file)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("${PARTITION}", partition, "${REGION}", region, "${ACCOUNT_ID}", account,
		"${CLUSTER_NAME}", cluster,
		"${NODE_ROLE}", "KarpenterNodeRole-"+cluster, "${QUEUE_NAME}", cluster)
	v, err := policy(words.Replace(string(text)))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// statements are the statements of a policy by their Sid.
func statements(t *testing.T, document any) map[string]any {
	t.Helper()
	out := map[string]any{}
	fields, _ := document.(map[string]any)
	list, _ := fields["Statement"].([]any)
	for _, one := range list {
		s, _ := one.(map[string]any)
		sid, _ := s["Sid"].(string)
		out[sid] = one
	}
	if len(out) < 2 || len(out) != len(list) {
		t.Fatalf("a policy has %d statements with %d names", len(list), len(out))
	}
	return out
}

func compare(t *testing.T, what string, got, want any) {
	t.Helper()
	g, w := statements(t, got), statements(t, want)
	for sid := range w {
		if !reflect.DeepEqual(g[sid], w[sid]) {
			t.Errorf("%s: statement %s is\n%s\nand should be\n%s", what, sid, encode(g[sid]), encode(w[sid]))
		}
	}
	for sid := range g {
		if w[sid] == nil {
			t.Errorf("%s: the reference has no statement %s", what, sid)
		}
	}
}

// TestPoliciesAreThoseOfTheReference holds both to the policies that a test of the provider compares with the calls
// that it makes.
func TestPoliciesAreThoseOfTheReference(t *testing.T) {
	for name, parameters := range choices() {
		cluster := parameters["ClusterName"]
		a, b := both(t, parameters)
		for tool, s := range map[string]Setup{"CloudFormation": a, "Terraform": b} {
			what := tool + ", " + name
			role := s.Roles[cluster+"-karpenter"]
			if len(role.Policies) != 1 || len(role.Managed) != 0 {
				t.Fatalf("%s: the controller's role has the policies %v %v", what, role.Policies, role.Managed)
			}
			compare(t, what, role.Policies["controller"], document(t, "controller-policy.json", cluster))
			compare(t, what+", queue", s.Queues[queueURL(cluster)].Policy, document(t, "queue-policy.json", cluster))
			if size := len(encode(role.Policies["controller"])); size > 10240 {
				t.Errorf("%s: the controller's policy has %d characters, IAM takes 10240 in a role", what, size)
			}
		}
	}
}

// TestThePageNamesEveryStatement looks for what the permissions page leaves out, and for what it only believes to be
// there.
func TestThePageNamesEveryStatement(t *testing.T) {
	text, err := os.ReadFile(reference + "permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| statement |")
	table, _, _ = strings.Cut(table, "\n\n")
	have := statements(t, document(t, "controller-policy.json", "blue"))
	told := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			told[m[1]] = true
			if have[m[1]] == nil {
				t.Errorf("permissions.md tells of a statement %s, which the policy does not have", m[1])
			}
		}
	}
	for sid := range have {
		if !told[sid] {
			t.Errorf("permissions.md does not tell why there is a statement %s", sid)
		}
	}
}

// cases are the texts that the cases of a function's switches have.
func cases(t *testing.T, file, function string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok {
				for _, e := range c.List {
					if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						text, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						out = append(out, text)
					}
				}
			}
			return true
		})
	}
	sort.Strings(out)
	return out
}

// TestRulesSendWhatTheControllerReads compares the event rules with the messages that the controller follows.
func TestRulesSendWhatTheControllerReads(t *testing.T) {
	source := filepath.Join("..", "..", "..", "cloudprovider", "aws", "interrupt", "message.go")
	kinds, states := cases(t, source, "ofInstance"), cases(t, source, "state")
	if len(kinds) < 4 || len(states) < 4 {
		t.Fatalf("%s has the kinds %q and the states %q", source, kinds, states)
	}
	made, _ := both(t, map[string]string{"ClusterName": "blue"})
	var sent []string
	for pattern, targets := range made.Events {
		if !slices.Equal(targets, []string{queueARN("blue")}) {
			t.Errorf("%s goes to %v", pattern, targets)
		}
		v, err := policy(pattern)
		if err != nil {
			t.Fatal(err)
		}
		fields, _ := v.(map[string]any)
		detail, _ := fields["detail"].(map[string]any)
		if fields["source"] == "aws.health" {
			if want := `{"eventTypeCategory":"scheduledChange","service":"EC2"}`; encode(detail) != want ||
				fields["detail-type"] != "AWS Health Event" {
				t.Errorf("of AWS Health %s is sent, want %s", pattern, want)
			}
			continue
		}
		types := texts(fields["detail-type"])
		sent = append(sent, types...)
		if slices.Contains(types, "EC2 Instance State-change Notification") &&
			!slices.Equal(texts(detail["state"]), states) {
			t.Errorf("of changes of state %v are sent, the controller reads %v", detail["state"], states)
		}
	}
	sort.Strings(sent)
	if len(made.Events) != 3 || !slices.Equal(sent, kinds) {
		t.Errorf("%d rules send %q, the controller reads %q", len(made.Events), sent, kinds)
	}
}

// texts is a list that canonical may have turned into one text.
func texts(v any) []string {
	if one, ok := v.(string); ok {
		return []string{one}
	}
	var out []string
	list, _ := v.([]any)
	for _, one := range list {
		text, _ := one.(string)
		out = append(out, text)
	}
	return out
}

// TestBothHaveTheSameParameters: with the same defaults, and no more.
func TestBothHaveTheSameParameters(t *testing.T) {
	file, err := readTemplate(templateFile)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readModule(moduleDir)
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for _, b := range m.of("variable") {
		variables[b.Labels[0]] = ""
		if d := b.Body.Attributes["default"]; d != nil {
			v, diags := d.Expr.Value(nil)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			text, err := convert.Convert(v, cty.String)
			if err != nil {
				t.Fatal(err)
			}
			variables[b.Labels[0]] = text.AsString()
		}
	}
	parameters := map[string]string{}
	for name, p := range file.Parameters {
		parameters[snake(name)] = p.Default
	}
	if !reflect.DeepEqual(parameters, variables) {
		t.Errorf("CloudFormation has the parameters %v, Terraform the variables %v", parameters, variables)
	}
}

// TestWrongParametersAreRefused by both.
func TestWrongParametersAreRefused(t *testing.T) {
	_, err := CloudFormation(templateFile, map[string]string{"ClusterName": "blue", "Identity": "IRSA"})
	if err == nil || !strings.Contains(err.Error(), "OidcIssuer must be set") {
		t.Errorf("IRSA without an issuer: CloudFormation says %v", err)
	}
	for want, variables := range map[string]map[string]string{
		"oidc_issuer must be set":    {"cluster_name": "blue", "identity": "IRSA"},
		"at most 46 letters":         {"cluster_name": strings.Repeat("n", 47)},
		"identity is PodIdentity or": {"cluster_name": "blue", "identity": "Key"},
		"without https://": {"cluster_name": "blue", "identity": "IRSA",
			"oidc_issuer": "https://oidc.example.com/id/1"},
		"access_entry is": {"cluster_name": "blue", "access_entry": "STANDARD"},
	} {
		if _, err := Terraform(moduleDir, variables); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: Terraform says %v, want %q", variables, err, want)
		}
	}
}

// TestADifferenceIsFound takes one action out of each file and looks whether it is missed.
func TestADifferenceIsFound(t *testing.T) {
	const action = `"ec2:DescribeSubnets"`
	want := document(t, "controller-policy.json", "blue")
	dir := t.TempDir()
	cut := func(from, to string) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), ",\n", "\x00", -1)
		changed = regexp.MustCompile("\x00\\s*"+action).ReplaceAllString(changed, "")
		if err := os.WriteFile(to, []byte(strings.ReplaceAll(changed, "\x00", ",\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cut(templateFile, filepath.Join(dir, "template.yaml"))
	files, err := filepath.Glob(filepath.Join(moduleDir, "*.tf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		cut(f, filepath.Join(dir, filepath.Base(f)))
	}
	a, err := CloudFormation(filepath.Join(dir, "template.yaml"), map[string]string{"ClusterName": "blue"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Terraform(dir, map[string]string{"cluster_name": "blue"})
	if err != nil {
		t.Fatal(err)
	}
	for tool, s := range map[string]Setup{"CloudFormation": a, "Terraform": b} {
		got := statements(t, s.Roles["blue-karpenter"].Policies["controller"])["LookAround"]
		if got == nil || reflect.DeepEqual(got, statements(t, want)["LookAround"]) {
			t.Errorf("%s without %s is not told from one that has it", tool, action)
		}
	}
}
