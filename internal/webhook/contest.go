package webhook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// firstPause is how long after a change of ours the next one may come. It doubles with each, up to longestPause.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// remembers is how long after a change of ours another's counts as the answer to it. GitOps tools look every few
	// minutes.
	remembers = time.Hour
	// toldFrom is how many changes in a row it takes to be told: whoever applies the definitions again makes two.
	toldFrom = 3
	// tellsAgain is how long after having been told people are told again at the earliest.
	tellsAgain = time.Minute
)

// EventContested tells that somebody else keeps changing what the webhook needs in a CustomResourceDefinition.
const EventContested = "ConversionContested"

// Recorder writes events.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// contest counts our changes of one definition, so that two writers don't answer each other without a pause.
type contest struct {
	// changes is how many there were in a row, and last is when the last one was.
	changes int
	last    time.Time
	// told is when people were told.
	told time.Time
}

// longestFor is how long a change of a definition may have to wait. While objects are stored as the older version that
// is the first pause: until the definition is as it should be, the API server changes only the name of the
// version when it reads or writes such an object, and drops the fields that it does not know.
func longestFor(definition *apiextensionsv1.CustomResourceDefinition) time.Duration {
	if slices.Contains(definition.Status.StoredVersions, olderVersion) {
		return firstPause
	}
	return longestPause
}

// wait is how long the next change has to wait.
func (c *contest) wait(now time.Time, longest time.Duration) time.Duration {
	if c.changes == 0 || now.Sub(c.last) > remembers {
		return 0
	}
	return c.last.Add(c.pause(longest)).Sub(now)
}

// pause is how long the one after the last change waits.
func (c *contest) pause(longest time.Duration) time.Duration {
	pause := firstPause
	for i := 1; i < c.changes && pause < longest; i++ {
		pause *= 2
	}
	return min(pause, longest)
}

// note counts a change.
func (c *contest) note(now time.Time) {
	if now.Sub(c.last) > remembers {
		c.changes = 0
	}
	c.changes, c.last = c.changes+1, now
}

// teller tells people of a contest.
type teller struct {
	log    logr.Logger
	events Recorder
}

// tell names the fields that somebody else has changed again, and who that is.
func (t teller) tell(definition *apiextensionsv1.CustomResourceDefinition, fields []string, c *contest) {
	if c.changes < toldFrom || c.last.Sub(c.told) < tellsAgain {
		return
	}
	c.told = c.last
	text := fmt.Sprintf("%s was changed again by %s and is put right again; the next time that takes %s. "+
		"Have that tool leave the field to the controller, or give the controller --disable-webhook",
		strings.Join(fields, ", "), changedBy(definition), c.pause(longestFor(definition)))
	t.log.Info("somebody else keeps changing a CustomResourceDefinition: "+text, "definition", definition.Name,
		"fields", fields, "times", c.changes-1)
	ref := &corev1.ObjectReference{APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
		Kind: "CustomResourceDefinition", Name: definition.Name, UID: definition.UID}
	t.events.Eventf(ref, nil, corev1.EventTypeWarning, EventContested, "Convert", "%s", text)
}

// changedBy is the field manager that has changed the definition last.
func changedBy(definition *apiextensionsv1.CustomResourceDefinition) string {
	var last *metav1.ManagedFieldsEntry
	for i := range definition.ManagedFields {
		entry := &definition.ManagedFields[i]
		if entry.Subresource != "" || entry.Manager == fieldManager || entry.Time == nil {
			continue
		}
		if last == nil || last.Time.Before(entry.Time) {
			last = entry
		}
	}
	if last == nil {
		return "somebody"
	}
	return fmt.Sprintf("the field manager %q", last.Manager)
}
