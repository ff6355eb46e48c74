package apitest

import "testing"

const nodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
`

func TestNodePoolDefaults(t *testing.T) {
	run(t, nodePool, []apiCase{
		{
			name: "everything left out",
			stored: `
spec:
  replicas: null
  weight: null
  limits: null
  disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized, budgets: [{nodes: 10%}]}
  template: {spec: {expireAfter: 720h, terminationGracePeriod: null}}`,
		},
		{
			name:   "empty disruption",
			create: `spec: {disruption: {}}`,
			stored: `spec: {disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized, ` +
				`budgets: [{nodes: 10%}]}}`,
		},
		{
			name:   "only the policy",
			create: `spec: {disruption: {consolidationPolicy: WhenEmpty}}`,
			stored: `spec: {disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmpty, budgets: [{nodes: ` +
				`10%}]}}`,
		},
		{
			name:   "a budget without nodes",
			create: `spec: {disruption: {budgets: [{reasons: [Empty]}]}}`,
			stored: `spec: {disruption: {budgets: [{nodes: 10%, reasons: [Empty]}]}}`,
		},
		{
			name:   "no budgets on purpose",
			create: `spec: {disruption: {budgets: []}}`,
			stored: `spec: {disruption: {budgets: []}}`,
		},
		{
			name: "the text of durations stays as written",
			create: `spec: {disruption: {consolidateAfter: 90s}, template: {spec: {expireAfter: 60m30s, ` +
				`terminationGracePeriod: 48h}}}`,
			stored: `spec: {disruption: {consolidateAfter: 90s}, template: {spec: {expireAfter: 60m30s, ` +
				`terminationGracePeriod: 48h}}}`,
		},
	})
}

func TestNodePoolSpec(t *testing.T) {
	run(t, nodePool, []apiCase{
		{name: "no template", create: `spec: {template: null}`, refused: "spec.template: Required value"},
		{name: "no template spec", create: `spec: {template: {spec: null}}`, refused: "spec.template.spec: Required " +
			"value"},
		{name: "unknown field", create: `spec: {consolidation: {}}`, refused: `unknown field "spec.consolidation"`},
		{name: "unknown field in the template", create: `spec: {template: {spec: {kubelet: {}}}}`,
			refused: `unknown field "spec.template.spec.kubelet"`},
		{name: "resources belong to claims", create: `spec: {template: {spec: {resources: {}}}}`,
			refused: `unknown field "spec.template.spec.resources"`},
		{name: "weight 1", create: `spec: {weight: 1}`, stored: `spec: {weight: 1}`},
		{name: "weight 100", create: `spec: {weight: 100}`, stored: `spec: {weight: 100}`},
		{name: "weight 0", create: `spec: {weight: 0}`, refused: "spec.weight: Invalid value"},
		{name: "weight 101", create: `spec: {weight: 101}`, refused: "spec.weight: Invalid value"},
		{name: "limits", create: `spec: {limits: {cpu: 100, memory: 1Ti, nodes: "5", example.com/gpu: 8}}`,
			stored: `spec: {limits: {cpu: 100, memory: 1Ti}}`},
		{name: "limit with a space", create: `spec: {limits: {memory: 10 Gi}}`, refused: "spec.limits.memory"},
		{name: "limit that no client can read", create: `spec: {limits: {cpu: "1e1.5"}}`, refused: "spec.limits.cpu"},
		{name: "limit with an exponent", create: `spec: {limits: {memory: "1e12"}}`,
			stored: `spec: {limits: {memory: "1e12"}}`},
		{name: "limit with an endless exponent", create: `spec: {limits: {cpu: "1e99999999999999999999"}}`,
			refused: "spec.limits.cpu"},
		{name: "limit that is a word", create: `spec: {limits: {cpu: many}}`, refused: "spec.limits.cpu"},
		{name: "static", create: `spec: {replicas: 3}`, stored: `spec: {replicas: 3}`},
		{name: "static, of none", create: `spec: {replicas: 0}`, stored: `spec: {replicas: 0}`},
		{name: "static, below none", create: `spec: {replicas: -1}`, refused: "spec.replicas: Invalid value"},
		{name: "static with a node limit", create: `spec: {replicas: 3, limits: {nodes: 5}}`},
		{name: "static with no limits", create: `spec: {replicas: 3, limits: {}}`},
		{name: "static with a CPU limit", create: `spec: {replicas: 3, limits: {cpu: 5}}`,
			refused: "limits of a static NodePool (one with replicas) may hold nodes only"},
		{name: "static with a node and a CPU limit", create: `spec: {replicas: 3, limits: {cpu: 5, nodes: 5}}`,
			refused: "may hold nodes only"},
		{name: "static with a weight", create: `spec: {replicas: 3, weight: 5}`, refused: "weight has no meaning in " +
			"a static NodePool"},
	})
}

func TestNodePoolDisruption(t *testing.T) {
	const name = "spec.disruption"
	run(t, nodePool, []apiCase{
		{name: "never consolidates", create: `spec: {disruption: {consolidateAfter: Never}}`,
			stored: `spec: {disruption: {consolidateAfter: Never}}`},
		{name: "hours, minutes, seconds", create: `spec: {disruption: {consolidateAfter: 1h2m3s}}`},
		{name: "negative wait", create: `spec: {disruption: {consolidateAfter: -1s}}`, refused: name +
			".consolidateAfter"},
		{name: "wait in milliseconds", create: `spec: {disruption: {consolidateAfter: 500ms}}`, refused: name +
			".consolidateAfter"},
		{name: "wait in days", create: `spec: {disruption: {consolidateAfter: 1d}}`, refused: "consolidateAfter must " +
			"be a duration in h, m and s"},
		{name: "never, in small letters", create: `spec: {disruption: {consolidateAfter: never}}`, refused: "or Never"},
		{name: "empty wait", create: `spec: {disruption: {consolidateAfter: ""}}`, refused: name + ".consolidateAfter"},
		{name: "wait as a number", create: `spec: {disruption: {consolidateAfter: 30}}`, refused: name +
			".consolidateAfter"},
		{name: "wait that no program can count", create: `spec: {disruption: {consolidateAfter: 99999999999h}}`,
			refused: "of less than 292 years"},
		{name: "policy WhenEmptyOrUnderutilized",
			create: `spec: {disruption: {consolidationPolicy: WhenEmptyOrUnderutilized}}`},
		{name: "policy Balanced", create: `spec: {disruption: {consolidationPolicy: Balanced}}`,
			stored: `spec: {disruption: {consolidationPolicy: Balanced}}`},
		{name: "policy of an older version", create: `spec: {disruption: {consolidationPolicy: WhenUnderutilized}}`,
			refused: name + `.consolidationPolicy: Unsupported value: "WhenUnderutilized"`},
		{name: "expireAfter of an older version", create: `spec: {disruption: {expireAfter: 720h}}`,
			refused: `unknown field "spec.disruption.expireAfter"`},
	})
}

func TestNodePoolBudgets(t *testing.T) {
	budget := func(text string) string { return "spec: {disruption: {budgets: [" + text + "]}}" }
	const nodes, schedule = "spec.disruption.budgets[0].nodes", "spec.disruption.budgets[0].schedule"
	run(t, nodePool, []apiCase{
		{name: "a number", create: budget(`{nodes: "10"}`)},
		{name: "none", create: budget(`{nodes: "0"}`)},
		{name: "all", create: budget(`{nodes: 100%}`)},
		{name: "no percent", create: budget(`{nodes: 0%}`)},
		{name: "negative number", create: budget(`{nodes: "-10"}`), refused: nodes},
		{name: "negative percentage", create: budget(`{nodes: "-10%"}`), refused: nodes},
		{name: "more than all", create: budget(`{nodes: 101%}`), refused: nodes},
		{name: "three digits", create: budget(`{nodes: 1000%}`), refused: nodes},
		{name: "a fraction", create: budget(`{nodes: 0.5%}`), refused: nodes},
		{name: "a number that is not text", create: budget(`{nodes: 10}`), refused: nodes},
		{name: "in a window", create: budget(`{nodes: "0", schedule: "0 9 * * mon-fri", duration: 8h}`)},
		{name: "in a window of hours and minutes", create: budget(`{nodes: "0", schedule: "@daily", duration: 1h30m}`)},
		{name: "a duration as programs write it",
			create: budget(`{nodes: "0", schedule: "@hourly", duration: 1h30m0s}`)},
		{name: "in a window of a time zone",
			create: budget(`{nodes: "0", schedule: "CRON_TZ=Europe/Berlin 0 9 * * mon-fri", duration: 8h}`)},
		{name: "every named schedule", create: budget(`
      {nodes: "1", schedule: "@annually", duration: 1h}, {nodes: "1", schedule: "@yearly", duration: 1h},
      {nodes: "1", schedule: "@monthly", duration: 1h}, {nodes: "1", schedule: "@weekly", duration: 1h},
      {nodes: "1", schedule: "@daily", duration: 1h}, {nodes: "1", schedule: "@midnight", duration: 1h},
      {nodes: "1", schedule: "@hourly", duration: 1h}`)},
		{name: "a schedule alone", create: budget(`{nodes: "1", schedule: "@daily"}`),
			refused: "schedule and duration of a budget belong together"},
		{name: "a duration alone", create: budget(`{nodes: "1", duration: 1h}`), refused: "schedule and duration of " +
			"a budget belong together"},
		{name: "one bad of two", create: budget(`{nodes: "1"}, {nodes: "1", duration: 1h}`),
			refused: "spec.disruption.budgets[1]"},
		{name: "a duration with seconds", create: budget(`{nodes: "1", schedule: "@daily", duration: 30s}`),
			refused: "spec.disruption.budgets[0].duration"},
		{name: "a negative duration", create: budget(`{nodes: "1", schedule: "@daily", duration: -1h}`),
			refused: "spec.disruption.budgets[0].duration"},
		{name: "a duration that no program can count",
			create:  budget(`{nodes: "1", schedule: "@daily", duration: 99999999999h}`),
			refused: "duration must be a duration in h and m"},
		{name: "a schedule of one field", create: budget(`{nodes: "1", schedule: "*", duration: 1h}`),
			refused: schedule},
		{name: "a schedule of six fields", create: budget(`{nodes: "1", schedule: "0 0 9 * * 1", duration: 1h}`),
			refused: schedule},
		{name: "an unknown named schedule", create: budget(`{nodes: "1", schedule: "@sometimes", duration: 1h}`),
			refused: schedule},
		{name: "a schedule that is no moment", create: budget(`{nodes: "1", schedule: "@reboot", duration: 1h}`),
			refused: "must be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"},
		{name: "an interval", create: budget(`{nodes: "1", schedule: "@every 1h", duration: 1h}`),
			refused: "for other moments use five cron fields, such as 0 9 * * mon-fri"},
		{name: "a named schedule and more",
			create: budget(`{nodes: "1", schedule: "@daily at 5 in the morning", duration: 1h}`), refused: schedule},
		{name: "every reason", create: budget(`{nodes: "1", reasons: [Underutilized, Empty, Drifted, Unhealthy]}`)},
		{name: "an unknown reason", create: budget(`{nodes: "1", reasons: [Expired]}`),
			refused: `reasons[0]: Unsupported value: "Expired"`},
		{name: "a reason twice", create: budget(`{nodes: "1", reasons: [Empty, Empty]}`),
			refused: "reasons[1]: Duplicate value"},
		{name: "50 budgets", create: budget(repeat(`{nodes: "1"}`, 50))},
		{name: "51 budgets", create: budget(repeat(`{nodes: "1"}`, 51)), refused: "spec.disruption.budgets: Too many"},
	})
}
