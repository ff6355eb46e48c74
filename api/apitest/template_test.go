package apitest

import (
	"fmt"
	"strings"
	"testing"
)

// repeat returns n copies of a YAML list's item.
func repeat(item string, n int) string {
	return strings.TrimSuffix(strings.Repeat(item+", ", n), ", ")
}

func TestNodePoolLabels(t *testing.T) {
	labels := func(text string) string { return "spec: {template: {metadata: {labels: {" + text + "}}}}" }
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("label-%d: x", i))
		}
		return strings.Join(all, ", ")
	}
	run(t, nodePool, []apiCase{
		{name: "plain and qualified", create: labels(`team: blue, example.com/tier: batch, empty: ""`)},
		{name: "capacity type", create: labels(`karpenter.sh/capacity-type: spot`)},
		{name: "domain that only ends alike", create: labels(`notkarpenter.sh/team: blue`)},
		{name: "domain in the name", create: labels(`example.com/karpenter.sh: blue`)},
		{name: "annotations are free",
			create: `spec: {template: {metadata: {annotations: {karpenter.sh/custom: "any thing"}}}}`},
		{name: "the pool itself", create: labels(`karpenter.sh/nodepool: x`), refused: "label karpenter.sh/nodepool " +
			"is set from the name of the NodePool"},
		{name: "hostname", create: labels(`kubernetes.io/hostname: x`), refused: "label kubernetes.io/hostname is " +
			"set by each node itself"},
		{name: "reserved domain", create: labels(`karpenter.sh/custom: x`), refused: "a label is in the reserved " +
			"domain karpenter.sh"},
		{name: "reserved subdomain", create: labels(`sub.karpenter.sh/custom: x`), refused: "a label is in the " +
			"reserved domain karpenter.sh"},
		{name: "value with a slash", create: labels(`team: a/b`), refused: "spec.template.metadata.labels.team"},
		{name: "value of 64 characters", create: labels("team: " + strings.Repeat("a", 64)),
			refused: "spec.template.metadata.labels.team: Too long"},
		{name: "100 labels", create: labels(many(100))},
		{name: "101 labels", create: labels(many(101)), refused: "spec.template.metadata.labels: Too many"},
		{name: "a name of its own", create: `spec: {template: {metadata: {name: x}}}`,
			refused: `unknown field "spec.template.metadata.name"`},
	})
}

