// Package onlab tests that simulated machines join a real cluster: package join and the lab, which plays their
// kubelets. It has no code of its own, and is apart from join so that join's other tests need no lab.
package onlab
