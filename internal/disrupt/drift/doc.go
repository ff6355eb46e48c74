// Package drift finds nodes that are no longer what their pool or class asks for, or come near the end of their life,
// and says how far their replacement has come.
//
// Floor 2: pure.
package drift
