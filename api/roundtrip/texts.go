package roundtrip

import (
	"encoding/json"
	"fmt"
	"slices"
)

// AddTexts adds to a note what the types of the API can't say of an object: where it differs, as JSON, from what
// converting there and back makes of it. It may be a text that no type can read, or one of two that mean the same.
// Restore leaves these differences alone; whoever converts JSON takes them out before and puts them in afterwards.
func AddTexts(note string, shown, is map[string]any) (string, error) {
	found := compareObjects(nil, shown, is)
	if len(found) == 0 {
		return note, nil
	}
	for i := range found {
		found[i].Text = true
	}
	var all []Difference
	if note != "" {
		if err := read([]byte(note), &all); err != nil {
			return "", fmt.Errorf("reading a note: %w", err)
		}
	}
	text, err := json.Marshal(append(all, found...))
	if err != nil {
		return "", fmt.Errorf("writing what the other version can't say: %w", err)
	}
	return string(text), nil
}

// TakeTexts returns a note without what AddTexts has added, and that. A text that is no note is left as it is.
func TakeTexts(note string) (rest string, texts []Difference) {
	var all []Difference
	if note == "" || read([]byte(note), &all) != nil {
		return note, nil
	}
	isText := func(d Difference) bool { return d.Text }
	if !slices.ContainsFunc(all, isText) {
		return note, nil
	}
	for _, d := range all {
		if d.Text {
			texts = append(texts, d)
		}
	}
	all = slices.DeleteFunc(all, isText)
	if len(all) == 0 {
		return "", texts
	}
	text, err := json.Marshal(all)
	if err != nil {
		return note, nil
	}
	return string(text), texts
}

// RestoreTexts puts the differences into a converted object that is JSON, as far as its fields still show what they
// showed then.
func RestoreTexts(root map[string]any, texts []Difference) { apply(root, texts) }
