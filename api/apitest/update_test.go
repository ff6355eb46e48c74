package apitest

import "testing"

func TestNodePoolUpdates(t *testing.T) {
	run(t, nodePool, []apiCase{
		{name: "another NodeClass of the kind", update: `spec: {template: {spec: {nodeClassRef: {name: other}}}}`,
			stored: `spec: {template: {spec: {nodeClassRef: {name: other}}}}`},
		{name: "another group", update: `spec: {template: {spec: {nodeClassRef: {group: example.com}}}}`,
			refused: "nodeClassRef.group is immutable"},
		{name: "another kind", update: `spec: {template: {spec: {nodeClassRef: {kind: OtherClass}}}}`,
			refused: "nodeClassRef.kind is immutable"},
		{name: "dynamic to static", update: `spec: {replicas: 1}`, refused: "replicas can't be added or removed"},
		{name: "static to dynamic", create: `spec: {replicas: 1}`, update: `spec: {replicas: null}`,
			refused: "replicas can't be added or removed"},
		{name: "static to another size", create: `spec: {replicas: 1}`, update: `spec: {replicas: 0}`,
			stored: `spec: {replicas: 0}`},
		{name: "a weight for a static pool", create: `spec: {replicas: 1}`, update: `spec: {weight: 1}`,
			refused: "weight has no meaning in a static NodePool"},
		{name: "a CPU limit for a static pool", create: `spec: {replicas: 1}`, update: `spec: {limits: {cpu: 1}}`,
			refused: "may hold nodes only"},
		{name: "everything else", update: `
spec:
  weight: 7
  limits: {cpu: 10}
  disruption: {consolidateAfter: Never, consolidationPolicy: Balanced, budgets: [{nodes: "1"}]}
  template: {metadata: {labels: {team: blue}}, spec: {expireAfter: Never, taints: [{key: a, effect: NoSchedule}]}}`,
			stored: `spec: {weight: 7, limits: {cpu: 10}, disruption: {consolidateAfter: Never}, template: ` +
				`{metadata: {labels: {team: blue}}}}`},
		{name: "a removed field gets its default back", create: `spec: {disruption: {consolidateAfter: Never}}`,
			update: `spec: {disruption: null}`, stored: `spec: {disruption: {consolidateAfter: 0s}}`},
	})
}

func TestNodeClaimSpecNeverChanges(t *testing.T) {
	const immutable = "spec is immutable"
	run(t, nodeClaim, []apiCase{
		{name: "labels and annotations may",
			update: `metadata: {labels: {karpenter.sh/registered: "true"}, annotations: ` +
				`{karpenter.sh/do-not-disrupt: "true"}}`,
			stored: `metadata: {labels: {karpenter.sh/registered: "true"}}`},
		{name: "taints", update: `spec: {taints: [{key: a, effect: NoSchedule}]}`, refused: immutable},
		{name: "startupTaints", update: `spec: {startupTaints: [{key: a, effect: NoSchedule}]}`, refused: immutable},
		{name: "requirements", update: `spec: {requirements: [{key: a, operator: Exists}]}`, refused: immutable},
		{name: "resources", update: `spec: {resources: {requests: {cpu: 2}}}`, refused: immutable},
		{name: "nodeClassRef", update: `spec: {nodeClassRef: {name: other}}`, refused: immutable},
		{name: "terminationGracePeriod", update: `spec: {terminationGracePeriod: 1h}`, refused: immutable},
		{name: "expireAfter", update: `spec: {expireAfter: Never}`, refused: immutable},
	})
}
