// Package template writes EC2 launch templates, from which instances are launched, and sees to it that those which are
// wanted exist and those which are not used any more go.
//
// It is part of the provider for EC2. A template's name derives from its content, so nothing has to be remembered.
package template
