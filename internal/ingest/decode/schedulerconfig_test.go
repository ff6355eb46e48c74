package decode

import (
	"fmt"
	"strings"
	"testing"
)

func TestSchedulerConfig(t *testing.T) {
	const full = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing": {"", ""},
		"comment": {"# later\n", ""},
		"no list": {"podTopologySpread: {}", ""},
		"one": {"podTopologySpread: {defaultConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: " +
			"DoNotSchedule}]}", "zone 2 DoNotSchedule"},
		"as JSON": {`{"podTopologySpread":{"defaultConstraints":[{"maxSkew":1,"topologyKey":"a/b",` +
			`"whenUnsatisfiable":"ScheduleAnyway"}]}}`, "a/b 1 ScheduleAnyway"},
		"policies": {"podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: " +
			"DoNotSchedule, minDomains: 3, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}]}",
			"z 1 DoNotSchedule min 3 affinity Ignore taints Honor"},
		"one key, both ways": {"podTopologySpread: {defaultConstraints: [{maxSkew: 3, topologyKey: z, " +
			"whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]}",
			"z 3 DoNotSchedule, z 1 ScheduleAnyway"},
		"kube-scheduler does not look at these": {"podTopologySpread: {defaultConstraints: [{maxSkew: 1, " +
			"topologyKey: z, whenUnsatisfiable: ScheduleAnyway, minDomains: 3, matchLabelKeys: [a]}]}",
			"z 1 ScheduleAnyway"},
		"whole": {full + `
leaderElection: {leaderElect: true}
parallelism: 16
profiles:
- schedulerName: default-scheduler
  plugins: {score: {disabled: [{name: NodeResourcesFit}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
  - name: PodTopologySpread
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: PodTopologySpreadArgs
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
- schedulerName: other
`, "topology.kubernetes.io/zone 1 DoNotSchedule"},
		"whole, no profile":     {full, ""},
		"whole, no such plugin": {full + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {}}]}]", ""},
		"whole, system defaults": {full + "profiles: [{pluginConfig: [{name: PodTopologySpread, args: " +
			"{defaultingType: System}}]}]", ""},
		"whole, no args": {full + "profiles: [{pluginConfig: [{name: PodTopologySpread}]}]", ""},
	} {
		list, err := ReadSchedulerConfig(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, c := range list {
			text := fmt.Sprintf("%s %d %s", c.TopologyKey, c.MaxSkew, c.WhenUnsatisfiable)
			if c.MinDomains != nil {
				text += fmt.Sprintf(" min %d", *c.MinDomains)
			}
			if c.NodeAffinityPolicy != nil {
				text += " affinity " + string(*c.NodeAffinityPolicy)
			}
			if c.NodeTaintsPolicy != nil {
				text += " taints " + string(*c.NodeTaintsPolicy)
			}
			if len(c.MatchLabelKeys) > 0 {
				text += " matchLabelKeys"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

func TestBadSchedulerConfigIsNamed(t *testing.T) {
	const full = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: " +
		"[{pluginConfig: [{name: PodTopologySpread, args: "
	one := func(fields string) string { return "podTopologySpread: {defaultConstraints: [{" + fields + "}]}" }
	const good = "maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule"
	const at = "podTopologySpread.defaultConstraints[0]."
	noSkew := full + "{defaultingType: List, defaultConstraints: [{maxSkew: 0}]}}]}]"
	for text, want := range map[string]string{
		"a: [":                        "yaml: line 1",
		"just words":                  "cannot unmarshal string",
		"podTopologySpread: 5":        "podTopologySpread",
		"podTopologySpreading: {}":    `unknown field "podTopologySpreading"`,
		"podTopologySpread: {a: 1}":   `unknown field "a"`,
		one(good + ", skew: 1"):       `unknown field "skew"`,
		one(good + ", maxSkew: 2"):    `"maxSkew" already set`,
		one("maxSkew: many"):          "maxSkew",
		one(""):                       at + "maxSkew: 0 is too little",
		one("maxSkew: -1"):            at + "maxSkew: -1 is too little",
		one("maxSkew: 1"):             at + "topologyKey: is empty",
		one(good + ", minDomains: 0"): at + "minDomains: 0 is too little",
		one("maxSkew: 1, topologyKey: a b, whenUnsatisfiable: DoNotSchedule"): at +
			`topologyKey: "a b" is not a label`,
		one("maxSkew: 1, topologyKey: z"): at +
			`whenUnsatisfiable: "" is not one of DoNotSchedule, ScheduleAnyway`,
		one("maxSkew: 1, topologyKey: z, whenUnsatisfiable: Never"): at + `whenUnsatisfiable: "Never"`,
		one(good + ", labelSelector: {}"):                           at + "labelSelector: must not be set",
		one(good + ", nodeAffinityPolicy: honor"):                   at + `nodeAffinityPolicy: "honor"`,
		one(good + ", nodeTaintsPolicy: Maybe"):                     at + `nodeTaintsPolicy: "Maybe"`,
		one(good + "}, {" + good): "podTopologySpread.defaultConstraints[1]: " +
			"there is a constraint",
		"kind: Deployment": `kind: "Deployment" ` +
			`is not KubeSchedulerConfiguration`,
		"kind: KubeSchedulerConfiguration": `apiVersion: ""`,
		"profiles: []":                     `kind: ""`,
		full + "{}}], plugin: 1}]":         `unknown field "plugin"`,
		full + "{defaultConstraint: []}}]}]": `profiles[0].pluginConfig[0].args: ` +
			`unknown field "defaultConstraint"`,
		full + "{defaultingType: Lists}}]}]": `profiles[0].pluginConfig[0].args.` +
			`defaultingType: "Lists"`,
		full + "{defaultConstraints: [{" + good + "}]}}]}]": "args.defaultingType: must be List",
		noSkew: "profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: 0",
	} {
		_, err := ReadSchedulerConfig(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", text, err, want)
		}
	}
}
