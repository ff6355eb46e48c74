// Package podspec reads what pods ask for: it makes classes of pods that kube-scheduler can't tell apart, numbers the
// resources that they count by, and forgets what no pod has any more.
//
// Floor 3: it converts Kubernetes' pod specs, has no lock and no clock, and knows neither nodes nor volumes.
package podspec
