package observe

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// alert is what the page says of one: how bad it is, and the metrics that it looks at.
func alert(severity string, metrics []string) string {
	return severity + " " + strings.Join(metrics, ",")
}

// recommended reads the alerts of the chart, by name.
func recommended(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "karpenter", "alerts", "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Labels      map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, group := range file.Spec.Groups {
		for _, rule := range group.Rules {
			if out[rule.Alert] != "" {
				t.Errorf("two alerts are called %s", rule.Alert)
			}
			out[rule.Alert] = alert(rule.Labels["severity"], metricNames(rule.Expr))
		}
	}
	return out
}

// TestDocumentNamesEveryAlert compares the page with the chart's file, in both directions.
func TestDocumentNamesEveryAlert(t *testing.T) {
	_, section, _ := strings.Cut(document(t, "reference", "metrics.md"), "\n## Alerts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]string{}
	for _, row := range strings.Split(section, "\n") {
		cells := strings.Split(row, " | ")
		if len(cells) != 4 || !strings.HasPrefix(row, "| `") {
			continue
		}
		var metrics []string
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			metrics = append(metrics, name[1])
		}
		documented[strings.Trim(cells[0], "|` ")] = alert(cells[1], metrics)
		if todo := strings.Trim(cells[3], "| "); len(todo) < 10 {
			t.Errorf("docs/reference/metrics.md says of %s to do %q", cells[0], todo)
		}
	}
	have := recommended(t)
	if len(have) < 9 {
		t.Errorf("there are only %d alerts", len(have))
	}
	for name, what := range have {
		if documented[name] != what {
			t.Errorf("docs/reference/metrics.md has %q for %s, the chart's file has %q", documented[name], name, what)
		}
	}
	for name := range documented {
		if have[name] == "" {
			t.Errorf("docs/reference/metrics.md describes the alert %s, which the chart's file does not have", name)
		}
	}
}

// TestPagesNameAlertsThatThereAre looks at the other places that name alerts.
func TestPagesNameAlertsThatThereAre(t *testing.T) {
	have := recommended(t)
	for _, page := range [][]string{{"reference", "metrics.md"}, {"concepts", "bounds.md"}} {
		var names []string
		for _, m := range regexp.MustCompile("`(Tenon[A-Z][A-Za-z0-9]+)`").FindAllStringSubmatch(document(t, page...),
			-1) {
			names = append(names, m[1])
			if have[m[1]] == "" {
				t.Errorf("%v names the alert %s, which the chart's file does not have", page, m[1])
			}
		}
		if !slices.Contains(names, "TenonQuarantine") {
			t.Errorf("%v names only %v", page, names)
		}
	}
}
