package ingest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// orphanEndsCount is for how long it is remembered that an instance was ended because nobody claimed it.
const orphanEndsCount = time.Hour

// noteOrphanEnd remembers that the cloud was asked to end an instance which no claim accounted for. If the answer was
// an error it may have been ended all the same, and counts. One that was launched for a claim that has another instance
// does not: it was certain to be one too many. The lock is held.
func (b *Book) noteOrphanEnd(c command.Terminate, o command.Outcome) {
	if _, known := b.orphansEnded[c.ProviderID]; known || c.Claim != "" || c.ProviderID == "" || o.InstanceGone {
		return
	}
	for _, e := range b.claims {
		if e.claim.UID == c.UID && c.UID != "" {
			return
		}
	}
	b.orphansEnded[c.ProviderID] = o.At
}

// readKubeSystem takes in what the namespace kube-system says about the cluster: its identity, and when a person has
// said that instances which nobody claims may be ended. The lock is held.
func (b *Book) readKubeSystem(ns *corev1.Namespace) {
	key, text := "Namespace"+string(ns.UID), ns.Annotations[cluster.EndOrphansAnnotation]
	said, err := time.Parse(time.RFC3339, text)
	_, told := b.notes[key]
	wrong := err != nil && text != ""
	if delete(b.notes, key); wrong {
		b.notes[key] = cluster.Note{Kind: "Namespace", Name: ns.Name, UID: string(ns.UID), Warning: true,
			Reason: "InvalidEndOrphansAnnotation",
			Message: fmt.Sprintf("Annotation %s is %.64q and is ignored; it must be the time at which it is written, "+
				"such as 2030-01-31T12:00:00Z",
				cluster.EndOrphansAnnotation, text)}
	}
	if said.Equal(b.endOrphans) && string(ns.UID) == b.identity && told == wrong {
		return
	}
	b.endOrphans, b.identity = said, string(ns.UID)
	b.noteAndWake(noChange)
}
