package ingest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/reason"
)

// notes are what is to be told about objects, by kind and UID.
type notes map[string]cluster.Note

// forget drops what was to be told about an object.
func (n notes) forget(kind, uid string) {
	if len(n) > 0 {
		delete(n, kind+uid)
	}
}

// put has the note told about an object, or nothing any longer if there is none.
func (n notes) put(kind, uid string, note *cluster.Note) {
	if n.forget(kind, uid); note != nil {
		n[kind+uid] = *note
	}
}

// tooLong is the reason of the event on an object other than a pod of which a list is too long to be read.
const tooLong = "TooLong"

// tellTooLong tells an object what of it was too long to be kept, and what is made of it instead; what was told before
// is taken back if nothing was. The lock is held.
func (b *Book) tellTooLong(kind string, o metav1.Object, instead string) {
	id := o.GetNamespace() + "/" + o.GetName()
	b.notes.forget(kind, id)
	if why := decode.TooLongPart(&metav1.ObjectMeta{ManagedFields: o.GetManagedFields()}); why != "" {
		b.notes[kind+id] = cluster.Note{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(),
			UID:    string(o.GetUID()),
			Reason: tooLong, Warning: true, Text: reason.Said(why + "; " + instead)}
		b.noteAndWake(change.None)
	}
}
