package observe

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/access"
	"github.com/tenon-sh/tenon/cloudprovider/aws/interrupt"
	awsmetrics "github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
	"github.com/tenon-sh/tenon/cloudprovider/aws/refresh"
	"github.com/tenon-sh/tenon/cloudprovider/fake"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/observe/measure"
	"github.com/tenon-sh/tenon/internal/plan"
)

// inventory notes what is registered: a vector without series does not show up in a scrape, but it is there.
type inventory struct {
	prometheus.Registerer
	metrics map[string]string // name -> type and labels, as a row of the documents has them
}

func (i *inventory) MustRegister(collectors ...prometheus.Collector) {
	i.note(collectors...)
	i.Registerer.MustRegister(collectors...)
}

func (i *inventory) Register(c prometheus.Collector) error {
	i.note(c)
	return i.Registerer.Register(c)
}

func (i *inventory) note(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		kind := "gauge"
		switch c.(type) {
		case prometheus.Gauge: // which can do what a Counter can
		case *prometheus.CounterVec, prometheus.Counter:
			kind = "counter"
		case *prometheus.HistogramVec, prometheus.Histogram:
			kind = "histogram"
		case *prometheus.SummaryVec:
			kind = "summary"
		}
		descs := make(chan *prometheus.Desc, 1000)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			parts := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{(.*)\}\}`).FindStringSubmatch(d.String())
			labels := strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' })
			slices.Sort(labels)
			i.metrics[parts[1]] = kind + " " + strings.Join(labels, ",")
		}
	}
}

func registered(t *testing.T) map[string]string {
	t.Helper()
	i := &inventory{Registerer: prometheus.NewRegistry(), metrics: map[string]string{}}
	New(logr.Discard(), silent{}, i, time.Now, Options{ClusterState: true,
		NodeClasses: []schema.GroupVersionKind{{Group: "karpenter.kwok.sh", Version: "v1alpha1",
			Kind: "KWOKNodeClass"}}})
	measure.NewCloud(fake.New(fake.NewCloud()), i, time.Now)
	measure.Calls(i, time.Now)
	registerAWS(t, i)
	if len(i.metrics) < 50 {
		t.Fatalf("only %d metrics are registered", len(i.metrics))
	}
	return i.metrics
}

// registerAWS registers what the AWS provider shows.
func registerAWS(t *testing.T, i *inventory) {
	t.Helper()
	prices, err := price.NewBook("us-west-2", time.Now)
	if err == nil {
		err = refresh.TellAges(i, prices)
	}
	if err == nil {
		_, err = interrupt.New(interrupt.Options{Client: clientfake.NewFakeClient(), Events: silent{}, Metrics: i})
	}
	if err == nil {
		_, err = nodeclass.NewMetrics(i, clientfake.NewFakeClient(), time.Now)
	}
	if err == nil {
		_, err = awsmetrics.New(i)
	}
	if err == nil {
		_, err = access.Count(i, time.Now)
	}
	if err != nil {
		t.Fatal(err)
	}
	i.note((&aws.Provider{}).TypeStats())
}

// document is the text of a document.
func document(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "docs"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocumentNamesEveryMetric(t *testing.T) {
	text := document(t, "reference", "metrics.md")
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (counter|gauge|histogram|summary) \\| "+
		"([^|]*)\\|").FindAllStringSubmatch(text, -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' || r == '`' })
		slices.Sort(labels)
		documented[row[1]] = row[2] + " " + strings.Join(labels, ",")
	}
	have := registered(t)
	for name, row := range have {
		if documented[name] != row {
			t.Errorf("docs/reference/metrics.md has %q for %s, the registry has %q", documented[name], name, row)
		}
	}
	for name := range documented {
		if have[name] == "" {
			t.Errorf("docs/reference/metrics.md describes %s, which is not registered", name)
		}
	}
}

// TestAdditionsNameEveryMetricOfOurs compares the other page that lists them, in both directions.
func TestAdditionsNameEveryMetricOfOurs(t *testing.T) {
	text, have := document(t, "reference", "additions.md"), registered(t)
	for name := range have {
		if strings.HasPrefix(name, "tenon_") && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/reference/additions.md does not name %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`(tenon_[a-z_]+[a-z])`").FindAllStringSubmatch(text, -1) {
		if have[m[1]] == "" {
			t.Errorf("docs/reference/additions.md names %s, which is not registered", m[1])
		}
	}
}

// TestDocumentNamesEveryEventOfDisruption looks at those whose reason is worked out as the program runs.
func TestDocumentNamesEveryEventOfDisruption(t *testing.T) {
	text := document(t, "reference", "events.md")
	for _, reason := range append(events.LimitedReasons(), events.Terminating, "NodeRepairBlocked") {
		if !strings.Contains(text, "`"+reason+"`") {
			t.Errorf("docs/reference/events.md does not name %s", reason)
		}
	}
}

