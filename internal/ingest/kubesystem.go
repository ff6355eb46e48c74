package ingest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/reason"
)

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
			Text: reason.Said(fmt.Sprintf("Annotation %s is %.64q and is ignored; it must be the time at which it is "+
				"written, such as 2030-01-31T12:00:00Z", cluster.EndOrphansAnnotation, text))}
	}
	if said.Equal(b.endOrphans) && string(ns.UID) == b.identity && told == wrong {
		return
	}
	b.endOrphans, b.identity = said, string(ns.UID)
	b.noteAndWake(change.None)
}
