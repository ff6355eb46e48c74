package pools

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// The annotations of a NodePool that say how long its nodes may take to come. They are additions to the contract.
const (
	launchTimeoutAnnotation         = "tenon.sh/launch-timeout"
	registrationTimeoutAnnotation   = "tenon.sh/registration-timeout"
	initializationTimeoutAnnotation = "tenon.sh/initialization-timeout"
)

// timeout is an annotation and where its value goes.
type timeout struct {
	annotation string
	into       *time.Duration
}

func timeouts(p *cluster.Pool) []timeout {
	return []timeout{
		{launchTimeoutAnnotation, &p.Timeouts.Launch},
		{registrationTimeoutAnnotation, &p.Timeouts.Registration},
		{initializationTimeoutAnnotation, &p.Timeouts.Initialization},
	}
}

// read reads the annotation, if it is there.
func (t timeout) read(annotations map[string]string) (problem cluster.Problem, bad bool) {
	text, set := annotations[t.annotation]
	if !set {
		return cluster.Problem{}, false
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return cluster.Problem{
			Field: fmt.Sprintf("metadata.annotations[%s]", t.annotation),
			Text: fmt.Sprintf("%q is not a duration of more than 0; use for instance 10m, or remove the annotation",
				text),
		}, true
	}
	*t.into = d
	return cluster.Problem{}, false
}
