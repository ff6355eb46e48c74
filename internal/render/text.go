// Package render has the words: it makes of a reason what people read in events, conditions, logs and metrics. Nothing
// else in the core does, and nothing reads a text back.
//
// Floor 2: pure, like what it describes.
package render

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

// Text is a reason in words; empty if it says nothing.
func Text(t reason.Text) string {
	if t.IsZero() {
		return ""
	}
	var args []any
	for _, arg := range t.Args {
		if arg != nil {
			args = append(args, words(arg))
		}
	}
	return fmt.Sprintf(format(t.Code), args...)
}

// words is an argument as it stands in a sentence.
func words(arg any) any {
	switch a := arg.(type) {
	case reason.Text:
		return Text(a)
	case reason.Clock:
		return time.Time(a).UTC().Format("15:04:05") + " UTC"
	case time.Time:
		return a.UTC().Format(time.RFC3339)
	case *cluster.UnusedNode:
		return Cause(a)
	case cluster.Part:
		return part(a)
	}
	return arg
}

// part says which part of planning has failed.
func part(p cluster.Part) string {
	switch p {
	case cluster.Interrupting:
		return "Replacing interrupted nodes"
	case cluster.Placing:
		return "Finding places for pods"
	case cluster.Nominating:
		return "Telling pods their new nodes"
	case cluster.WritingStatus:
		return "Working out the status of NodeClaims and NodePools"
	case cluster.Disrupting:
		return "Deciding which nodes to remove"
	case cluster.Collecting:
		return "Ending instances that no NodeClaim accounts for"
	}
	return "The search for cheaper nodes"
}

// Condition is a condition as it is written.
func Condition(c command.Condition) cluster.Condition {
	return cluster.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: Text(c.Text),
		Generation: c.Generation}
}

// Says reports whether a condition of an object says what it is to say: the words are all that the API server keeps of
// a reason.
func Says(is cluster.Condition, want command.Condition) bool {
	return is.Status == want.Status && is.Reason == want.Reason && is.Message == Text(want.Text)
}

// format is the sentence of a code, with a place for each argument. The tables are constant, so nothing is copied.
func format(code reason.Code) string {
	for _, words := range []func(reason.Code) string{generalWords, poolWords, conditionWords, budgetWords, driftWords,
		moveWords, claimWords, planWords} {
		if text := words(code); text != "" {
			return text
		}
	}
	panic(fmt.Sprintf("render: no words for code %d", code))
}