// requirementCases are the rules that the requirements of a pool and of a claim share.
func requirementCases(field string, requirements func(string) string) []apiCase {
	at := func(rest string) string { return field + rest }
	return []apiCase{
		{name: "every operator", create: requirements(`
          {key: a, operator: In, values: [x]}, {key: b, operator: NotIn, values: [x]},
          {key: c, operator: Exists}, {key: d, operator: DoesNotExist},
          {key: e, operator: Gt, values: ["1"]}, {key: f, operator: Lt, values: ["1"]},
          {key: g, operator: Gte, values: ["0"]}, {key: h, operator: Lte, values: ["1"]}`)},
		{name: "older names of labels", create: requirements(
			`{key: beta.kubernetes.io/arch, operator: In, values: [arm64]}`)},
		{name: "capacity type", create: requirements(
			`{key: karpenter.sh/capacity-type, operator: In, values: [spot]}`)},
		{name: "empty value", create: requirements(`{key: a, operator: In, values: [""]}`)},
		{name: "no requirements", create: strings.Replace(requirements("x"), "[x]", "null", 1),
			refused: at(": Required value")},
		{name: "100 requirements", create: requirements(repeat(`{key: a, operator: Exists}`, 100))},
		{name: "101 requirements", create: requirements(repeat(`{key: a, operator: Exists}`, 101)),
			refused: at(": Too many")},
		{name: "no key", create: requirements(`{operator: Exists}`), refused: at("[0].key: Required value")},
		{name: "no operator", create: requirements(`{key: a}`), refused: at("[0].operator: Required value")},
		{name: "unknown operator", create: requirements(`{key: a, operator: Near}`),
			refused: at(`[0].operator: Unsupported value: "Near"`)},
		{name: "key with two slashes", create: requirements(`{key: a/b/c, operator: Exists}`), refused: at("[0].key")},
		{name: "key with a capital domain", create: requirements(`{key: Example.com/a, operator: Exists}`),
			refused: at("[0].key")},
		{name: "key too long", create: requirements("{key: " + strings.Repeat("a", 317) + ", operator: Exists}"),
			refused: at("[0].key: Too long")},
		{name: "hostname", create: requirements(`{key: kubernetes.io/hostname, operator: Exists}`),
			refused: "requirement key kubernetes.io/hostname is set by each node itself"},
		{name: "reserved domain", create: requirements(`{key: karpenter.sh/custom, operator: Exists}`),
			refused: "requirement key is in the reserved domain karpenter.sh"},
		{name: "reserved subdomain", create: requirements(
			`{key: a, operator: Exists}, {key: sub.karpenter.sh/x, operator: Exists}`), refused: at("[1].key")},
		{name: "domain that only ends alike", create: requirements(`{key: notkarpenter.sh/x, operator: Exists}`)},
		{name: "In without values", create: requirements(`{key: a, operator: In}`), refused: "operator In needs at " +
			"least one entry in values"},
		{name: "In with no values", create: requirements(`{key: a, operator: In, values: []}`),
			refused: "operator In needs at least one entry in values"},
		{name: "Gt without value", create: requirements(`{key: a, operator: Gt}`), refused: "need exactly one entry " +
			"in values"},
		{name: "Gt with two values", create: requirements(`{key: a, operator: Gt, values: ["1", "2"]}`),
			refused: "need exactly one entry in values"},
		{name: "Lt with a word", create: requirements(`{key: a, operator: Lt, values: [few]}`),
			refused: "a whole number of 0 or more"},
		{name: "Gte below zero", create: requirements(`{key: a, operator: Gte, values: ["-1"]}`),
			refused: "a whole number of 0 or more"},
		{name: "Lte with a fraction", create: requirements(`{key: a, operator: Lte, values: ["1.5"]}`),
			refused: "a whole number of 0 or more"},
		{name: "value that is a number", create: requirements(`{key: a, operator: Gt, values: [1]}`),
			refused: at("[0].values[0]")},
		{name: "value that no label has", create: requirements(`{key: a, operator: In, values: [ok, "not ok"]}`),
			refused: at("[0].values[1]")},
		{name: "value of 64 characters", create: requirements("{key: a, operator: In, values: [" + strings.Repeat("a",
			64) + "]}"), refused: at("[0].values[0]: Too long")},
		{name: "minValues", create: requirements(`{key: a, operator: In, values: [x, z], minValues: 2}`)},
		{name: "minValues without values", create: requirements(`{key: a, operator: Exists, minValues: 50}`)},
		{name: "minValues above the values",
			create:  requirements(`{key: a, operator: In, values: [x, z], minValues: 3}`),
			refused: "minValues is greater than the number of entries in values"},
		{name: "minValues 0", create: requirements(`{key: a, operator: Exists, minValues: 0}`),
			refused: at("[0].minValues: Invalid value")},
		{name: "minValues 51", create: requirements(`{key: a, operator: Exists, minValues: 51}`),
			refused: at("[0].minValues: Invalid value")},
	}
}

func TestNodePoolRequirements(t *testing.T) {
	requirements := func(text string) string { return "spec: {template: {spec: {requirements: [" + text + "]}}}" }
	run(t, nodePool, append(requirementCases("spec.template.spec.requirements", requirements), apiCase{
		name:    "the pool itself",
		create:  requirements(`{key: karpenter.sh/nodepool, operator: In, values: [x]}`),
		refused: "requirement key karpenter.sh/nodepool is set from the name of the NodePool",
	}))
}

// taintCases are the rules that the taints of a pool and of a claim share.
func taintCases(field string, taints func(string) string) []apiCase {
	return []apiCase{
		{name: "every effect", create: taints(`
          {key: a, effect: NoSchedule}, {key: b, value: x, effect: PreferNoSchedule}, {key: example.com/c,
            effect: NoExecute}`)},
		{name: "times", create: taints(`
          {key: a, effect: NoSchedule, timeAdded: "2024-02-29T23:59:59Z"},
          {key: b, effect: NoSchedule, timeAdded: "2024-01-01T00:00:00.123456789+05:30"},
          {key: c, effect: NoSchedule, timeAdded: "2024-01-01T00:00:00,5-24:60"}`)},
		{name: "time that no client can read", refused: field + "[0].timeAdded",
			create: taints(`{key: a, effect: NoSchedule, timeAdded: "2024-01-01t00:00:00z"}`)},
		{name: "time in an impossible zone", refused: field + "[0].timeAdded",
			create: taints(`{key: a, effect: NoSchedule, timeAdded: "2024-01-01T00:00:00+99:99"}`)},
		{name: "time in a leap second", refused: field + "[0].timeAdded",
			create: taints(`{key: a, effect: NoSchedule, timeAdded: "2016-12-31T23:59:60Z"}`)},
		{name: "no key", create: taints(`{effect: NoSchedule}`), refused: field + "[0].key: Required value"},
		{name: "empty key", create: taints(`{key: "", effect: NoSchedule}`), refused: field + "[0].key"},
		{name: "bad key", create: taints(`{key: "???", effect: NoSchedule}`), refused: field + "[0].key"},
		{name: "bad value", create: taints(`{key: a, value: "???", effect: NoSchedule}`), refused: field + "[0].value"},
		{name: "no effect", create: taints(`{key: a}`), refused: field + "[0].effect: Required value"},
		{name: "bad effect", create: taints(`{key: a, effect: NoSleep}`), refused: field +
			`[0].effect: Unsupported value: "NoSleep"`},
	}
}

