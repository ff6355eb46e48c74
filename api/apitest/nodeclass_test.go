package apitest

import "testing"

const nodeClass = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
`

func TestKWOKNodeClass(t *testing.T) {
	run(t, nodeClass, []apiCase{
		{name: "nothing set", stored: `spec: null`},
		{name: "with a delay", create: `spec: {nodeRegistrationDelay: 30s}`,
			stored: `spec: {nodeRegistrationDelay: 30s}`},
		{name: "with a long delay", create: `spec: {nodeRegistrationDelay: 1h2m3s}`,
			stored: `spec: {nodeRegistrationDelay: 1h2m3s}`},
		{name: "another delay", create: `spec: {nodeRegistrationDelay: 30s}`,
			update: `spec: {nodeRegistrationDelay: 5s}`, stored: `spec: {nodeRegistrationDelay: 5s}`},
		{name: "delay without a unit", create: `spec: {nodeRegistrationDelay: "30"}`,
			refused: "nodeRegistrationDelay must be a duration in h, m and s"},
		{name: "delay in milliseconds", create: `spec: {nodeRegistrationDelay: 500ms}`,
			refused: "spec.nodeRegistrationDelay"},
		{name: "negative delay", create: `spec: {nodeRegistrationDelay: -1s}`, refused: "spec.nodeRegistrationDelay"},
		{name: "delay that never ends", create: `spec: {nodeRegistrationDelay: Never}`,
			refused: "spec.nodeRegistrationDelay"},
		{name: "unknown field", create: `spec: {registrationDelay: 1s}`,
			refused: `unknown field "spec.registrationDelay"`},
	})
}