// library are metrics of the libraries that dashboards may use.
func library() []string {
	return []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "go_goroutines",
		"go_memstats_heap_inuse_bytes",
		"rest_client_requests_total", "leader_election_master_status"}
}

func TestDashboardsUseWhatThereIs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "charts", "karpenter", "dashboards", "*.json"))
	if err != nil || len(files) < 4 {
		t.Fatalf("dashboards %v, %v", files, err)
	}
	known := registered(t)
	for _, name := range library() {
		known[name] = "library"
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board any
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		exprs := under(board, "expr")
		if len(exprs) < 5 {
			t.Errorf("%s has only %d expressions", file, len(exprs))
		}
		for _, expr := range append(exprs, under(board, "query")...) {
			for _, name := range metricNames(expr) {
				if !exposed(known, name) {
					t.Errorf("%s: %s is not exposed, in %s", filepath.Base(file), name, expr)
				}
			}
		}
	}
}

func TestAlertsUseWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "karpenter", "alerts", "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules any
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	known, exprs := registered(t), under(rules, "expr")
	for _, key := range []string{"alert", "severity", "summary", "description"} {
		if got := under(rules, key); len(got) != len(exprs) {
			t.Errorf("%d rules have %d of %q", len(exprs), len(got), key)
		}
	}
	// Whatever waits for a person has an alert.
	for _, name := range []string{"tenon_workloads_held", "tenon_orphan_instances_held", "tenon_planner_panics_total",
		"tenon_planner_quarantined", "tenon_interruption_queue_readable", "operator_nodepool_status_condition_count",
		"operator_ec2nodeclass_status_condition_count"} {
		if !slices.ContainsFunc(exprs, func(expr string) bool { return slices.Contains(metricNames(expr), name) }) {
			t.Errorf("no alert looks at %s", name)
		}
	}
	for _, expr := range exprs {
		names := metricNames(expr)
		if len(names) == 0 {
			t.Errorf("no metric in %s", expr)
		}
		for _, name := range names {
			if !exposed(known, name) {
				t.Errorf("%s is not exposed, in %s", name, expr)
			}
		}
	}
}

// under finds the strings under a key, however deep.
func under(v any, key string) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if s, ok := inner.(string); ok && k == key {
				out = append(out, s)
			}
			out = append(out, under(inner, key)...)
		}
	case []any:
		for _, inner := range v {
			out = append(out, under(inner, key)...)
		}
	}
	return out
}

// metricNames finds what looks like a metric in an expression: a name with an underscore outside of braces, quotes and
// the label lists of aggregations.
func metricNames(expr string) []string {
	expr = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expr, "")
	expr = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(expr, "")
	expr = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`).ReplaceAllString(expr,
		"")
	var out []string
	for _, name := range regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`).FindAllString(expr, -1) {
		if strings.Contains(name, "_") && !slices.Contains([]string{"histogram_quantile", "label_values",
			"sum_over_time", "max_over_time", "avg_over_time", "clamp_min", "__rate_interval"}, name) {
			out = append(out, name)
		}
	}
	return out
}

// exposed reports whether there is such a metric, or one whose parts are called so.
func exposed(known map[string]string, name string) bool {
	if kind := known[name]; kind != "" {
		return !strings.HasPrefix(kind, "histogram")
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, cut := strings.CutSuffix(name, suffix)
		if kind := known[base]; cut && (strings.HasPrefix(kind, "histogram") || strings.HasPrefix(kind, "summary") &&
			suffix != "_bucket") {
			return true
		}
	}
	return false
}

func TestMetricNamesAreFound(t *testing.T) {
	got := metricNames(`sum by (nodepool, resource_type) ` +
		`(rate(karpenter_a_total{some_label="other_label"}[$__rate_interval])) / on(x_y) histogram_quantile(0.5, ` +
		`b_bucket)`)
	if fmt.Sprint(got) != "[karpenter_a_total b_bucket]" {
		t.Errorf("names %v", got)
	}
}

// Classes are in the same families as claims and pools, and the registry must hand out both.
func TestConditionsOfAllKindsAreInOneFamily(t *testing.T) {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Status: awsv1.EC2NodeClassStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: "True",
			Reason: "Ready"}}}}
	scheme := runtime.NewScheme()
	if err := awsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	o, _, registry, _ := newObserver(&now)
	if _, err := nodeclass.NewMetrics(registry, clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(class).
		Build(), time.Now); err != nil {
		t.Fatal(err)
	}
	s := ended()
	s.Claims[0].Conditions = []cluster.Condition{{Type: "Ready", Status: cluster.True, Reason: "Ready"}}
	o.Planned(s.Seal(), &plan.Plan{}, 0)
	want := `operator_status_condition_count{group=karpenter.k8s.aws,kind=EC2NodeClass,name=default,namespace=,reason=Ready,status=True,type=Ready} 1
operator_status_condition_count{group=karpenter.sh,kind=NodeClaim,name=a,namespace=,reason=Ready,status=True,type=Ready} 1
`
	if got := gathered(t, registry, "operator_status_condition_count"); got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}