func TestNodePoolTaints(t *testing.T) {
	run(t, nodePool, taintCases("spec.template.spec.taints", func(text string) string {
		return "spec: {template: {spec: {taints: [" + text + "]}}}"
	}))
}

func TestNodePoolStartupTaints(t *testing.T) {
	run(t, nodePool, taintCases("spec.template.spec.startupTaints", func(text string) string {
		return "spec: {template: {spec: {startupTaints: [" + text + "]}}}"
	}))
}

// classAndLifetimeCases are the rules that the rest of a pool's template and of a claim's spec share.
func classAndLifetimeCases(field string, spec func(string) string) []apiCase {
	ref := func(text string) string { return spec("nodeClassRef: {" + text + "}") }
	return []apiCase{
		{name: "no NodeClass", create: spec(`nodeClassRef: null`), refused: field + ".nodeClassRef: Required value"},
		{name: "NodeClass without group", create: ref(`group: null`), refused: field + ".nodeClassRef.group: " +
			"Required value"},
		{name: "NodeClass without kind", create: ref(`kind: null`), refused: field + ".nodeClassRef.kind: Required " +
			"value"},
		{name: "NodeClass without name", create: ref(`name: null`), refused: field + ".nodeClassRef.name: Required " +
			"value"},
		{name: "NodeClass with an empty group", create: ref(`group: ""`), refused: field + ".nodeClassRef.group"},
		{name: "NodeClass with an empty kind", create: ref(`kind: ""`), refused: field + ".nodeClassRef.kind"},
		{name: "NodeClass with an empty name", create: ref(`name: ""`), refused: field + ".nodeClassRef.name"},
		{name: "NodeClass with a version", create: ref(`group: karpenter.kwok.sh/v1alpha1`), refused: field +
			".nodeClassRef.group"},
		{name: "NodeClass of an older version", create: ref(`apiVersion: karpenter.kwok.sh/v1alpha1`),
			refused: `nodeClassRef.apiVersion"`},
		{name: "never expires", create: spec(`expireAfter: Never`), stored: spec(`expireAfter: Never`)},
		{name: "expires after a day", create: spec(`expireAfter: 24h`), stored: spec(`expireAfter: 24h`)},
		{name: "expires before it began", create: spec(`expireAfter: -1h`), refused: field + ".expireAfter"},
		{name: "expires after a fraction", create: spec(`expireAfter: 1.5h`), refused: field + ".expireAfter"},
		{name: "expires in days", create: spec(`expireAfter: 30d`), refused: "expireAfter must be a duration in h, m " +
			"and s"},
		{name: "expires in days, in words", create: spec(`expireAfter: 30 days`),
			refused: "such as 720h for 30 days, or Never"},
		{name: "expires after more than can be counted", create: spec(`expireAfter: 9999999999h`),
			refused: "of less than 292 years"},
		{name: "no grace", create: spec(`terminationGracePeriod: 0s`), stored: spec(`terminationGracePeriod: 0s`)},
		{name: "a day of grace", create: spec(`terminationGracePeriod: 23h59m60s`),
			stored: spec(`terminationGracePeriod: 23h59m60s`)},
		{name: "grace that is never over", create: spec(`terminationGracePeriod: Never`), refused: field +
			".terminationGracePeriod"},
		{name: "negative grace", create: spec(`terminationGracePeriod: -1s`), refused: field +
			".terminationGracePeriod"},
		{name: "grace in milliseconds", create: spec(`terminationGracePeriod: 1500ms`), refused: field +
			".terminationGracePeriod"},
		{name: "grace beyond counting", create: spec(`terminationGracePeriod: 9999999999h`),
			refused: "terminationGracePeriod must be a duration"},
	}
}

func TestNodePoolClassAndLifetime(t *testing.T) {
	run(t, nodePool, classAndLifetimeCases("spec.template.spec", func(text string) string {
		return "spec: {template: {spec: {" + text + "}}}"
	}))
}
