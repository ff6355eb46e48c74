package family_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// hostile are values that mean something to a shell, to PowerShell, to YAML or to TOML.
func hostile() []string {
	return []string{
		"it's", `a "quoted" word`, "'; touch owned; '", "$(touch owned)", "`touch owned`", "$HOME", "${IFS}", "%PATH%",
		"100%", `back\slash`, `\'`, `'\''`,
		"two\nlines\ntouch owned", "a\ttab", "#remark", "a: b", "- a", "{a: b}", "[a]", "*a", "&a", "!a", "|", ">",
		"yes", "null", "1e3", "-n", "--flag", "a;b&c|d",
		"~", "*", "?", "\u2019; whoami; \u2019", "\u2018\u201a\u201b", "$env:X", "@(whoami)", "\u00e4\u00f6\u00fc",
		"'''", `"""`, "a\\\nb", "EOF",
	}
}

// script is the last part of a MIME archive.
func script(t *testing.T, archive string) string {
	t.Helper()
	parts := strings.Split(archive, "\n--//")
	if len(parts) < 2 {
		t.Fatalf("no archive: %q", archive)
	}
	_, body, ok := strings.Cut(parts[len(parts)-2], "\n\n")
	if !ok {
		t.Fatalf("a part without body: %q", archive)
	}
	return body
}

// A shell makes of each value what it was, and runs nothing of it.
func TestShellTakesValuesAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	stub := filepath.Join(dir, "bootstrap.sh")
	if err := os.WriteFile(stub, []byte("#!/bin/sh\nfor a in \"$@\"; do printf '%s\\0' \"$a\"; done\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	for _, value := range hostile() {
		n := plain()
		n.Cluster.Name, n.Endpoint, n.CABundle = value, "https://"+value, value
		data, err := named(t, awsv1.AMIFamilyAL2).UserData(n)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		text := strings.Replace(script(t, data), "/etc/eks/bootstrap.sh", stub, 1)
		run := exec.Command("sh", "-s")
		run.Dir, run.Stdin = dir, strings.NewReader(text)
		out, err := run.Output()
		if err != nil {
			t.Fatalf("%q: %v in\n%s", value, err, text)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if want := []string{value, "--apiserver-endpoint", "https://" + value, "--b64-cluster-ca",
			value}; len(got) < 5 || !slices.Equal(got[:5], want) {
			t.Errorf("the shell hands on %q, want %q", got, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "owned")); err == nil {
			t.Fatalf("%q was run", value)
		}
	}
}

// YAML and TOML give each value back as it was.
func TestDocumentsTakeValuesAsTheyAre(t *testing.T) {
	for _, value := range hostile() {
		n := plain()
		n.Cluster.Name, n.Endpoint, n.CABundle = value, "https://"+value, value
		data, err := named(t, awsv1.AMIFamilyBottlerocket).UserData(n)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		var settings struct {
			Settings struct {
				Kubernetes struct {
					Name     string `toml:"cluster-name"`
					Endpoint string `toml:"api-server"`
					CA       string `toml:"cluster-certificate"`
				} `toml:"kubernetes"`
			} `toml:"settings"`
		}
		if err := toml.Unmarshal([]byte(data), &settings); err != nil {
			t.Fatalf("%q: %v in\n%s", value, err, data)
		}
		if k := settings.Settings.Kubernetes; k.Name != value || k.Endpoint != "https://"+value || k.CA != value {
			t.Errorf("Bottlerocket reads %+v, want %q", k, value)
		}
		if data, err = named(t, awsv1.AMIFamilyAL2023).UserData(n); err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		var config struct {
			Spec struct {
				Cluster struct {
					Name                 string `json:"name"`
					APIServerEndpoint    string `json:"apiServerEndpoint"`
					CertificateAuthority string `json:"certificateAuthority"`
				} `json:"cluster"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(script(t, data)), &config); err != nil {
			t.Fatalf("%q: %v in\n%s", value, err, data)
		}
		if c := config.Spec.Cluster; c.Name != value || c.APIServerEndpoint != "https://"+value ||
			c.CertificateAuthority != value {
			t.Errorf("AL2023 reads %+v, want %q", c, value)
		}
	}
}

// words are the single-quoted words of a command of PowerShell, which takes typographic quotes for quotes.
func words(t *testing.T, command string) []string {
	t.Helper()
	quote := func(r rune) bool { return r == '\'' || r >= '\u2018' && r <= '\u201b' }
	var out []string
	var word []rune
	open := false
	all := []rune(command)
	for i := 0; i < len(all); i++ {
		switch {
		case !open && quote(all[i]):
			open, word = true, nil
		case open && quote(all[i]) && i+1 < len(all) && quote(all[i+1]):
			word = append(word, all[i])
			i++
		case open && quote(all[i]):
			open, out = false, append(out, string(word))
		case open:
			word = append(word, all[i])
		}
	}
	if open {
		t.Errorf("a quote is not closed in %q", command)
	}
	return out
}

// PowerShell makes of each value what it was.
func TestPowerShellTakesValuesAsTheyAre(t *testing.T) {
	for _, value := range hostile() {
		n := plain()
		n.Cluster.Name, n.Endpoint, n.CABundle = value, "https://"+value, value
		data, err := named(t, awsv1.AMIFamilyWindows2022).UserData(n)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		_, call, _ := strings.Cut(data, "Start-EKSBootstrap.ps1\"")
		if got, want := words(t, call), []string{value, "https://" + value, value}; len(got) < 3 ||
			!slices.Equal(got[:3], want) {
			t.Errorf("PowerShell reads %q, want %q", got, want)
		}
	}
	n := plain()
	n.Cluster.Name = "a</PowerShell>b"
	want := "write the user data of amiFamily Windows2022: the cluster's name, endpoint, certificate or service CIDR " +
		"has </powershell> in it, which ends the commands; correct the settings"
	if data, err := named(t, awsv1.AMIFamilyWindows2022).UserData(n); err == nil || err.Error() != want {
		t.Errorf("%v, want %q; user data %q", err, want, data)
	}
}

// What goes into the kubelet's command line can't be quoted everywhere, so what would end an argument there is refused.
func TestLabelsAndTaintsThatEndAnArgument(t *testing.T) {
	for _, name := range []string{awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket,
		awsv1.AMIFamilyWindows2022} {
		for _, value := range []string{"a b", "a'b", `a"b`, "a,b", "a$b", "a`b", `a\b`, "a\nb"} {
			label, taint := plain(), plain()
			label.Labels = map[string]string{"example.com/x": value}
			taint.Taints = []corev1.Taint{{Key: "example.com/x", Value: value, Effect: corev1.TaintEffectNoSchedule}}
			for _, n := range []family.Node{label, taint} {
				if data, err := named(t, name).UserData(n); err == nil || !strings.HasSuffix(err.Error(),
					"; a node takes letters, digits, -, _ and . there") {
					t.Errorf("%s with %q: %v, user data %q", name, value, err, data)
				}
			}
		}
	}
}
