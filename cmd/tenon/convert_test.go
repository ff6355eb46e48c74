package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	oldManifest = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: default}\nspec: " +
		"{provider: {}}\n"
	newManifest  = "apiVersion: v1\nkind: Namespace\nmetadata: {name:   a}\n"
	badProvision = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: bad}\nspec: {}\n"
)

// converted runs tenon convert.
func converted(in string, args ...string) (out, notes string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := newConvertCommand()
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

func TestConvertReadsStandardInput(t *testing.T) {
	out, notes, err := converted(oldManifest+"---\n"+newManifest, "-f", "-", "--cluster-name", "blue")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "kind: NodePool") || !strings.Contains(out, "role: KarpenterNodeRole-blue") ||
		!strings.HasSuffix(out, "---\n"+newManifest) {
		t.Errorf("printed:\n%s", out)
	}
	if !strings.HasPrefix(notes, "note: standard input: document 1 (Provisioner default): ") {
		t.Errorf("notes:\n%s", notes)
	}
}

func TestConvertReadsFolders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.yaml": oldManifest, "a.yml": newManifest,
		"in/c.json": `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"c"}}`, "notes.txt": "not read"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, recursive := range []bool{false, true} {
		args := []string{"-f", dir, "-o", "json"}
		if recursive {
			args = append(args, "-R")
		}
		out, _, err := converted("", args...)
		var list struct {
			Kind  string
			Items []struct{ Kind string }
		}
		if err != nil || json.Unmarshal([]byte(out), &list) != nil || list.Kind != "List" {
			t.Fatalf("printed %s (%v)", out, err)
		}
		kinds := ""
		for _, item := range list.Items {
			kinds += item.Kind + " "
		}
		want := "Namespace NodePool EC2NodeClass "
		if recursive {
			want += "Namespace "
		}
		if kinds != want {
			t.Errorf("with -R=%v the kinds are %s, want %s", recursive, kinds, want)
		}
	}
}

func TestConvertFails(t *testing.T) {
	for _, tc := range []struct {
		in   string
		args []string
		want string
	}{
		{"", nil, "give -f"},
		{"", []string{"-f", "-", "-o", "table"}, "not one of yaml, json"},
		{"", []string{"-f", "/does/not/exist"}, "no such file"},
		{"", []string{"-f", t.TempDir()}, "holds no manifests"},
		{"", []string{"-f", "-"}, "no manifests: - holds none"},
		{"# a comment\n---\n", []string{"-f", "-"}, "no manifests: - holds none"},
		{"{}", []string{"-f", "-"}, "no manifests: - holds none"},
		{"Error from server (NotFound): provisioners \"x\" not found", []string{"-f", "-"},
			"no manifests: - holds none"},
		{"apiVersion: v1\nkind: List\nitems: []\n", []string{"-f", "-"}, "no manifests: - holds none"},
		{"", []string{"provisioner.yaml"}, "with -f"},
		{newManifest + "---\n" + badProvision, []string{"-f", "-"}, "standard input: document 2 (Provisioner bad): " +
			"spec.providerRef is missing; name the AWSNodeTemplate"},
	} {
		out, _, err := converted(tc.in, tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || out != "" {
			t.Errorf("%v: printed %q, error %v, want %q", tc.args, out, err, tc.want)
		}
	}
}
