package apitest

import "testing"

const nodeClaim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  labels: {karpenter.sh/nodepool: default}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
  resources: {requests: {cpu: 1, memory: 1Gi}}
`

func TestNodeClaimSpec(t *testing.T) {
	run(t, nodeClaim, []apiCase{
		{name: "defaults", stored: `spec: {expireAfter: 720h, terminationGracePeriod: null, taints: null}`},
		{name: "no spec", create: `spec: null`, refused: "spec: Required value"},
		{name: "no resources", create: `spec: {resources: null}`},
		{name: "a resource that is a word", create: `spec: {resources: {requests: {cpu: much}}}`, refused: "spec.resources.requests.cpu"},
		{name: "limits are for pools", create: `spec: {resources: {limits: {cpu: 1}}}`, refused: `unknown field "spec.resources.limits"`},
		{name: "tied to its pool", create: `spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [default]}]}`},
	})
}

func TestNodeClaimRequirements(t *testing.T) {
	run(t, nodeClaim, requirementCases("spec.requirements", func(text string) string {
		return "spec: {requirements: [" + text + "]}"
	}))
}

func TestNodeClaimTaints(t *testing.T) {
	run(t, nodeClaim, taintCases("spec.taints", func(text string) string {
		return "spec: {taints: [" + text + "]}"
	}))
}

func TestNodeClaimStartupTaints(t *testing.T) {
	run(t, nodeClaim, taintCases("spec.startupTaints", func(text string) string {
		return "spec: {startupTaints: [" + text + "]}"
	}))
}

func TestNodeClaimClassAndLifetime(t *testing.T) {
	run(t, nodeClaim, classAndLifetimeCases("spec", func(text string) string { return "spec: {" + text + "}" }))
}
